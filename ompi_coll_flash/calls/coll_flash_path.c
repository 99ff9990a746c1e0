/*
 * coll_flash_path.c: which algorithm serves a call: of those that can, the one that costs least.
 *
 * All that decides is equal on all ranks: the call's arguments that MPI makes equal, what the ranks
 * have agreed on, and the communicator's info keys.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"
#include "recdbl/coll_flash_recdbl.h"
#include "ring/coll_flash_setup.h"
#include "shm/coll_flash_shm.h"

/* ------------------------------------------------------------ the algorithms */

/* Where a call is made. */
typedef struct place {
    uint32_t ranks;
    bool node; /* all ranks share one */
    bool shm;  /* and have memory there for this communicator */
    const mca_coll_flash_settings_t *settings;
} place_t;

typedef bool can_serve_fn(const mca_coll_flash_call_t *call, const place_t *place);

static place_t place_of(const mca_coll_flash_module_t *module)
{
    return (place_t){.ranks = (uint32_t) ompi_comm_size(module->comm),
                     .node = module->on_node,
                     .shm = module->shm != NULL,
                     .settings = &module->settings};
}

/* Whether messages are not for what ranks of one node do among themselves. */
static bool keeps_off(const place_t *place)
{
    return place->node && !place->settings->on_node;
}

static bool fallback_can(const mca_coll_flash_call_t *call, const place_t *place)
{
    (void) call;
    (void) place;
    return true;
}

/* A message's step, which is told modulo that many, is all that tells its senders apart. */
static bool may_exchange(uint32_t ranks)
{
    return ranks <= FLASH_EXCHANGE_RANKS;
}

/* Some calls go to each other rank, as what is pairwise. */
static bool ring_can(const mca_coll_flash_call_t *call, const place_t *place)
{
    bool wanted = place->settings->algorithm == FLASH_RING;

    if (flash_schedule_exchanges(call->kind) &&
        (!may_exchange(place->ranks) || (!wanted && place->ranks > FLASH_PAIRWISE_RANKS))) {
        return false;
    }
    return wanted || !keeps_off(place);
}

bool mca_coll_flash_may_exchange(ompi_communicator_t *comm)
{
    return may_exchange((uint32_t) ompi_comm_size(comm));
}

static bool pairwise_can(const mca_coll_flash_call_t *call, const place_t *place)
{
    bool wanted = place->settings->algorithm == FLASH_PAIRWISE;

    return call->kind == FLASH_REDUCE_SCATTER && may_exchange(place->ranks) &&
           (wanted ||
            (call->element > 0 && place->ranks <= FLASH_PAIRWISE_RANKS && !keeps_off(place)));
}

/* Whether each rank has a block, which it contributes or gets. */
static bool has_blocks(const mca_coll_flash_call_t *call)
{
    return call->kind == FLASH_ALLGATHER || call->kind == FLASH_REDUCE_SCATTER;
}

/*
 * Blocking calls are left out: these messages take numbers of libnbc's, which Open MPI's own
 * non-blocking calls, as those of MPI_Comm_idup, take at times that differ from rank to rank. Open
 * MPI's blocking calls use recursive doubling anyway, without these numbers. Three ranks are left
 * out unless asked for: recursive doubling has two rounds there, one behind the other, and was
 * measured no faster at any size; the formula of costs counts as many doublings for them as for
 * four.
 */
static bool recdbl_can(const mca_coll_flash_call_t *call, const place_t *place)
{
    bool wanted = place->settings->algorithm == FLASH_RECDBL;

    return mca_coll_flash_params.recdbl && !call->blocking && has_blocks(call) &&
           call->element > 0 && call->bytes > 0 && call->bytes <= FLASH_RECDBL_MOST &&
           (wanted || (place->ranks != 3 && !keeps_off(place)));
}

/*
 * An allgather of two ranks with long blocks that may not be read is left out: shared memory copies
 * each byte twice, Open MPI once. With more ranks, all others read what one rank has copied.
 */
