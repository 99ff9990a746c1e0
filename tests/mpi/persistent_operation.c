/*
 * persistent_operation.c: see persistent_operation.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "persistent_operation.h"

static const char *const names[] = {
    "Allgather_init", "Allgatherv_init", "Reduce_scatter_init", "Reduce_scatter_block_init",
    "Allreduce_init", "Alltoall_init",   "Alltoallv_init"};
enum { CANARY = -77 };

static bool is_gather(const operation_t *operation)
{
    return operation->kind == ALLGATHER || operation->kind == ALLGATHERV;
}

/* Each rank has another block for each. */
static bool exchanges(const operation_t *operation)
{
    return operation->kind == ALLTOALL || operation->kind == ALLTOALLV;
}

/* What `rank` contributes at an element of its block, or of all blocks, in the start `round`. */
static int64_t contribution(int rank, int element, int round)
{
    return 1000003 * (int64_t) round + 101 * rank + element;
}

/*
 * Blocks of `count`, or unequal ones, those of an allgather in reverse order with gaps between. An
 * allreduce's are all of them the one vector.
 */
static void place_blocks(operation_t *operation, int count)
{
    bool equal = operation->kind != ALLGATHERV && operation->kind != REDUCE_SCATTER;
    int size = operation->size, next = 0;

    operation->counts = get_memory((size_t) size * sizeof(int));
    operation->displs = get_memory((size_t) size * sizeof(int));
    for (int k = 0; k < size; k++) {
        int rank = operation->kind == ALLGATHERV ? size - 1 - k : k;

        operation->counts[rank] = equal ? count : rank % 3 == 1 ? 0 : count + 3 * rank;
        operation->displs[rank] = operation->kind == ALLREDUCE ? 0 : next;
        next += operation->counts[rank] + (operation->kind == ALLGATHERV);
    }
    operation->length = operation->kind == ALLREDUCE ? count : next;
}

static void make_request(operation_t *operation)
{
    int own = operation->counts[operation->rank];
    bool sends_here = operation->send_place == IN_HOST, here = operation->recv_place == IN_HOST;
    const void *send = operation->in_place ? MPI_IN_PLACE
                       : sends_here        ? operation->send
                                           : operation->sent.data;
    void *recv = here ? operation->recv : operation->received.data;
    MPI_Op op = operation->op == NULL ? MPI_SUM : operation->op;

    switch (operation->kind) {
    case ALLGATHER:
        MPI_Allgather_init(send, own, MPI_INT64_T, recv, own, MPI_INT64_T, operation->comm,
                           MPI_INFO_NULL, &operation->request);
        break;
    case ALLGATHERV:
        MPI_Allgatherv_init(send, own, MPI_INT64_T, recv, operation->counts, operation->displs,
                            MPI_INT64_T, operation->comm, MPI_INFO_NULL, &operation->request);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_init(send, recv, operation->counts, MPI_INT64_T, op, operation->comm,
                                MPI_INFO_NULL, &operation->request);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block_init(send, recv, own, MPI_INT64_T, op, operation->comm,
                                      MPI_INFO_NULL, &operation->request);
        break;
    case ALLREDUCE:
        MPI_Allreduce_init(send, recv, own, MPI_INT64_T, op, operation->comm, MPI_INFO_NULL,
                           &operation->request);
        break;
    case ALLTOALLV:
        MPI_Alltoallv_init(send, operation->counts, operation->displs, MPI_INT64_T, recv,
                           operation->counts, operation->displs, MPI_INT64_T, operation->comm,
                           MPI_INFO_NULL, &operation->request);
        break;
    default:
        MPI_Alltoall_init(send, own, MPI_INT64_T, recv, own, MPI_INT64_T, operation->comm,
                          MPI_INFO_NULL, &operation->request);
    }
}

void operation_make(operation_t *operation, MPI_Comm comm, int kind, bool in_place, int count)
{
    operation_make_like(operation, &(operation_t){.comm = comm, .kind = kind, .in_place = in_place},
                        count);
}

