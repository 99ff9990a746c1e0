/*
 * test_persistent_ends.c: how flash's persistent requests end: what they use is freed before they
 * are, or they while they are active; mistakes; errors; requests never freed.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <sys/resource.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "persistent_operation.h"
#include "persistent_types.h"

/* ------------------------------------------------------------------ freed early */

/* Types that their user has freed before the first start. */
static void free_types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        persistent_types_run(signature, 500, false, true);
        persistent_types_run(signature, 500, true, true);
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
        operation_make(&operation, MPI_COMM_WORLD, kind, false, 120);
        operation_fill(&operation, 1);
        memcpy(kept, operation.counts, (size_t) world_size * sizeof(int));
        memset(operation.counts, 0x55, (size_t) world_size * sizeof(int));
        memcpy(kept + world_size, operation.displs, (size_t) world_size * sizeof(int));
        memset(operation.displs, 0x55, (size_t) world_size * sizeof(int));
        MPI_Start(&operation.request);
        MPI_Wait(&operation.request, MPI_STATUS_IGNORE);
        memcpy(operation.counts, kept, (size_t) world_size * sizeof(int));
        memcpy(operation.displs, kept + world_size, (size_t) world_size * sizeof(int));
        operation_verify(&operation, 1);
        operation_free(&operation);
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
        operation_make(&operations[kind], comm, kind, kind / 2, 500);
        if (kind % 2 == 0) {
            MPI_Comm_free(&comm);
        }
        operation_fill(&operations[kind], 1);
        MPI_Start(&operations[kind].request);
        if (kind % 2 == 1) {
            MPI_Comm_free(&comm);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Wait(&operations[kind].request, MPI_STATUS_IGNORE);
        operation_verify(&operations[kind], 1);
        operation_run(&operations[kind], 2);
        operation_free(&operations[kind]);
    }
}

/*
 * Erroneous by MPI, and an error for Open MPI's own collectives. With flash the data arrives all
 * the same. The communicator goes away with the last of it.
 */
static void free_active(void)
{
    operation_t operations[KINDS], last;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int kind = 0; kind < KINDS; kind++) {
        operation_make(&operations[kind], comm, kind, false, 500);
        operation_fill(&operations[kind], 1);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Start(&operations[kind].request);
        MPI_Request_free(&operations[kind].request);
        check(operations[kind].request == MPI_REQUEST_NULL, "MPI_Request_free leaves a request");
    }
    MPI_Comm_free(&comm);
    for (int kind = 0; kind < KINDS; kind++) {
        while (!operation_has_arrived(&operations[kind])) {
            int flag;

            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
    }
    /* When this has run, nobody needs what others send from their buffers any more. */
    operation_make(&last, MPI_COMM_WORLD, ALLGATHER, false, 1);
    operation_run(&last, 1);
    operation_free(&last);
    for (int kind = 0; kind < KINDS; kind++) {
        operation_verify(&operations[kind], 1);
        operation_free_memory(&operations[kind]);
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
    operation_make(&operation, comm, ALLGATHER, false, 1000);
    operation_fill(&operation, 1);
    MPI_Start(&operation.request);
    handler_calls = 0;
    check_class(MPI_Start(&operation.request), MPI_ERR_REQUEST, "a second MPI_Start");
    /* From MPI 4.0 on, section 9.3, the error is no communicator's. */
    check(handler_calls == (OMPI_MAJOR_VERSION < 5) && (handler_calls == 0 || handler_comm == comm),
          "the error handler was called %d times", handler_calls);
    MPI_Wait(&operation.request, MPI_STATUS_IGNORE);
    operation_verify(&operation, 1);
    operation_run(&operation, 2);
    operation_free(&operation);
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
        operation_make(&operation, comm, REDUCE_SCATTER, true, 30);
        if (k >= 2) {
            MPI_Comm_free(&comm); /* its error handler is called all the same */
        }
        expect_error(&request, kept, world_rank == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER, k % 2);
        handler_calls = 0;
        operation_run(&operation, k); /* the communicator is still usable */
        check(handler_calls == 0, "the next operation fails");
        operation_free(&operation);
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
        operation_make(&operation, comm, kind, false, 100);
        operation_run(&operation, 1);
        operation_free_memory(&operation);
#ifdef __SANITIZE_ADDRESS__
        __lsan_ignore_object(operation.request); /* on purpose */
#endif
    }
}

TEST_PROGRAM(test_persistent_ends, MPI_THREAD_SINGLE, {"free_types", free_types},
             {"free_op", free_op}, {"change_arrays", change_arrays},
             {"free_communicators", free_communicators}, {"free_active", free_active},
             {"mistakes", mistakes}, {"wrong_size", wrong_size}, {"no_memory", no_memory},
             {"leak", leak});