static bool shm_can(const mca_coll_flash_call_t *call, const place_t *place)
{
    size_t use = place->settings->shm_use;

    return place->shm && use != FLASH_SHM_NO && has_blocks(call) && call->element > 0 &&
           flash_shm_fits(place->ranks, call->kind, call->element) &&
           (call->kind != FLASH_ALLGATHER || place->ranks > 2 || use != FLASH_SHM_AUTO ||
            place->settings->algorithm == FLASH_SHM || mca_coll_flash_params.shm_readable ||
            call->bytes / 2 <= FLASH_SHM_READ_ABOVE);
}

static can_serve_fn *const algorithms[FLASH_PATHS] = {[FLASH_FALLBACK] = fallback_can,
                                                      [FLASH_RING] = ring_can,
                                                      [FLASH_PAIRWISE] = pairwise_can,
                                                      [FLASH_RECDBL] = recdbl_can,
                                                      [FLASH_SHM] = shm_can};

/* ------------------------------------------------------------------- choosing */

static uint64_t cost_of(mca_coll_flash_path_t path, const mca_coll_flash_call_t *call,
                        const place_t *place)
{
    size_t row = mca_coll_flash_cost_call(call->kind, call->blocking);

    return algorithms[path](call, place)
               ? mca_coll_flash_cost(place->node, row, path, call->bytes, place->ranks)
               : FLASH_NO_COST;
}

/* Of equal costs, that of the path that stands first. */
static mca_coll_flash_path_t cheapest(const mca_coll_flash_call_t *call, const place_t *place)
{
    mca_coll_flash_path_t best = FLASH_FALLBACK;
    uint64_t least = cost_of(best, call, place);

    for (mca_coll_flash_path_t path = FLASH_FALLBACK + 1; path < FLASH_PATHS; path++) {
        uint64_t cost = cost_of(path, call, place);

        if (cost < least) {
            best = path;
            least = cost;
        }
    }
    return best;
}

/* Whether it goes by messages of flash's own, which UCX moves. */
static bool by_messages(mca_coll_flash_path_t path)
{
    return path == FLASH_RING || path == FLASH_PAIRWISE;
}

/* Of a call whose cost another algorithm's is below. */
static mca_coll_flash_reason_t why_no_ring(const mca_coll_flash_call_t *call, const place_t *place)
{
    if (!ring_can(call, place)) {
        return keeps_off(place) ? FLASH_ON_ONE_NODE : FLASH_TOO_MANY_RANKS;
    }
    return cost_of(FLASH_RING, call, place) == FLASH_NO_COST ? FLASH_COST_UNKNOWN
                                                             : FLASH_COSTS_MORE;
}

/* The algorithm, and why it is not the ring. */
static mca_coll_flash_path_t choose(const mca_coll_flash_call_t *call, const place_t *place,
                                    mca_coll_flash_reason_t *reason)
{
    mca_coll_flash_path_t wanted = (mca_coll_flash_path_t) place->settings->algorithm, path;

    *reason = call->reason;
    if (*reason == FLASH_NO_REASON && call->blocking &&
        place->settings->blocking == FLASH_BLOCKING_NO) {
        *reason = FLASH_NOT_BLOCKING;
    }
    if (*reason != FLASH_NO_REASON) {
        return FLASH_FALLBACK;
    }
    if (wanted != FLASH_AUTO && algorithms[wanted](call, place)) {
        *reason = wanted == FLASH_RING ? FLASH_NO_REASON : FLASH_NOT_WANTED;
        return wanted;
    }
    path = cheapest(call, place);
    if (path != FLASH_RING) {
        *reason = why_no_ring(call, place);
    }
    return path;
}

mca_coll_flash_path_t mca_coll_flash_find_path(const mca_coll_flash_call_t *call,
                                               const mca_coll_flash_module_t *module,
                                               mca_coll_flash_reason_t *reason)
{
    const place_t place = place_of(module);

    return choose(call, &place, reason);
}