void operation_make_like(operation_t *operation, const operation_t *like, int count)
{
    size_t bytes;

    *operation = *like;
    MPI_Comm_rank(like->comm, &operation->rank);
    MPI_Comm_size(like->comm, &operation->size);
    place_blocks(operation, count);
    bytes = (size_t) operation->length * sizeof(int64_t);
    operation->send = get_memory(bytes);
    operation->recv = get_memory(bytes);
    operation->wanted = get_memory(bytes);
    if (operation->send_place != IN_HOST) {
        operation->sent = buffer_make(operation->send_place, bytes);
    }
    if (operation->recv_place != IN_HOST) {
        operation->received = buffer_make(operation->recv_place, bytes);
    }
    make_request(operation);
}

void operation_fill(operation_t *operation, int round)
{
    int rank = operation->rank, size = operation->size, own = operation->counts[rank];
    int64_t *data = operation->send;

    for (int k = 0; k < operation->length; k++) {
        operation->recv[k] = operation->wanted[k] = CANARY;
    }
    if (operation->in_place) {
        data = operation->recv + (is_gather(operation) ? operation->displs[rank] : 0);
    }
    for (int k = 0; k < (is_gather(operation) ? own : operation->length); k++) {
        data[k] = contribution(rank, k, round);
        if (operation->in_place && !is_gather(operation)) {
            operation->wanted[k] = data[k]; /* the rest of the operands stays */
        }
    }
    for (int block = 0; is_gather(operation) && block < size; block++) {
        for (int k = 0; k < operation->counts[block]; k++) {
            operation->wanted[operation->displs[block] + k] = contribution(block, k, round);
        }
    }
    for (int k = 0; exchanges(operation) && k < operation->length; k++) {
        operation->wanted[k] = contribution(k / own, operation->displs[rank] + k % own, round);
    }
    for (int k = 0; !is_gather(operation) && !exchanges(operation) && k < own; k++) {
        operation->wanted[k] = 0;
        for (int other = 0; other < size; other++) {
            operation->wanted[k] += contribution(other, operation->displs[rank] + k, round);
        }
    }
    if (operation->send_place != IN_HOST) {
        buffer_write(&operation->sent, operation->send);
    }
    if (operation->recv_place != IN_HOST) {
        buffer_write(&operation->received, operation->recv);
    }
}

static int result_length(const operation_t *operation)
{
    bool partly = operation->in_place && !is_gather(operation) && !exchanges(operation);

    return partly ? operation->counts[operation->rank] : operation->length;
}

LOOKS_AHEAD bool operation_has_arrived(const operation_t *operation)
{
    int length = result_length(operation);

    for (int k = 0; k < length; k++) {
        if (((volatile int64_t *) operation->recv)[k] != operation->wanted[k]) {
            return false;
        }
    }
    return true;
}

void operation_verify(const operation_t *operation, int round)
{
    size_t bytes = (size_t) result_length(operation) * sizeof(int64_t);

    if (operation->recv_place != IN_HOST) {
        buffer_read(&operation->received, operation->recv);
    }
    check(memcmp(operation->recv, operation->wanted, bytes) == 0,
          "%s%s, own count %d: start %d gives a wrong result", names[operation->kind],
          operation->in_place ? " in place" : "", operation->counts[operation->rank], round);
}

void operation_free_memory(operation_t *operation)
{
    free(operation->counts);
    free(operation->displs);
    free(operation->send);
    free(operation->recv);
    free(operation->wanted);
    check(operation->send_place == IN_HOST || buffer_free(&operation->sent),
          "wrote around the send buffer");
    check(operation->recv_place == IN_HOST || buffer_free(&operation->received),
          "wrote around the receive buffer");
}

void operation_free(operation_t *operation)
{
    MPI_Request_free(&operation->request);
    check(operation->request == MPI_REQUEST_NULL, "MPI_Request_free leaves a request");
    operation_free_memory(operation);
}

void operation_run(operation_t *operation, int round)
{
    operation_fill(operation, round);
    MPI_Start(&operation->request);
    MPI_Wait(&operation->request, MPI_STATUS_IGNORE);
    check(operation->request != MPI_REQUEST_NULL, "MPI_Wait frees a persistent request");
    operation_verify(operation, round);
}
