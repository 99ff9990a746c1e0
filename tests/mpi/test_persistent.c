/*
 * test_persistent.c: persistent requests of the operations that flash serves: made once, started
 * many times, in any order, completed in every way, freed in every state.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <sys/resource.h>
#include <time.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "persistent.h"
#include "typed.h"

enum { ALLGATHER, ALLGATHERV, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, KINDS };
static const char *const names[] = {"Allgather_init", "Allgatherv_init", "Reduce_scatter_init",
                                    "Reduce_scatter_block_init"};
enum { CANARY = -77 };

/* One request, with its arguments. Blocks of int64_t. */
typedef struct operation {
    MPI_Request request;
    MPI_Comm comm;
    int kind, rank, size;
    bool in_place;
    int *counts, *displs; /* in the receive buffer of an allgather, or in the operands */
    int length;           /* of the longer buffer */
    int64_t *send, *recv, *wanted;
} operation_t;

static bool is_gather(const operation_t *operation)
{
    return operation->kind == ALLGATHER || operation->kind == ALLGATHERV;
}

/* What `rank` contributes at an element of its block, or of all blocks, in the start `round`. */
static int64_t contribution(int rank, int element, int round)
{
    return 1000003 * (int64_t) round + 101 * rank + element;
}

/* Blocks of `count`, or unequal ones, those of an allgather in reverse order with gaps between. */
static void place_blocks(operation_t *operation, int count)
{
    bool equal = operation->kind == ALLGATHER || operation->kind == REDUCE_SCATTER_BLOCK;
    int size = operation->size, next = 0;

    operation->counts = get_memory((size_t) size * sizeof(int));
    operation->displs = get_memory((size_t) size * sizeof(int));
    for (int k = 0; k < size; k++) {
        int rank = operation->kind == ALLGATHERV ? size - 1 - k : k;

        operation->counts[rank] = equal ? count : rank % 3 == 1 ? 0 : count + 3 * rank;
        operation->displs[rank] = next;
        next += operation->counts[rank] + (operation->kind == ALLGATHERV);
    }
    operation->length = next;
}

static void make_request(operation_t *operation)
{
    int own = operation->counts[operation->rank];
    const void *send = operation->in_place ? MPI_IN_PLACE : operation->send;

    switch (operation->kind) {
    case ALLGATHER:
        MPI_Allgather_init(send, own, MPI_INT64_T, operation->recv, own, MPI_INT64_T,
                           operation->comm, MPI_INFO_NULL, &operation->request);
        break;
    case ALLGATHERV:
        MPI_Allgatherv_init(send, own, MPI_INT64_T, operation->recv, operation->counts,
                            operation->displs, MPI_INT64_T, operation->comm, MPI_INFO_NULL,
                            &operation->request);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_init(send, operation->recv, operation->counts, MPI_INT64_T, MPI_SUM,
                                operation->comm, MPI_INFO_NULL, &operation->request);
        break;
    default:
        MPI_Reduce_scatter_block_init(send, operation->recv, own, MPI_INT64_T, MPI_SUM,
                                      operation->comm, MPI_INFO_NULL, &operation->request);
    }
}

static void make(operation_t *operation, MPI_Comm comm, int kind, bool in_place, int count)
{
    size_t bytes;

    *operation = (operation_t){.comm = comm, .kind = kind, .in_place = in_place};
    MPI_Comm_rank(comm, &operation->rank);
    MPI_Comm_size(comm, &operation->size);
    place_blocks(operation, count);
    bytes = (size_t) operation->length * sizeof(int64_t);
    operation->send = get_memory(bytes);
    operation->recv = get_memory(bytes);
    operation->wanted = get_memory(bytes);
    make_request(operation);
}

/* New data for the next start, and what must have become of the receive buffer after it. */
static void fill(operation_t *operation, int round)
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
    for (int k = 0; !is_gather(operation) && k < own; k++) {
        operation->wanted[k] = 0;
        for (int other = 0; other < size; other++) {
            operation->wanted[k] += contribution(other, operation->displs[rank] + k, round);
        }
    }
}