/* Whether the call goes by the ring if each block has so many bytes. */
static bool block_goes_by_ring(mca_coll_flash_call_t call, size_t bytes, const place_t *place)
{
    mca_coll_flash_reason_t reason;

    call.bytes = bytes * place->ranks;
    return choose(&call, place, &reason) == FLASH_RING;
}

static size_t ring_from(const mca_coll_flash_call_t *call, const place_t *place)
{
    size_t shorter = 0, longer = FLASH_LONG_BLOCK;

    if (!block_goes_by_ring(*call, longer, place)) {
        return SIZE_MAX;
    }
    while (longer - shorter > 1) {
        size_t between = shorter + (longer - shorter) / 2;

        if (block_goes_by_ring(*call, between, place)) {
            longer = between;
        } else {
            shorter = between;
        }
    }
    return longer;
}

size_t mca_coll_flash_ring_from(const mca_coll_flash_call_t *call,
                                const mca_coll_flash_module_t *module)
{
    const mca_coll_flash_settings_t blocking = mca_coll_flash_blocking_settings(&module->settings);
    place_t place = place_of(module);

    if (call->blocking) {
        place.settings = &blocking;
    }
    return ring_from(call, &place);
}

mca_coll_flash_setup_kind_t mca_coll_flash_needed_setup(const mca_coll_flash_module_t *module,
                                                        flash_kind_t kind)
{
    return mca_coll_flash_setup_for(kind, kind == FLASH_REDUCE_SCATTER &&
                                              module->settings.algorithm == FLASH_PAIRWISE &&
                                              mca_coll_flash_may_exchange(module->comm));
}

/* Where the communicator cannot be set up, its calls by messages fall back. */
static void apply_setup(mca_coll_flash_setup_state_t state, mca_coll_flash_path_t *path,
                        mca_coll_flash_reason_t *reason)
{
    if (state == FLASH_SETUP_REFUSED) {
        *path = FLASH_FALLBACK;
        *reason = FLASH_NOT_SET_UP;
    }
}

/* In a call that may wait for other ranks. */
static void await_setup(const mca_coll_flash_call_t *call, mca_coll_flash_module_t *module,
                        mca_coll_flash_path_t *path, mca_coll_flash_reason_t *reason)
{
    if (module->late && by_messages(*path)) {
        apply_setup(mca_coll_flash_setup_wait(
                        module, mca_coll_flash_setup_for(call->kind, *path == FLASH_PAIRWISE)),
                    path, reason);
    }
}

mca_coll_flash_path_t mca_coll_flash_choose_path(const mca_coll_flash_call_t *call,
                                                 mca_coll_flash_module_t *module,
                                                 mca_coll_flash_setup_state_t *state)
{
    mca_coll_flash_reason_t reason;
    mca_coll_flash_path_t path = mca_coll_flash_find_path(call, module, &reason);

    if (state == NULL) {
        await_setup(call, module, &path, &reason);
    } else if (module->late && !module->holds && by_messages(path)) {
        path = FLASH_FALLBACK;
        reason = FLASH_NOT_HELD;
    } else if (module->late && by_messages(path)) {
        *state = mca_coll_flash_setup_look(
            module, mca_coll_flash_setup_for(call->kind, path == FLASH_PAIRWISE));
        if (*state == FLASH_SETUP_PENDING) {
            return path;
        }
        apply_setup(*state, &path, &reason);
    }
    mca_coll_flash_tell_call(call, module->comm, path, reason);
    return path;
}

/* ------------------------------------------------------------- blocking calls */

bool mca_coll_flash_may_block(const mca_coll_flash_module_t *module, flash_kind_t kind)
{
    const mca_coll_flash_settings_t settings = mca_coll_flash_blocking_settings(&module->settings);

    return settings.blocking != FLASH_BLOCKING_NO && settings.algorithm != FLASH_FALLBACK &&
           (settings.algorithm != FLASH_AUTO ||
            mca_coll_flash_has_costs(module->on_node, mca_coll_flash_cost_call(kind, true)));
}

