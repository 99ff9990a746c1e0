/*
 * test_bcast.c: MPI_Ibcast and its persistent form: each root, types that differ from rank to rank,
 * lengths, ranks that lack their buffer, and broadcasts that Open MPI makes itself.
 *
 * Each rank works out what its buffer must hold in the end, gaps and guards included, and compares
 * all of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "chain.h"
#include "persistent.h"
#include "pvars.h"
#include "typed.h"

enum { CANARY = 0x5a, OWN_WAY = -1 };

typedef struct call {
    typed_t typed;
    int units, root;
    bool persistent;
    unsigned salt;
} call_t;

static size_t elements_of(const call_t *call)
{
    return (size_t) (call->units * call->typed.per_unit);
}

/* The block with a margin on both sides, all canaries. */
static unsigned char *make_buffer(const call_t *call, size_t *bytes)
{
    *bytes = elements_of(call) * (size_t) call->typed.extent + 2 * typed_margin(&call->typed);
    return get_memory(*bytes);
}

static void write_block(const call_t *call, unsigned char *buffer, unsigned salt)
{
    typed_write(&call->typed, buffer + typed_margin(&call->typed), elements_of(call), call->root,
                salt);
}

static void start(const call_t *call, void *buffer, MPI_Request *request)
{
    int count = (int) elements_of(call);

    if (!call->persistent) {
        MPI_Ibcast(buffer, count, call->typed.type, call->root, MPI_COMM_WORLD, request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        MPI_Bcast_init(buffer, count, call->typed.type, call->root, MPI_COMM_WORLD, MPI_INFO_NULL,
                       request);
    }
    MPI_Start(request);
}

static void run(call_t *call, int signature, int way)
{
    size_t bytes;
    unsigned char *buffer, *wanted;
    MPI_Request request = MPI_REQUEST_NULL;

    typed_make(&call->typed, signature,
               way == OWN_WAY ? (world_rank + (int) call->salt) % WAYS : way);
    buffer = make_buffer(call, &bytes);
    wanted = make_buffer(call, &bytes);
    for (unsigned round = 0; round < (call->persistent ? 3 : 1); round++) {
        memset(wanted, CANARY, bytes);
        memset(buffer, CANARY, bytes);
        write_block(call, wanted, call->salt + round);
        if (world_rank == call->root) {
            write_block(call, buffer, call->salt + round);
        }
        start(call, buffer + typed_margin(&call->typed), &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(memcmp(buffer, wanted, bytes) == 0,
              "signature %d, way %d, %d units, root %d%s, salt %u: wrong", signature, way,
              call->units, call->root, call->persistent ? ", persistent" : "", call->salt + round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    typed_free(&call->typed);
    free(buffer);
    free(wanted);
}

static unsigned salts; /* alike on all ranks, which run the same calls */

static void run_forms(int signature, int way, int units, int root)
{
    for (int form = 0; form < 2; form++) {
        call_t call = {.units = units, .root = root, .persistent = form == 1, .salt = ++salts};

        run(&call, signature, way);
    }
}

static void roots(void)
{
    static const int units[] = {0, 1, 2, 3, 17, 513};

    for (int root = 0; root < world_size; root++) {
        for (size_t k = 0; k < LENGTH(units); k++) {
            int signature = (int) ((size_t) root + k) % SIGNATURES;

            if (is_turn(k + (size_t) root)) {
                run_forms(signature, WAY_PREDEFINED, units[k], root);
            }
        }
    }
}

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int way = 1; way < WAYS; way++) {
            if (is_turn((size_t) (signature + way))) {
                run_forms(signature, way, 3, way % world_size);
                run_forms(signature, way, 41, (way + 1) % world_size);
            }
        }
    }
}

/* Each rank describes the data in its own way. */
static void signatures(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int units = 1, k = 0; units <= 1000; units *= 10, k++) {
            if (is_turn((size_t) (signature + k))) {
                run_forms(signature, OWN_WAY, units, (signature + k) % world_size);
            }
        }
    }
}

/* A block in several segments. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 3000000 : 1100000;
    const int units = bytes / (TYPED_BASICS * 8) + 1;

    run_forms(SIGNATURE_INT64, WAY_PREDEFINED, units, 0);
    run_forms(SIGNATURE_DOUBLE, OWN_WAY, units / 2, world_size - 1);
}

/* From all roots at a time, and more of them on one rank before others have begun. */
static void many(void)
{
    enum { ROUNDS = 20, COUNT = 600 };
    int64_t *blocks = get_memory((size_t) (ROUNDS * world_size) * COUNT * sizeof(int64_t));
    MPI_Request *requests = get_memory((size_t) (ROUNDS * world_size) * sizeof(*requests));
    int calls = ROUNDS * world_size;

    for (int call = 0; call < calls; call++) {
        for (int k = 0; k < COUNT; k++) {
            bool root = world_rank == call % world_size;

            blocks[call * COUNT + k] = root ? 1000 * call + k : -1;
        }
        MPI_Ibcast(blocks + call * COUNT, call % 7 == 3 ? COUNT / 2 : COUNT, MPI_INT64_T,
                   call % world_size, MPI_COMM_WORLD, &requests[call]);
    }
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
    for (int call = 0; call < calls; call++) {
        for (int k = 0; k < (call % 7 == 3 ? COUNT / 2 : COUNT); k++) {
            if (!check(blocks[call * COUNT + k] == 1000 * call + k, "call %d: element %d is wrong",
                       call, k)) {
                break;
            }
        }
    }
    free(blocks);
    free(requests);
}

