/*
 * requests_operation.c: operations that are told apart by numbers, and what must come of them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "requests.h"

static bool is_gather(const operation_t *operation)
{
    return operation->number % 2 == 0;
}

static bool is_allreduce(const operation_t *operation)
{
    return operation->number % 4 == 3 && !passes_others_on();
}

static bool is_exchange(const operation_t *operation)
{
    return operation->number % 8 == 5 && !passes_others_on();
}

/* Every other one is that with counts, which MPI reads until the request ends. */
static void exchange(operation_t *operation, MPI_Comm comm, MPI_Request *request)
{
    if (operation->number % 16 == 5) {
        MPI_Ialltoall(operation->send, COUNT, MPI_INT64_T, operation->recv, COUNT, MPI_INT64_T,
                      comm, request);
        return;
    }
    operation->counts = get_memory((size_t) operation->size * sizeof(int));
    operation->displs = get_memory((size_t) operation->size * sizeof(int));
    for (int rank = 0; rank < operation->size; rank++) {
        operation->counts[rank] = COUNT;
        operation->displs[rank] = rank * COUNT;
    }
    MPI_Ialltoallv(operation->send, operation->counts, operation->displs, MPI_INT64_T,
                   operation->recv, operation->counts, operation->displs, MPI_INT64_T, comm,
                   request);
}

void requests_post(operation_t *operation, MPI_Comm comm, int number, MPI_Request *request)
{
    size_t blocks, elements;

    operation->comm = comm;
    operation->number = number;
    MPI_Comm_rank(comm, &operation->rank);
    MPI_Comm_size(comm, &operation->size);
    blocks = (size_t) operation->size;
    operation->counts = operation->displs = NULL;
    elements = blocks * COUNT;
    operation->send = get_memory(elements * sizeof(int64_t));
    operation->recv = get_memory(elements * sizeof(int64_t));
    for (size_t k = 0; k < elements; k++) {
        operation->send[k] = 1000 * number + 7 * operation->rank + (int64_t) k;
        operation->recv[k] = -1;
    }
    if (is_gather(operation)) {
        MPI_Iallgather(operation->send, COUNT, MPI_INT64_T, operation->recv, COUNT, MPI_INT64_T,
                       comm, request);
    } else if (is_exchange(operation)) {
        exchange(operation, comm, request);
    } else if (is_allreduce(operation)) {
        MPI_Iallreduce(operation->send, operation->recv, COUNT * operation->size, MPI_INT64_T,
                       MPI_SUM, comm, request);
    } else {
        MPI_Ireduce_scatter_block(operation->send, operation->recv, COUNT, MPI_INT64_T, MPI_SUM,
                                  comm, request);
    }
}

/* What element k of the result is. */
static int64_t wanted(const operation_t *operation, int k)
{
    int size = operation->size, first = is_allreduce(operation) ? 0 : operation->rank * COUNT;

    if (is_gather(operation)) {
        return 1000 * operation->number + 7 * (k / COUNT) + k % COUNT;
    }
    if (is_exchange(operation)) {
        return 1000 * operation->number + 7 * (k / COUNT) + first + k % COUNT;
    }
    return (int64_t) size * (1000 * operation->number + first + k) + 7 * size * (size - 1) / 2;
}

/* Whatever was read too early is read again. */
LOOKS_AHEAD bool requests_has_arrived(const operation_t *operation)
{
    bool all = is_gather(operation) || is_allreduce(operation) || is_exchange(operation);
    int count = all ? operation->size * COUNT : COUNT;

    for (int k = 0; k < count; k++) {
        if (((volatile int64_t *) operation->recv)[k] != wanted(operation, k)) {
            return false;
        }
    }
    return true;
}

void requests_finish(operation_t *operation, const char *what)
{
    check(requests_has_arrived(operation), "%s: operation %d is wrong", what, operation->number);
    free(operation->send);
    free(operation->recv);
    free(operation->counts);
    free(operation->displs);
}
