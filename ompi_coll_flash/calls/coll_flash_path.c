/*
 * coll_flash_path.c: which way a call takes, chosen by what is equal on all ranks; telling and
 * counting it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"
#include "job/coll_flash_counters.h"
#include "recdbl/coll_flash_doubling.h"
#include "ring/coll_flash_ring.h"
#include "shm/coll_flash_board.h"

size_t mca_coll_flash_bytes(flash_count_t count, flash_counts_t counts, MPI_Datatype type,
                            ompi_communicator_t *comm)
{
    size_t size, elements = 0;
    int nranks = ompi_comm_size(comm);

    ompi_datatype_type_size(type, &size);
    if (counts == NULL) {
        return (size_t) nranks * (size_t) count * size;
    }
    for (int rank = 0; rank < nranks; rank++) {
        elements += (size_t) counts[rank];
    }
    return elements * size;
}

/* What a verbose line says of an obstacle, and what it counts as. */
static const struct {
    const char *text;
    mca_coll_flash_counter_t counter;
} obstacles[FLASH_OBSTACLES] = {
    [FLASH_BELOW_MIN] = {"below min_bytes", FLASH_COUNT_MIN_BYTES},
    [FLASH_BELOW_TWICE_MIN] = {"below twice min_bytes", FLASH_COUNT_MIN_BYTES},
    [FLASH_BELOW_STEP] = {"blocks below step_bytes", FLASH_COUNT_STEP_BYTES},
    [FLASH_BELOW_TWICE_STEP] = {"blocks below twice step_bytes", FLASH_COUNT_STEP_BYTES},
    [FLASH_ON_ONE_NODE] = {"on one node, see on_node", FLASH_COUNT_ON_NODE},
    [FLASH_NOT_COMMUTATIVE] = {"not a commutative operation", FLASH_COUNT_OPERATION},
    [FLASH_NOT_OF_REDUCTIONS] = {"not an operation for reductions", FLASH_COUNT_OPERATION},
    [FLASH_NOT_PREDEFINED] = {"not a predefined type", FLASH_COUNT_OPERATION},
    [FLASH_TYPE_WITH_GAPS] = {"a type with gaps", FLASH_COUNT_OPERATION},
    [FLASH_PERSISTENT_NUMBERS] = {"the communicator has had too many persistent requests",
                                  FLASH_COUNT_PERSISTENT},
    [FLASH_TOO_MANY_RANKS] = {"too many ranks for an all-to-all", FLASH_COUNT_RANKS},
    [FLASH_MERGED] = {"merged, not above merge_bytes", FLASH_COUNT_MERGED},
    [FLASH_NOT_SERVED] = {"flash does not serve it", FLASH_COUNT_COMMUNICATOR},
    [FLASH_COUNTS_TOO_LARGE] = {"a block of 2 GiB, or an array of large counts",
                                FLASH_COUNT_LARGE}};

/* What it is called, and counted as: its number, and behind that its bytes. */
typedef struct way {
    const char *text;
    mca_coll_flash_counter_t calls;
} way_t;

_Static_assert(FLASH_COUNT_RING_BYTES == FLASH_COUNT_RINGS + 1 &&
                   FLASH_COUNT_DIRECT_BYTES == FLASH_COUNT_DIRECTS + 1 &&
                   FLASH_COUNT_BOARD_BYTES == FLASH_COUNT_BOARDS + 1 &&
                   FLASH_COUNT_DOUBLING_BYTES == FLASH_COUNT_DOUBLINGS + 1 &&
                   FLASH_COUNT_PASSED_ON_BYTES == FLASH_COUNT_PASSED_ON + 1 &&
                   FLASH_COUNT_PLAIN_BYTES == FLASH_COUNT_PLAIN + 1,
               "bytes are counted behind calls");

static const way_t ring = {"ring", FLASH_COUNT_RINGS}, direct = {"direct", FLASH_COUNT_DIRECTS},
                   board = {"board", FLASH_COUNT_BOARDS},
                   doubling = {"doubling", FLASH_COUNT_DOUBLINGS},
                   passed_on = {"passed on", FLASH_COUNT_PASSED_ON},
                   plain = {"plain collective", FLASH_COUNT_PLAIN};

static const way_t *const ways[] = {[FLASH_PASSED_ON] = &passed_on,
                                    [FLASH_BY_RING] = &ring,
                                    [FLASH_DIRECT] = &direct,
                                    [FLASH_BY_BOARD] = &board,
                                    [FLASH_BY_DOUBLING] = &doubling};

/* `why`: of a call that takes no ring. */
static void tell(const char *name, size_t size, ompi_communicator_t *comm, const way_t *way,
                 mca_coll_flash_obstacle_t why)
{
    bool reason = why != FLASH_NO_OBSTACLE;

    mca_coll_flash_count(way->calls, 1);
    mca_coll_flash_count(way->calls + 1, size);
    if (way == &passed_on || way == &plain) {
        mca_coll_flash_count(obstacles[why].counter, 1);
    }
    FLASH_VERBOSE(2, "coll:flash: %s of %zu bytes on communicator %u: %s%s%s%s", name, size,
                  flash_compat_comm_id(comm), way->text, reason ? " (" : "",
                  reason ? obstacles[why].text : "", reason ? ")" : "");
}

void mca_coll_flash_tell_path(const char *name, size_t bytes, ompi_communicator_t *comm,
                              mca_coll_flash_obstacle_t obstacle)
{
    tell(name, bytes, comm, obstacle == FLASH_NO_OBSTACLE ? &ring : &plain, obstacle);
}

