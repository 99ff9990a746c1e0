/*
 * test_device_persistent.c: persistent requests on buffers in the memory of devices, of several
 * starts each: by rings, or, where calls are too small for one, by another component on host
 * bounces.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"
#include "persistent_operation.h"

enum { ROUNDS = 3, SMALL = 10, LONG = 40000 };

/* Which of an operation's buffers are in a device's memory. */
typedef struct places {
    place_t send, recv;
} places_t;

static const places_t all_places_there[] = {{IN_DEVICE, IN_DEVICE},
                                            {IN_DEVICE, IN_HOST},
                                            {IN_HOST, IN_DEVICE},
                                            {IN_PINNED, IN_OTHER},
                                            {IN_OTHER, IN_DEVICE}};

static operation_t like(int kind, bool in_place, places_t places)
{
    return (operation_t){.comm = MPI_COMM_WORLD,
                         .kind = kind,
                         .in_place = in_place,
                         .send_place = places.send,
                         .recv_place = places.recv};
}

/* From another place on each rank, so that some ranks have no bounce. */
static places_t places_of(size_t turn)
{
    return all_places_there[(turn + (turn % 2) * (size_t) world_rank) % LENGTH(all_places_there)];
}

static void run_rounds(const operation_t *made_like, int count)
{
    operation_t operation;

    operation_make_like(&operation, made_like, count);
    for (int round = 1; round <= ROUNDS; round++) {
        operation_run(&operation, round);
    }
    operation_free(&operation);
}

/* Other data each time, of blocks that are empty, short and long. */
static void rounds(void)
{
    static const int counts[] = {0, SMALL, LONG};

    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t turn = 0; turn < 2 * LENGTH(all_places_there); turn++) {
            operation_t made_like = like(kind, turn % 3 == 2, places_of(turn));

            for (size_t k = 0; k < LENGTH(counts); k++) {
                run_rounds(&made_like, counts[k]);
            }
        }
    }
    nothing_left();
}

/* Several at a time, started in another order on each rank. */
static void at_a_time(void)
{
    operation_t operations[2 * KINDS];

    for (int k = 0; k < 2 * KINDS; k++) {
        operation_t made_like = like(k % KINDS, k >= KINDS, places_of((size_t) k));

        operation_make_like(&operations[k], &made_like, 100 * k);
    }
    for (int round = 1; round <= ROUNDS; round++) {
        for (int k = 0; k < 2 * KINDS; k++) {
            operation_fill(&operations[k], round);
        }
        for (int k = 0; k < 2 * KINDS; k++) {
            MPI_Start(&operations[(k + 3 * world_rank) % (2 * KINDS)].request);
        }
        for (int k = 2 * KINDS - 1; k >= 0; k--) {
            MPI_Wait(&operations[k].request, MPI_STATUS_IGNORE);
            operation_verify(&operations[k], round);
        }
    }
    for (int k = 0; k < 2 * KINDS; k++) {
        operation_free(&operations[k]);
    }
    nothing_left();
}

/* Never started, and between two starts. */
static void inactive(void)
{
    operation_t operations[KINDS], other;

    for (int kind = 0; kind < KINDS; kind++) {
        operation_t made_like = like(kind, false, places_of(0));

        operation_make_like(&operations[kind], &made_like, SMALL);
        operation_make_like(&other, &made_like, SMALL);
        operation_free(&other);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        operation_run(&operations[kind], 1);
        if (kind % 2 == 0) {
            operation_run(&operations[kind], 2);
        }
        operation_free(&operations[kind]);
    }
    nothing_left();
}

/* The communicator's and the type's handles are gone before the first start. */
static void handles_gone(void)
{
    int64_t content[SMALL], *got = get_memory((size_t) world_size * sizeof(content));
    buffer_t from = buffer_make(IN_DEVICE, sizeof(content));
    MPI_Datatype ten;
    MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(SMALL, MPI_INT64_T, &ten);
    MPI_Type_commit(&ten);
    MPI_Allgather_init(from.data, 1, ten, got, 1, ten, comm, MPI_INFO_NULL, &request);
    MPI_Comm_free(&comm);
    MPI_Type_free(&ten);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SMALL; i++) {
            content[i] = contribution(world_rank, round, i);
        }
        buffer_write(&from, content);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < world_size * SMALL; i++) {
            check(got[i] == contribution(i / SMALL, round, i % SMALL), "element %d", i);
        }
    }
    MPI_Request_free(&request);
    check(buffer_free(&from), "wrote around the send buffer");
    free(got);
}

static void user_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++) {
        ((int64_t *) inout)[i] += ((const int64_t *) in)[i];
    }
}

/* An operation of the user's runs in the host's memory; one that does not commute takes no ring. */
static void users_operation(void)
{
    for (int commutes = 0; commutes <= 1; commutes++) {
        for (int kind = REDUCE_SCATTER; kind <= ALLREDUCE; kind++) {
            operation_t made_like = like(kind, false, places_of(0));

            MPI_Op_create(user_sum, commutes, &made_like.op);
            run_rounds(&made_like, SMALL);
            run_rounds(&made_like, LONG);
            MPI_Op_free(&made_like.op);
        }
    }
    nothing_left();
}

/*
 * Neither a start with long blocks nor the end of a call waits for the device: with the stand-in,
 * whoever did would be told of an error.
 */
static void never_waits(void)
{
    job_t job = {.count = LONG,
                 .gather = true,
                 .send_place = IN_HOST,
                 .recv_place = IN_DEVICE,
                 .comm = MPI_COMM_WORLD};

    for (int kind = 0; kind < KINDS; kind++) {
        operation_t made_like = like(kind, false, places_of(0)), operation;

        operation_make_like(&operation, &made_like, LONG);
        device_fail("cuStreamSynchronize", 1);
        operation_run(&operation, 1);
        operation_run(&operation, 2);
        device_fail(NULL, 0);
        operation_free(&operation);
    }
    job_make(&job);
    device_fail("cuStreamSynchronize", 1);
    check_class(job_begin(&job), MPI_SUCCESS, "a call that receives on the device");
    check_class(MPI_Wait(&job.request, MPI_STATUS_IGNORE), MPI_SUCCESS, "its end");
    device_fail(NULL, 0);
    job_check(&job);
    job_end(&job);
    nothing_left();
}

/*
 * To be run in a job of its own, without rings: host bounces are pinned, and kept for the next
 * call.
 */
static void pinned(void)
{
    enum { CALLS = 5 };
    int most = 0;

    check(device_pinned() == 0, "pinned memory before the first call");
    for (int k = 0; k < CALLS; k++) {
        job_t job = {.form = k % 2 == 0 ? PLAIN : PERSISTENT,
                     .count = LONG,
                     .gather = true,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .comm = MPI_COMM_WORLD};

        job_run(&job);
        check(device_pinned() > 0, "call %d: no pinned memory", k);
        most = k < 2 ? device_pinned() : most;
        check(device_pinned() <= most, "call %d: more pinned memory", k);
    }
    nothing_left();
}

DEVICE_PROGRAM(test_device_persistent, {"rounds", rounds}, {"at_a_time", at_a_time},
               {"inactive", inactive}, {"handles_gone", handles_gone},
               {"users_operation", users_operation}, {"never_waits", never_waits},
               {"pinned", pinned});