/* MPI says nothing about the operands that an operation in place leaves behind the result. */
static bool is_right(const operation_t *operation)
{
    bool partly = operation->in_place && !is_gather(operation);
    int length = partly ? operation->counts[operation->rank] : operation->length;

    for (int k = 0; k < length; k++) {
        if (((volatile int64_t *) operation->recv)[k] != operation->wanted[k]) {
            return false;
        }
    }
    return true;
}

static void verify(const operation_t *operation, int round)
{
    check(is_right(operation), "%s%s, own count %d: start %d gives a wrong result",
          names[operation->kind], operation->in_place ? " in place" : "",
          operation->counts[operation->rank], round);
}

static void free_memory(operation_t *operation)
{
    free(operation->counts);
    free(operation->displs);
    free(operation->send);
    free(operation->recv);
    free(operation->wanted);
}

static void free_operation(operation_t *operation)
{
    MPI_Request_free(&operation->request);
    check(operation->request == MPI_REQUEST_NULL, "MPI_Request_free leaves a request");
    free_memory(operation);
}

static void run_once(operation_t *operation, int round)
{
    fill(operation, round);
    MPI_Start(&operation->request);
    MPI_Wait(&operation->request, MPI_STATUS_IGNORE);
    check(operation->request != MPI_REQUEST_NULL, "MPI_Wait frees a persistent request");
    verify(operation, round);
}

/* -------------------------------------------------------------------- the forms */

static void forms(void)
{
    static const int counts[] = {0, 1, 2, 700, 40000};
    operation_t operation;

    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t c = 0; c < LENGTH(counts); c++) {
            for (int in_place = 0; in_place < 2; in_place++) {
                make(&operation, MPI_COMM_WORLD, kind, in_place, counts[c]);
                for (int round = 0; round < 3; round++) {
                    run_once(&operation, round);
                }
                free_operation(&operation);
            }
        }
    }
}

/* More than tags have numbers for operations on their way. */
static void many_starts(void)
{
    operation_t operations[KINDS];
    int starts = world_size > 2 ? 1000 : 5000;

    for (int kind = 0; kind < KINDS; kind++) {
        make(&operations[kind], MPI_COMM_WORLD, kind, kind % 2, 50);
    }
    for (int round = 0; round < starts; round++) {
        run_once(&operations[round % KINDS], round);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        free_operation(&operations[kind]);
    }
}

/* ------------------------------------------------------- orders, ways to complete */

enum { MANY = 12 };

static void shuffle(int order[], int count, uint32_t seed)
{
    for (int k = 0; k < count; k++) {
        order[k] = k;
    }
    for (int k = count - 1; k > 0; k--) {
        int other = (int) (mix(seed, (uint32_t) k, 1) % (uint32_t) (k + 1)), kept = order[k];

        order[k] = order[other];
        order[other] = kept;
    }
}

/* In another order on each rank; a request is left inactive, and counts no more. */
static void complete_in_turn(MPI_Request requests[], int count, uint32_t seed, bool test)
{
    int order[MANY], flag = 0;

    shuffle(order, count, seed + (uint32_t) world_rank);
    for (int k = 0; k < count; k++) {
        if (!test) {
            MPI_Wait(&requests[order[k]], MPI_STATUS_IGNORE);
        }
        for (flag = !test; !flag;) {
            MPI_Test(&requests[order[k]], &flag, MPI_STATUS_IGNORE);
        }
    }
}

static void complete_any(MPI_Request requests[], int count)
{
    int index;

    for (int k = 0; k < count; k++) {
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        check(index >= 0 && index < count, "MPI_Waitany returns %d", index);
    }
    MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    check(index == MPI_UNDEFINED, "MPI_Waitany finds an active request too many");
}

static void complete_some(MPI_Request requests[], int count)
{
    int done, all = 0, indices[MANY];

    do {
        MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
        all += done == MPI_UNDEFINED ? 0 : done;
    } while (done != MPI_UNDEFINED);
    check(all == count, "MPI_Waitsome completes %d of %d", all, count);
}