/* The parameters' help texts say why there are two limits, and two of each. */
static mca_coll_flash_obstacle_t too_small(flash_kind_t kind, size_t bytes,
                                           const mca_coll_flash_module_t *module)
{
    const mca_coll_flash_settings_t *settings = &module->settings;
    size_t worth = kind == FLASH_ALLGATHER ? bytes / 2 : bytes;

    if (worth < settings->min_bytes) {
        return kind == FLASH_ALLGATHER ? FLASH_BELOW_TWICE_MIN : FLASH_BELOW_MIN;
    }
    if (settings->min_bytes > 0 &&
        worth / (size_t) ompi_comm_size(module->comm) < settings->step_bytes) {
        return kind == FLASH_ALLGATHER ? FLASH_BELOW_TWICE_STEP : FLASH_BELOW_STEP;
    }
    return FLASH_NO_OBSTACLE;
}

/*
 * What is in a ring's way need not be in a board's. Where blocks are not read, two copies of what one
 * would do for are too many, if they are large: of more ranks, as many more read what was copied.
 */
static bool takes_board(flash_kind_t kind, size_t bytes, size_t element,
                        const mca_coll_flash_module_t *module, mca_coll_flash_obstacle_t obstacle)
{
    const mca_coll_flash_settings_t *settings = &module->settings;
    int nranks = ompi_comm_size(module->comm);

    if (kind == FLASH_ALLGATHER && nranks == 2 && bytes / 2 > settings->board_bytes &&
        settings->board_read_ranks < 2) {
        return false;
    }
    return module->board != NULL && settings->board && element > 0 &&
           obstacle <= FLASH_ON_ONE_NODE && flash_board_fits((uint32_t) nranks, kind, element);
}

/* A message's step, which is told modulo that many, is all that tells its senders apart. */
bool mca_coll_flash_may_exchange(ompi_communicator_t *comm)
{
    return ompi_comm_size(comm) <= 1 << FLASH_TAG_STEP_BITS;
}

/* Whether messages are not for what ranks of one node do among themselves. */
static bool keeps_off(const mca_coll_flash_module_t *module)
{
    return module->on_node && !module->settings.on_node;
}

static bool goes_direct(flash_kind_t kind, size_t bytes, size_t element,
                        const mca_coll_flash_module_t *module, mca_coll_flash_obstacle_t obstacle)
{
    const mca_coll_flash_settings_t *settings = &module->settings;

    return kind == FLASH_REDUCE_SCATTER && element > 0 && obstacle < FLASH_ON_ONE_NODE &&
           bytes >= settings->direct_bytes &&
           (size_t) ompi_comm_size(module->comm) <= settings->direct_ranks &&
           mca_coll_flash_may_exchange(module->comm) && !keeps_off(module);
}

/*
 * Of allgathers Open MPI's own calls move no more bytes: these win by fewer messages alone, and of two
 * ranks not even by that. Three ranks have as many rounds as those calls have hops, and more messages.
 */
static bool doubles(flash_kind_t kind, size_t bytes, size_t element,
                    const mca_coll_flash_module_t *module, mca_coll_flash_obstacle_t obstacle)
{
    const mca_coll_flash_settings_t *settings = &module->settings;
    size_t nranks = (size_t) ompi_comm_size(module->comm);
    size_t gather = nranks == 2 ? 16 : 2;
    size_t most = settings->doubling_bytes / (kind == FLASH_ALLGATHER ? gather : 1);

    return element > 0 && obstacle < FLASH_ON_ONE_NODE && bytes > 0 && bytes <= most &&
           (nranks == 2 || nranks >= settings->doubling_ranks) && !keeps_off(module);
}

mca_coll_flash_path_t mca_coll_flash_choose_path(const char *name, flash_kind_t kind, size_t bytes,
                                                 size_t element,
                                                 const mca_coll_flash_module_t *module,
                                                 mca_coll_flash_obstacle_t obstacle)
{
    mca_coll_flash_path_t path = FLASH_PASSED_ON;

    if (obstacle == FLASH_NO_OBSTACLE) {
        obstacle = too_small(kind, bytes, module);
    }
    if (obstacle == FLASH_NO_OBSTACLE && keeps_off(module)) {
        obstacle = FLASH_ON_ONE_NODE;
    }
    if (obstacle == FLASH_NO_OBSTACLE) {
        path = FLASH_BY_RING;
    } else if (takes_board(kind, bytes, element, module, obstacle)) {
        path = FLASH_BY_BOARD;
    } else if (doubles(kind, bytes, element, module, obstacle)) {
        path = FLASH_BY_DOUBLING;
    } else if (goes_direct(kind, bytes, element, module, obstacle)) {
        path = FLASH_DIRECT;
    }
    tell(name, bytes, module->comm, ways[path], obstacle);
    return path;
}

mca_coll_flash_ticket_t mca_coll_flash_plain_ticket(mca_coll_flash_module_t *module,
                                                    mca_coll_flash_path_t path)
{
    switch (path) {
    case FLASH_BY_BOARD:
        return mca_coll_flash_board_ticket(module);
    case FLASH_BY_DOUBLING:
        return mca_coll_flash_doubling_ticket(module);
    default:
        return mca_coll_flash_ring_ticket(module);
    }
}

int mca_coll_flash_plain_refuse(mca_coll_flash_module_t *module, flash_kind_t kind,
                                mca_coll_flash_path_t path, int error, ompi_request_t **request)
{
    mca_coll_flash_request_t *refused =
        mca_coll_flash_request_new(module, mca_coll_flash_plain_ticket(module, path), kind);

    return refused == NULL ? error : mca_coll_flash_request_refuse(refused, error, request);
}