mca_coll_flash_path_t mca_coll_flash_choose_blocking_path(const mca_coll_flash_call_t *call,
                                                          mca_coll_flash_module_t *module,
                                                          const mca_coll_flash_settings_t *settings)
{
    place_t place = place_of(module);
    mca_coll_flash_reason_t reason;
    mca_coll_flash_path_t path;

    place.settings = settings;
    path = choose(call, &place, &reason);
    await_setup(call, module, &path, &reason);
    if (path != FLASH_FALLBACK) {
        mca_coll_flash_tell_call(call, module->comm, path, reason);
    }
    return path;
}

/* -------------------------------------------------------- without a call */

/*
 * Shared memory is left out: within a node it costs less than the ring up to large sizes, so that
 * few calls would keep their callbacks between the steps of a ring, where they hide the transfer.
 */
bool mca_coll_flash_merge_pays(const mca_coll_flash_call_t *call,
                               const mca_coll_flash_module_t *module)
{
    const place_t place = place_of(module);
    size_t row = mca_coll_flash_cost_call(call->kind, false);
    uint64_t ring = mca_coll_flash_cost(place.node, row, FLASH_RING, call->bytes, place.ranks);
    bool pays = false;

    if (module->settings.algorithm != FLASH_AUTO) {
        return module->settings.algorithm == FLASH_FALLBACK;
    }
    for (mca_coll_flash_path_t path = FLASH_FALLBACK; path < FLASH_PATHS; path++) {
        if (path != FLASH_RING && path != FLASH_SHM) {
            uint64_t cost = cost_of(path, call, &place);

            pays |= cost != FLASH_NO_COST && cost <= ring;
        }
    }
    return pays;
}

/* The call with counts whose blocks go as those of that kind do; NULL: there is none. */
static const char *call_with_counts(const mca_coll_flash_call_t *call)
{
    switch (call->kind) {
    case FLASH_ALLTOALL:
        return call->blocking ? "MPI_Alltoallv" : "MPI_Ialltoallv";
    case FLASH_GATHER:
        return "MPI_Igatherv";
    case FLASH_SCATTER:
        return "MPI_Iscatterv";
    default:
        return NULL;
    }
}

void mca_coll_flash_explain(const mca_coll_flash_call_t *call, uint32_t ranks, bool node,
                            FILE *text)
{
    const mca_coll_flash_settings_t all = mca_coll_flash_settings_of_parameters();
    const mca_coll_flash_settings_t settings =
        call->blocking ? mca_coll_flash_blocking_settings(&all) : all;
    const place_t place = {.ranks = ranks, .node = node, .shm = node, .settings = &settings};
    mca_coll_flash_reason_t reason;
    mca_coll_flash_path_t chosen = choose(call, &place, &reason);

    for (mca_coll_flash_path_t path = FLASH_FALLBACK; path < FLASH_PATHS; path++) {
        uint64_t cost = cost_of(path, call, &place);
        const char *name = mca_coll_flash_path_names[path];

        if (cost != FLASH_NO_COST) {
            fprintf(text, "%-10s %12.1f us%s\n", name, (double) cost / 1e3,
                    path == chosen ? "  <- chosen" : "");
        } else {
            fprintf(text, "%-10s %15s%s\n", name,
                    algorithms[path](call, &place) ? "no cost known" : "cannot serve",
                    path == chosen ? "  <- chosen" : "");
        }
    }
    if (node) {
        fprintf(text, "on_node %s\n", settings.on_node ? "yes" : "no");
    }
    if (call->blocking) {
        fprintf(text, "blocking %s\n", mca_coll_flash_blocking_names[settings.blocking]);
    }
    if (call_with_counts(call) != NULL && call->reason == FLASH_NO_REASON &&
        ring_from(call, &place) != SIZE_MAX) {
        fprintf(text, "of %s: ring for blocks of %zu bytes and more\n", call_with_counts(call),
                ring_from(call, &place));
    }
    mca_coll_flash_print_path(text, chosen, reason);
}