static void complete(MPI_Request requests[], int count, int way)
{
    MPI_Status statuses[MANY];
    int flag = 0;

    switch (way) {
    case 0:
    case 1:
        complete_in_turn(requests, count, 9, way == 1);
        break;
    case 2:
        complete_any(requests, count);
        break;
    case 3:
        complete_some(requests, count);
        break;
    case 4:
        check(MPI_Waitall(count, requests, statuses) == MPI_SUCCESS, "MPI_Waitall fails");
        break;
    default:
        while (!flag) {
            MPI_Testall(count, requests, &flag, statuses);
        }
    }
}

/*
 * All of them at once, in an order of each round that all ranks share, and in later rounds in one
 * of each rank's own, with other traffic.
 */
static void all_orders(MPI_Comm comms[], int kinds)
{
    operation_t operations[MANY];
    MPI_Request requests[MANY], other;
    int order[MANY], sum;

    for (int k = 0; k < MANY; k++) {
        make(&operations[k], comms[k % kinds], k % KINDS, k / KINDS % 2, 10 + 200 * k);
    }
    for (int round = 0; round < 36; round++) {
        shuffle(order, MANY, (uint32_t) (round < 18 ? round : round + 100 * world_rank));
        for (int k = 0; k < MANY; k++) {
            fill(&operations[order[k]], round);
            requests[k] = operations[order[k]].request;
            if (round % 2 == 0) {
                MPI_Start(&requests[k]);
            }
        }
        if (round % 2 == 1) {
            MPI_Startall(MANY, requests);
        }
        MPI_Iallreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comms[0], &other);
        complete(requests, MANY, round / 2 % 6);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        check(sum == round * operations[0].size, "other traffic is wrong");
        for (int k = 0; k < MANY; k++) {
            verify(&operations[k], round);
        }
    }
    for (int k = 0; k < MANY; k++) {
        free_operation(&operations[k]);
    }
}

static void orders(void)
{
    MPI_Comm comms[4] = {MPI_COMM_WORLD};

    all_orders(comms, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[3]);
    all_orders(comms, LENGTH(comms));
    for (size_t k = 1; k < LENGTH(comms); k++) {
        MPI_Comm_free(&comms[k]);
    }
}

/* Non-blocking operations between the starts: one order for both. */
static void mixed(void)
{
    operation_t operations[KINDS];
    MPI_Request requests[2 * KINDS];
    int64_t *recv = get_memory((size_t) world_size * 300 * sizeof(int64_t));

    for (int kind = 0; kind < KINDS; kind++) {
        make(&operations[kind], MPI_COMM_WORLD, kind, false, 300);
    }
    for (int round = 0; round < 20; round++) {
        int64_t send[300];

        send[0] = send[299] = world_rank + round;
        for (int kind = 0; kind < KINDS; kind++) {
            fill(&operations[kind], round);
            requests[kind] = operations[kind].request;
            MPI_Start(&requests[kind]);
            if (kind == 1) {
                MPI_Iallgather(send, 300, MPI_INT64_T, recv, 300, MPI_INT64_T, MPI_COMM_WORLD,
                               &requests[KINDS]);
            }
        }
        MPI_Waitall(KINDS + 1, requests, MPI_STATUSES_IGNORE);
        check(requests[KINDS] == MPI_REQUEST_NULL, "the non-blocking operation's request stays");
        for (int rank = 0; rank < world_size; rank++) {
            check(recv[300 * rank + 299] == rank + round, "the non-blocking operation is wrong");
        }
        for (int kind = 0; kind < KINDS; kind++) {
            verify(&operations[kind], round);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        free_operation(&operations[kind]);
    }
    free(recv);
}

/* ------------------------------------------------------------------------ types */

/* An allgather whose ranks describe the same data each in its own way, most of them with gaps. */
static void run_types(int signature, int units, bool early)
{
    typed_t send, recv;
    size_t elements, margin, bytes;
    unsigned char *from, *to, *wanted;
    MPI_Datatype others[2];
    MPI_Request request;

    typed_make(&send, signature, (world_rank + signature) % WAYS);
    typed_make(&recv, signature, (3 * world_rank + units) % WAYS);
    elements = (size_t) (units * recv.per_unit);
    margin = typed_margin(&send) + typed_margin(&recv);
    bytes = (size_t) world_size * elements * (size_t) recv.extent + 2 * margin;
    from = get_memory((size_t) (units * send.per_unit) * (size_t) send.extent + 2 * margin);
    to = get_memory(bytes);
    wanted = get_memory(bytes);
    MPI_Allgather_init(from + margin, units * send.per_unit, send.type, to + margin, (int) elements,
                       recv.type, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (early) {
        typed_free(&send);
        typed_free(&recv);
        MPI_Type_contiguous(3, MPI_INT, &others[0]); /* take their memory if it is free */
        MPI_Type_contiguous(5, MPI_INT, &others[1]);
    }
    for (unsigned round = 1; round <= 3; round++) {
        memset(to, 0x5a, bytes);
        memset(wanted, 0x5a, bytes);
        typed_write(&send, from + margin, (size_t) (units * send.per_unit), world_rank, round);
        for (int rank = 0; rank < world_size; rank++) {
            typed_write(&recv, wanted + margin + (size_t) rank * elements * (size_t) recv.extent,
                        elements, rank, round);
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(memcmp(to, wanted, bytes) == 0, "signature %d, %d units: wrong in round %u",
              signature, units, round);
    }
    MPI_Request_free(&request);
    if (early) {
        MPI_Type_free(&others[0]);
        MPI_Type_free(&others[1]);
    } else {
        typed_free(&send);
        typed_free(&recv);
    }
    free(from);
    free(to);
    free(wanted);
}

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int units = 1; units < 3000; units = 7 * units + 1) {
            run_types(signature, units, false);
        }
    }
}

