/*
 * keys_algorithms.c: cases of test_keys: the algorithm of each call, and that a persistent request
 * keeps the one that it was made with.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdatomic.h>

#include "keys.h"
#include "mpitest.h"
#include "persistent.h"
#include "pvars.h"

static atomic_bool foreign; /* this rank has added to another one's block */

/*
 * In block b all elements are b. By a ring, of three ranks and more, the sums go from rank to rank.
 */
static void look(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const int *from = in;
    int *to = inout;

    (void) type;
    for (int k = 0; k < *length; k++) {
        if (from[k] != world_rank) {
            atomic_store_explicit(&foreign, true, memory_order_relaxed);
        }
        to[k] = from[k];
    }
}

enum { ELEMENTS = 1024 };

typedef struct reduction {
    int *send, recv[ELEMENTS];
    MPI_Op op;
} reduction_t;

static void reduction_init(reduction_t *reduction)
{
    MPI_Op_create(look, true, &reduction->op);
    reduction->send = get_memory((size_t) world_size * sizeof(reduction->recv));
    for (int k = 0; k < world_size * ELEMENTS; k++) {
        reduction->send[k] = k / ELEMENTS;
    }
}

static void reduction_free(reduction_t *reduction)
{
    MPI_Op_free(&reduction->op);
    free(reduction->send);
}

/* Waits for it. Whether it went by a ring: whether a rank has added to another one's block. */
static bool goes_by_ring(reduction_t *reduction, MPI_Request *request)
{
    int found;

    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (*request != MPI_REQUEST_NULL) {
        see_request(*request);
    }
    for (int k = 0; k < ELEMENTS; k++) {
        if (!check(reduction->recv[k] == world_rank, "element %d is wrong", k)) {
            break;
        }
    }
    found = atomic_exchange(&foreign, false);
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return found != 0;
}

void keys_pairwise(void)
{
    static const char *const values[] = {"ring", "pairwise", "ring", "pairwise"};
    MPI_Comm comm = keys_dup_that_passes_on();
    reduction_t reduction;
    MPI_Request request;

    reduction_init(&reduction);
    for (size_t k = 0; k < LENGTH(values); k++) {
        bool ring = strcmp(values[k], "ring") == 0 && world_size > 2;

        keys_set(comm, "algorithm", values[k]);
        MPI_Ireduce_scatter_block(reduction.send, reduction.recv, ELEMENTS, MPI_INT, reduction.op,
                                  comm, &request);
        check(goes_by_ring(&reduction, &request) == ring, "algorithm %s is not heard", values[k]);
    }
    reduction_free(&reduction);
    MPI_Comm_free(&comm);
}

/* A request made with the first algorithm, and started when the other one holds. */
static void keeps_algorithm(MPI_Comm comm, const char *first, const char *other)
{
    bool ring = strcmp(first, "ring") == 0 && world_size > 2;
    reduction_t reduction;
    MPI_Request request;

    reduction_init(&reduction);
    keys_set(comm, "algorithm", first);
    MPI_Reduce_scatter_block_init(reduction.send, reduction.recv, ELEMENTS, MPI_INT, reduction.op,
                                  comm, MPI_INFO_NULL, &request);
    keys_set(comm, "algorithm", other);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Start(&request);
        check(goes_by_ring(&reduction, &request) == ring, "made with algorithm %s, and not kept",
              first);
    }
    MPI_Request_free(&request);
    reduction_free(&reduction);
}

/*
 * A ring of segments of 64 bytes, of ranks that start it before the keys change, and after. With
 * others, it would be passed on, or its segments would not fit together.
 */
static void keep_ring(MPI_Comm comm)
{
    static const char *const others[][2] = {
        {"segment_bytes", "5000"}, {"algorithm", "fallback"}, {"on_node", "false"}};
    int *send = get_memory(BLOCK), *recv = get_memory((size_t) world_size * BLOCK);
    int elements = BLOCK / (int) sizeof(int);
    unsigned long long before[WAYS], after[WAYS];
    MPI_Request request;

    keys_set(comm, "segment_bytes", "64");
    keys_count(before);
    MPI_Allgather_init(send, elements, MPI_INT, recv, elements, MPI_INT, comm, MPI_INFO_NULL,
                       &request);
    for (size_t turn = 0; turn < LENGTH(others); turn++) {
        bool early = ((size_t) world_rank + turn) % 2 == 0, good = true;

        for (int k = 0; k < elements; k++) {
            send[k] = keys_element(world_rank, k) + (int) turn;
        }
        if (early) {
            MPI_Start(&request);
        }
        keys_set(comm, others[turn][0], others[turn][1]);
        if (!early) {
            MPI_Start(&request);
        }
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "a persistent allgather");
        see_request(request);
        for (int k = 0; k < world_size * elements; k++) {
            good &= recv[k] == keys_element(k / elements, k % elements) + (int) turn;
        }
        check(good, "%s has changed: a persistent allgather is wrong", others[turn][0]);
    }
    keys_count(after);
    check(after[RING] == before[RING] + 1 && after[PASSED_ON] == before[PASSED_ON],
          "%llu rings, %llu calls passed on", after[RING] - before[RING],
          after[PASSED_ON] - before[PASSED_ON]);
    check(keys_way_of(comm, GATHER, BLOCK) == PASSED_ON, "the keys do not hold for other calls");
    MPI_Request_free(&request);
    free(send);
    free(recv);
}

static void keep_all(void)
{
    MPI_Comm comm = keys_dup_that_passes_on();

    keys_open_counters();
    keeps_algorithm(comm, "ring", "pairwise");
    keeps_algorithm(comm, "pairwise", "ring");
    keys_set(comm, "algorithm", "ring");
    keep_ring(comm);
    keys_close_counters();
    MPI_Comm_free(&comm);
}

void keys_persistent(void)
{
    pvars_with(keep_all);
}