/* Freed as soon as the call has begun. */
static void handles_gone(void)
{
    call_t call = {.units = 3000, .root = world_size - 1, .salt = ++salts};
    size_t bytes;
    unsigned char *buffer, *wanted;
    MPI_Request request;
    MPI_Comm comm;

    typed_make(&call.typed, SIGNATURE_INT32, WAY_VECTOR);
    buffer = make_buffer(&call, &bytes);
    wanted = make_buffer(&call, &bytes);
    memset(wanted, CANARY, bytes);
    memset(buffer, CANARY, bytes);
    write_block(&call, wanted, call.salt);
    if (world_rank == call.root) {
        write_block(&call, buffer, call.salt);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Ibcast(buffer + typed_margin(&call.typed), (int) elements_of(&call), call.typed.type,
               call.root, comm, &request);
    MPI_Comm_free(&comm);
    typed_free(&call.typed);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(memcmp(buffer, wanted, bytes) == 0,
          "wrong, on a communicator and of a type that are gone");
    free(buffer);
    free(wanted);
}

/*
 * Some ranks have no elements, and others elements without data: the signatures are equal, and no
 * rank may take part in an operation that another one has not begun.
 */
static void nothing(void)
{
    MPI_Datatype none;
    MPI_Request request;
    int64_t canary = -1, sum, mine = world_rank;

    MPI_Type_contiguous(0, MPI_INT64_T, &none);
    MPI_Type_commit(&none);
    for (int root = 0; root < world_size; root++) {
        bool no_elements = (world_rank + root) % 2 == 0;

        MPI_Ibcast(&canary, no_elements ? 0 : 3, none, root, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(canary == -1 && sum == (int64_t) world_size * (world_size - 1) / 2,
              "root %d: the next operation is wrong", root);
    }
    MPI_Type_free(&none);
}

/* ------------------------------------------------------------ a rank refuses */

enum { MOST = 70000 };
static int64_t data[MOST];

static int start_lacking(int root, int count, bool lacks, MPI_Comm comm, MPI_Request *request)
{
    for (int k = 0; k < count; k++) {
        data[k] = world_rank == root ? 10 * root + k : -1;
    }
    return MPI_Ibcast(lacks ? NULL : data, count, MPI_INT64_T, root, comm, request);
}

static bool is_right(int root, int count)
{
    for (int k = 0; k < count; k++) {
        if (data[k] != 10 * root + k) {
            return false;
        }
    }
    return true;
}

/* All ranks behind the one that lacks its buffer lack the block, and no others. */
static void no_buffer(void)
{
    static const int counts[] = {10, MOST};
    int behind = world_size * (world_size - 1) / 2 * world_size;

    for (size_t k = 0; k < LENGTH(counts); k++) {
        chain_refuse("Ibcast", counts[k], start_lacking, is_right, behind, false);
    }
}

/* ------------------------------------------------- calls that Open MPI makes itself */

/* Two inter-communicators between the halves of MPI_COMM_WORLD, which has two ranks at least. */
static void connect_halves(void)
{
    MPI_Comm half, inter, copy;
    bool upper = world_rank >= world_size / 2;

    MPI_Comm_split(MPI_COMM_WORLD, upper, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : world_size / 2, 7, &inter);
    MPI_Comm_dup(inter, &copy);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void connect_and_bcast(void)
{
    static const char *const names[] = {"coll_flash_ring_calls", "coll_flash_fallback_calls"};
    MPI_T_pvar_handle counters[LENGTH(names)];
    MPI_Request request;
    int mine = world_rank == 0 ? 7 : -1, least = -1;

    for (size_t k = 0; k < LENGTH(names); k++) {
        counters[k] = pvar_of(names[k], MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    }
    connect_halves();
    MPI_Ibcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(mine == 7, "broadcast: %d", mine);
    MPI_Ireduce(&world_rank, &least, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(least == (world_rank == 0 ? 0 : -1), "the least rank: %d", least);
    for (size_t k = 0; k < LENGTH(names); k++) {
        check(pvar_count(counters[k]) == 0, "%s has counted Open MPI's own calls", names[k]);
        pvar_free(&counters[k]);
    }
}

/*
 * By an int's broadcasts and reduces Open MPI agrees on the number of an inter-communicator, each rank
 * in an order of its own: not counted, whatever serves the user's.
 */
static void uncounted(void)
{
    pvars_with(connect_and_bcast);
}

TEST_PROGRAM(test_bcast, MPI_THREAD_SINGLE, {"roots", roots}, {"types", types},
             {"signatures", signatures}, {"big", big}, {"many", many},
             {"handles_gone", handles_gone}, {"nothing", nothing}, {"no_buffer", no_buffer},
             {"uncounted", uncounted});