/* ------------------------------------------------------------------ freed early */

/* Types that their user has freed before the first start. */
static void free_types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        run_types(signature, 500, true);
    }
}

static void greater(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < *length; k++) {
        int a = ((int *) in)[k], *b = &((int *) inout)[k];

        *b = a > *b ? a : *b;
    }
}

/* An operation of the user's whose handle is gone before the first start. */
static void free_op(void)
{
    enum { BLOCK = 500 };
    int *operands = get_memory((size_t) world_size * BLOCK * sizeof(int));
    int *result = get_memory(BLOCK * sizeof(int));
    MPI_Request request;
    MPI_Op op;

    MPI_Op_create(greater, 1, &op);
    MPI_Reduce_scatter_block_init(operands, result, BLOCK, MPI_INT, op, MPI_COMM_WORLD,
                                  MPI_INFO_NULL, &request);
    MPI_Op_free(&op);
    for (int round = 1; round <= 3; round++) {
        for (int k = 0; k < world_size * BLOCK; k++) {
            operands[k] = round * (world_rank + 1) + k;
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int k = 0; k < BLOCK; k++) {
            int most = round * world_size + world_rank * BLOCK + k;

            check(result[k] == most, "element %d is %d, not %d", k, result[k], most);
        }
    }
    MPI_Request_free(&request);
    free(operands);
    free(result);
}

/*
 * Arrays that change after the call: against the rules of MPI, but what Open MPI's Fortran
 * interface does where INTEGER is not int.
 */
static void change_arrays(void)
{
    operation_t operation;
    int *kept = get_memory(2 * (size_t) world_size * sizeof(int));

    for (int kind = ALLGATHERV; kind <= REDUCE_SCATTER; kind++) {
        make(&operation, MPI_COMM_WORLD, kind, false, 120);
        fill(&operation, 1);
        memcpy(kept, operation.counts, (size_t) world_size * sizeof(int));
        memset(operation.counts, 0x55, (size_t) world_size * sizeof(int));
        memcpy(kept + world_size, operation.displs, (size_t) world_size * sizeof(int));
        memset(operation.displs, 0x55, (size_t) world_size * sizeof(int));
        MPI_Start(&operation.request);
        MPI_Wait(&operation.request, MPI_STATUS_IGNORE);
        memcpy(operation.counts, kept, (size_t) world_size * sizeof(int));
        memcpy(operation.displs, kept + world_size, (size_t) world_size * sizeof(int));
        verify(&operation, 1);
        free_operation(&operation);
    }
    free(kept);
}

