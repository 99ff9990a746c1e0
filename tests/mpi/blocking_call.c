/*
 * blocking_call.c: see blocking_call.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "blocking_call.h"

#include "mpitest.h"

const char *const blocking_names[KINDS] = {
    "MPI_Allgather", "MPI_Allgatherv", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
    "MPI_Alltoall",  "MPI_Alltoallv",  "MPI_Bcast",          "MPI_Allreduce"};

enum { ALLTOALL = 4, BCAST = 6 };

static int64_t element(int rank, int index)
{
    return 1000003 * (int64_t) rank + index;
}

static int64_t sum_of(int ranks, int index)
{
    return 1000003 * ((int64_t) ranks * (ranks - 1) / 2) + (int64_t) ranks * index;
}

static bool gathers(const call_t *call)
{
    return call->kind < 2;
}

static bool exchanges(const call_t *call)
{
    return call->kind == ALLTOALL || call->kind == BLOCKING_ALLTOALLV;
}

/* The last rank's, which is no neighbour of the first one's on a longer ring. */
static int root_of(const call_t *call)
{
    return call->ranks - 1;
}

void blocking_make(call_t *call, int kind, MPI_Comm comm)
{
    *call = (call_t){.kind = kind, .comm = comm};
    MPI_Comm_rank(comm, &call->rank);
    MPI_Comm_size(comm, &call->ranks);
    call->counts = get_memory((size_t) call->ranks * sizeof(int));
    call->displs = get_memory((size_t) call->ranks * sizeof(int));
    call->send = get_memory((size_t) (call->ranks * COUNT + 1) * sizeof(int64_t));
    call->recv = get_memory((size_t) call->ranks * COUNT * sizeof(int64_t));
    for (int rank = 0; rank < call->ranks; rank++) {
        call->counts[rank] = COUNT;
        call->displs[rank] = rank * COUNT;
    }
    for (int k = 0; k <= call->ranks * COUNT; k++) {
        call->send[k] = element(call->rank, k);
    }
    memset(call->recv, -1, (size_t) call->ranks * COUNT * sizeof(int64_t));
    if (kind == BCAST && call->rank == root_of(call)) {
        memcpy(call->recv, call->send, (size_t) call->ranks * COUNT * sizeof(int64_t));
    }
}

int blocking_run(const call_t *c, int own)
{
    switch (c->kind) {
    case 0:
        return MPI_Allgather(c->send, own, MPI_INT64_T, c->recv, COUNT, MPI_INT64_T, c->comm);
    case 1:
        return MPI_Allgatherv(c->send, own, MPI_INT64_T, c->recv, c->counts, c->displs, MPI_INT64_T,
                              c->comm);
    case 2:
        return MPI_Reduce_scatter(c->send, c->recv, c->counts, MPI_INT64_T, MPI_SUM, c->comm);
    case 3:
        return MPI_Reduce_scatter_block(c->send, c->recv, COUNT, MPI_INT64_T, MPI_SUM, c->comm);
    case ALLTOALL:
        return MPI_Alltoall(c->send, COUNT, MPI_INT64_T, c->recv, COUNT, MPI_INT64_T, c->comm);
    case BLOCKING_ALLTOALLV:
        return MPI_Alltoallv(c->send, c->counts, c->displs, MPI_INT64_T, c->recv, c->counts,
                             c->displs, MPI_INT64_T, c->comm);
    case BCAST:
        return MPI_Bcast(c->recv, c->ranks * COUNT, MPI_INT64_T, root_of(c), c->comm);
    default:
        return MPI_Allreduce(c->send, c->recv, c->ranks * COUNT, MPI_INT64_T, MPI_SUM, c->comm);
    }
}

static int64_t wanted_of(const call_t *call, int index)
{
    return gathers(call)         ? element(index / COUNT, index % COUNT)
           : exchanges(call)     ? element(index / COUNT, call->rank * COUNT + index % COUNT)
           : call->kind == BCAST ? element(root_of(call), index)
                                 : sum_of(call->ranks, index);
}

void blocking_check(const call_t *call)
{
    bool whole = call->kind >= ALLTOALL || gathers(call);
    int first = whole ? 0 : call->rank * COUNT;
    int length = whole ? call->ranks * COUNT : COUNT;

    for (int k = 0; k < length; k++) {
        int64_t wanted = wanted_of(call, first + k);

        if (!check(call->recv[k] == wanted, "%s: element %d is %lld, not %lld",
                   blocking_names[call->kind], k, (long long) call->recv[k], (long long) wanted)) {
            return;
        }
    }
}

void blocking_free(call_t *call)
{
    free(call->counts);
    free(call->displs);
    free(call->send);
    free(call->recv);
}

void blocking_once(int kind, MPI_Comm comm)
{
    call_t call;

    blocking_make(&call, kind, comm);
    check_class(blocking_run(&call, COUNT), MPI_SUCCESS, blocking_names[kind]);
    blocking_check(&call);
    blocking_free(&call);
}