/* The communicator's handle is gone before the first start, or while the operation is active. */
static void free_communicators(void)
{
    operation_t operations[KINDS];
    MPI_Comm comm;

    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        make(&operations[kind], comm, kind, kind / 2, 500);
        if (kind % 2 == 0) {
            MPI_Comm_free(&comm);
        }
        fill(&operations[kind], 1);
        MPI_Start(&operations[kind].request);
        if (kind % 2 == 1) {
            MPI_Comm_free(&comm);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Wait(&operations[kind].request, MPI_STATUS_IGNORE);
        verify(&operations[kind], 1);
        run_once(&operations[kind], 2);
        free_operation(&operations[kind]);
    }
}

/*
 * Erroneous by MPI, and an error for Open MPI's own collectives. With flash the data arrives all
 * the same. The communicator goes away with the last of it.
 */
static void free_active(void)
{
    operation_t operations[KINDS];
    time_t deadline = time(NULL) + 60;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int kind = 0; kind < KINDS; kind++) {
        make(&operations[kind], comm, kind, false, 500);
        fill(&operations[kind], 1);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Start(&operations[kind].request);
        MPI_Request_free(&operations[kind].request);
        check(operations[kind].request == MPI_REQUEST_NULL, "MPI_Request_free leaves a request");
    }
    MPI_Comm_free(&comm);
    for (int kind = 0; kind < KINDS; kind++) {
        while (!is_right(&operations[kind]) && time(NULL) < deadline) {
            int flag;

            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
        verify(&operations[kind], 1);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* nobody needs what others send from their buffers any more */
    for (int kind = 0; kind < KINDS; kind++) {
        free_memory(&operations[kind]);
    }
}

/* --------------------------------------------------------------------- inactive */

static void inactive(void)
{
    operation_t operation;
    MPI_Status status;
    int flag = 0, index;

    for (int kind = 0; kind < KINDS; kind++) {
        make(&operation, MPI_COMM_WORLD, kind, false, 100);
        for (int round = 0; round < 2; round++) {
            MPI_Wait(&operation.request, &status);
            check(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG,
                  "the status of an inactive request is not empty");
            MPI_Test(&operation.request, &flag, &status);
            check(flag, "MPI_Test of an inactive request does not return at once");
            MPI_Testany(1, &operation.request, &index, &flag, &status);
            check(flag && index == MPI_UNDEFINED, "MPI_Testany finds an inactive request");
            run_once(&operation, round);
        }
        free_operation(&operation);
        make(&operation, MPI_COMM_WORLD, kind, true, 100);
        free_operation(&operation); /* never started */
    }
}

/* The user's mistakes, which harm nothing. */
static void mistakes(void)
{
    operation_t operation;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    make(&operation, comm, ALLGATHER, false, 1000);
    fill(&operation, 1);
    MPI_Start(&operation.request);
    handler_calls = 0;
    check_class(MPI_Start(&operation.request), MPI_ERR_REQUEST, "a second MPI_Start");
    check(handler_calls == 1 && handler_comm == comm, "the error handler was called %d times",
          handler_calls);
    MPI_Cancel(&operation.request);
    MPI_Wait(&operation.request, MPI_STATUS_IGNORE);
    verify(&operation, 1);
    run_once(&operation, 2);
    free_operation(&operation);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

/* ----------------------------------------------------------------------- errors */

/*
 * Starts the request, which ends with an error of that class; Open MPI frees it then. With an array
 * of statuses, MPI_Waitall of Open MPI 4.1 would only look for the error there, and call no
 * handler.
 */
static void expect_error(MPI_Request *request, MPI_Comm comm, int class, bool all)
{
    int error = MPI_SUCCESS;

    handler_calls = 0;
    if (all) {
        check(MPI_Startall(1, request) == MPI_SUCCESS, "MPI_Startall returns the error");
        error = MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
        check_class(error, MPI_ERR_IN_STATUS, "MPI_Waitall");
    } else {
        check(MPI_Start(request) == MPI_SUCCESS, "MPI_Start returns the error");
        error = MPI_Wait(request, MPI_STATUS_IGNORE);
        check(error == handler_error, "MPI_Wait returns another error than the handler's");
    }
    check(handler_calls == 1 && handler_comm == comm, "the error handler was called %d times",
          handler_calls);
    check_class(handler_error, class, "the error handler");
    check(*request == MPI_REQUEST_NULL, "the request is not freed");
}

/* A send buffer that does not fit the own block: known at the start, told at the end. */
static void wrong_size(void)
{
    int64_t send[101] = {0}, *recv = get_memory((size_t) world_size * 100 * sizeof(int64_t));
    operation_t operation;
    MPI_Request request;
    MPI_Comm comm, kept;

    for (int k = 0; k < 4; k++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, counting_handler());
        kept = comm;
        MPI_Allgather_init(send, world_rank == 0 ? 101 : 100, MPI_INT64_T, recv, 100, MPI_INT64_T,
                           comm, MPI_INFO_NULL, &request);
        make(&operation, comm, REDUCE_SCATTER, true, 30);
        if (k >= 2) {
            MPI_Comm_free(&comm); /* its error handler is called all the same */
        }
        if (world_rank == 0) {
            expect_error(&request, kept, MPI_ERR_TRUNCATE, k % 2);
        } else {
            MPI_Start(&request);
            check(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "fails elsewhere, too");
            MPI_Request_free(&request);
        }
        handler_calls = 0;
        run_once(&operation, k); /* the communicator is still usable */
        check(handler_calls == 0, "the next operation fails");
        free_operation(&operation);
        if (k < 2) {
            MPI_Comm_free(&comm);
        }
    }
    free(recv);
}

/* No memory for the packed form of a type with gaps, on any rank: no ring can be started. */
static void no_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    enum { BLOCK = 1 << 23 };
    struct rlimit before, none = {0, 0};
    unsigned char *recv = get_memory(3 * (size_t) world_size * BLOCK);
    MPI_Datatype type, gaps;
    MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    MPI_Type_vector(BLOCK / 2, 2, 3, MPI_BYTE, &type);
    MPI_Type_create_resized(type, 0, 3 * (BLOCK / 2), &gaps);
    MPI_Type_commit(&gaps);
    getrlimit(RLIMIT_AS, &before);
    none.rlim_max = before.rlim_max;
    for (int k = 0; k < 2; k++) {
        MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_BYTE, recv, 1, gaps, comm, MPI_INFO_NULL, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        setrlimit(RLIMIT_AS, &none);
        expect_error(&request, comm, MPI_ERR_NO_MEM, k);
        setrlimit(RLIMIT_AS, &before);
    }
    MPI_Type_free(&type);
    MPI_Type_free(&gaps);
    MPI_Comm_free(&comm);
    free(recv);
#endif
}

/* Requests and communicators that nobody frees: MPI_Finalize has to live with them. */
static void leak(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        operation_t operation;
        MPI_Comm comm = MPI_COMM_WORLD;

        if (kind % 2 == 0) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        }
        make(&operation, comm, kind, false, 100);
        run_once(&operation, 1);
        free_memory(&operation);
#ifdef __SANITIZE_ADDRESS__
        __lsan_ignore_object(operation.request); /* on purpose */
#endif
    }
}

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {{"forms", forms},
                                        {"many_starts", many_starts},
                                        {"orders", orders},
                                        {"mixed", mixed},
                                        {"types", types},
                                        {"free_types", free_types},
                                        {"free_op", free_op},
                                        {"change_arrays", change_arrays},
                                        {"free_communicators", free_communicators},
                                        {"free_active", free_active},
                                        {"inactive", inactive},
                                        {"mistakes", mistakes},
                                        {"wrong_size", wrong_size},
                                        {"no_memory", no_memory},
                                        {"leak", leak}};

    return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
}
