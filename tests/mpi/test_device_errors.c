/*
 * test_device_errors.c: what is refused of memory of devices, and a driver that fails.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include "aftermath.h"
#include "device_job.h"
#include "extension.h"
#include "persistent.h"

enum { MOST_RANKS = 16 };

/* -------------------------------------------------------------------- what is refused */

static int look(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

/* Rank 0 sends from a device's memory what its callback is to find with gaps. */
static void gaps_of_a_consumer(MPI_Comm comm, MPI_Datatype strided)
{
    buffer_t send = buffer_make(world_rank == 0 ? IN_DEVICE : IN_HOST, 100 * sizeof(int64_t));
    int64_t *recv = get_memory((size_t) world_size * 200 * sizeof(*recv));
    MPI_Request request;

    MPIX_Iallgather_compute(send.data, 100, MPI_INT64_T, recv, 1, strided, look, NULL, NULL, comm,
                            &request);
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER, "gaps for a consumer");
    next_works(comm, "after gaps for a consumer");
    check(buffer_free(&send), "wrote around the send buffer");
    free(recv);
}

/* Rank 0's buffer, in a device's memory, is described by a type with gaps. */
static void gaps(void)
{
    MPI_Comm comm = make_counted_comm();
    place_t place = world_rank == 0 ? IN_DEVICE : IN_HOST;
    buffer_t memory = buffer_make(place, (size_t) world_size * 200 * sizeof(int64_t));
    MPI_Datatype strided;
    MPI_Request request;

    MPI_Type_vector(100, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    for (int in_place = 0; in_place <= 1; in_place++) {
        int64_t send[200] = {0};

        MPI_Iallgather(in_place ? MPI_IN_PLACE : send, 1, strided, memory.data, 1, strided, comm,
                       &request);
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                    world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER, "gaps in a device's memory");
    }
    next_works(comm, "after gaps in a device's memory");
    gaps_of_a_consumer(comm, strided);
    check(buffer_free(&memory), "wrote around the buffer");
    MPI_Type_free(&strided);
    MPI_Comm_free(&comm);
}

/* By libnbc's tags, which all ranks count. */
static void next_below_works(MPI_Comm comm)
{
    int counts[MOST_RANKS], displs[MOST_RANKS], gathered[MOST_RANKS];
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = 1;
        displs[rank] = rank;
        gathered[rank] = -1;
    }
    MPI_Igatherv(&world_rank, 1, MPI_INT, gathered, counts, displs, MPI_INT, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size && world_rank == 0; rank++) {
        check(gathered[rank] == rank, "after a call that one rank has refused: wrong");
    }
}

/* One rank alone refuses a call that libnbc is to serve; the others' have made their request. */
static void one_refuses(MPI_Comm comm, MPI_Datatype strided, void *memory)
{
    MPI_Request request = MPI_REQUEST_NULL;
    bool lacks = world_rank == 0;

    check_class(MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory, lacks ? 1 : 100,
                                   lacks ? strided : MPI_INT64_T, comm, MPI_INFO_NULL, &request),
                lacks ? MPI_ERR_BUFFER : MPI_SUCCESS, "gaps on one rank");
    next_below_works(comm);
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
}

/* To be run where calls are too small for a ring: persistent requests are another component's. */
static void passed_on(void)
{
    MPI_Comm comm = make_counted_comm();
    buffer_t memory = buffer_make(IN_DEVICE, (size_t) world_size * 200 * sizeof(int64_t));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype strided;

    MPI_Type_vector(100, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    check_class(MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory.data, 1, strided,
                                   comm, MPI_INFO_NULL, &request),
                MPI_ERR_BUFFER, "gaps in a persistent request that is passed on");
    next_works(comm, "after gaps in a persistent request");
    one_refuses(comm, strided, memory.data);
    check(buffer_free(&memory), "wrote around the buffer");
    MPI_Type_free(&strided);
    MPI_Comm_free(&comm);
}

/* Rank 0's buffers have been freed. */
static void freed(void)
{
    MPI_Comm comm = make_counted_comm();

    for (int gather = 0; gather <= 1; gather++) {
        for (form_t form = PLAIN; form <= IN_PLACE; form++) {
            job_t job = {.form = form,
                         .count = 1000,
                         .gather = gather,
                         .send_place = IN_DEVICE,
                         .recv_place = IN_DEVICE,
                         .comm = comm};
            int error;

            job_make(&job);
            if (world_rank == 0) {
                job_end(&job);
            }
            error = job_begin(&job);
            if (error == MPI_SUCCESS) {
                error = MPI_Wait(&job.request, MPI_STATUS_IGNORE);
            }
            check_class(error, world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER, "a freed buffer");
            if (world_rank != 0) {
                job_end(&job);
            }
        }
    }
    next_works(comm, "after a freed buffer");
    nothing_left();
    MPI_Comm_free(&comm);
}

/* Rank 0's stream is not to be had. */
static void refused_stream(void *stream, const char *what)
{
    MPI_Comm comm = make_counted_comm();

    for (int gather = 0; gather <= 1; gather++) {
        void *good = stream_make(0);
        job_t job = {.form = STREAM,
                     .count = 1000,
                     .gather = gather,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .stream = good,
                     .comm = comm};
        int error;

        job_make(&job);
        job.stream = world_rank == 0 ? stream : good;
        error = job_begin(&job);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&job.request, MPI_STATUS_IGNORE);
        }
        check_class(error, MPI_ERR_OTHER, what);
        job.stream = good;
        job_end(&job);
        stream_free(good);
    }
    next_works(comm, what);
    MPI_Comm_free(&comm);
}

static void streams(void)
{
    void *captured = stream_make(0), *other = stream_make(1);

    stream_capture(captured, true);
    refused_stream(captured, "a stream that is captured");
    stream_capture(captured, false);
    stream_free(captured);
    if (other != NULL) { /* a second device is there */
        refused_stream(other, "a stream of another device");
        stream_free(other);
    }
    nothing_left();
}

/* Reads beyond its piece's memory, which ends in an error of the stream's. */
static int produce_wrongly(const MPIX_Flash_block *block, void *arg)
{
    stream_copy(block->stream, arg, block->data, (size_t) 1 << 30);
    return MPI_SUCCESS;
}

/* Rank 0's callback leaves an error in its stream. To be run with the stand-in. */
static void stream_fails(void)
{
    MPI_Comm comm = make_counted_comm();
    void *stream = stream_make(0);
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    buffer_t result = buffer_make(IN_DEVICE, 1000 * sizeof(int64_t));
    MPI_Request request;

    hints.on_stream = 1;
    hints.stream = stream;
    MPIX_Ireduce_scatter_block_compute(world_rank == 0 ? produce_wrongly : look, result.data,
                                       &hints, result.data, 1000, MPI_INT64_T, MPI_SUM, comm,
                                       &request);
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_OTHER, "an error in the stream");
    stream_wait(stream);
    if (world_rank == 0) {
        device_fail(NULL, 0);
    }
    stream_free(stream);
    check(buffer_free(&result), "wrote around the result");
    next_works(comm, "after an error in the stream");
    nothing_left();
    MPI_Comm_free(&comm);
}

/* FLASH_TEST_FAIL="NAME N": which call of the driver's fails. */
static bool read_failure(char name[64], unsigned long *nth)
{
    const char *wanted = getenv("FLASH_TEST_FAIL");

    return check(wanted != NULL && sscanf(wanted, "%63s %lu", name, nth) == 2, "FLASH_TEST_FAIL");
}

/* Where no ring tells the others of it, all ranks' drivers fail. */
static void bounce_fails(void)
{
    static const struct {
        form_t form;
        int count;
    } calls[] = {{PLAIN, 1000}, {IN_PLACE, 1000}, {PERSISTENT, 1000}, {PERSISTENT, 40000}};
    MPI_Comm comm = make_counted_comm();
    char name[64];
    unsigned long nth;
    int failed = 0;

    for (size_t k = 0; k < 2 * LENGTH(calls) && read_failure(name, &nth); k++) {
        job_t job = {.form = calls[k / 2].form,
                     .count = calls[k / 2].count,
                     .gather = k % 2 == 0,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .comm = comm};
        int error;

        job_make(&job);
        device_fail(name, nth);
        error = job_begin(&job);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&job.request, MPI_STATUS_IGNORE);
        }
        device_fail(NULL, 0);
        if (error == MPI_SUCCESS) { /* it has no so many calls */
            job_check(&job);
        } else {
            check_class(error, MPI_ERR_OTHER, name);
            job.request = MPI_REQUEST_NULL; /* Open MPI frees a persistent one that failed */
            failed++;
        }
        job_end(&job);
    }
    check(failed > 0, "%s %lu: nothing failed", name, nth);
    nothing_left();
    next_works(comm, "after bounces that failed");
    MPI_Comm_free(&comm);
}

/* There is no pinned memory: host bounces are of ordinary memory. */
static void no_pinned_memory(void)
{
    for (int k = 0; k < 3; k++) {
        job_t job = {.form = k == 0 ? PLAIN : PERSISTENT,
                     .count = 40000,
                     .gather = k % 2 == 0,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .comm = MPI_COMM_WORLD};

        job_make(&job);
        device_fail("cuMemHostAlloc", 1);
        check_class(job_begin(&job), MPI_SUCCESS, "a start without pinned memory");
        check_class(MPI_Wait(&job.request, MPI_STATUS_IGNORE), MPI_SUCCESS, "its end");
        device_fail(NULL, 0);
        check(device_pinned() == 0, "there is pinned memory");
        job_check(&job);
        job_end(&job);
    }
    nothing_left();
}

/* Rank 0's device has no memory for UCX to reach: what would have been there is staged. */
static void no_direct_memory(void)
{
    for (int gather = 0; gather <= 1; gather++) {
        job_t job = {.count = 40000,
                     .gather = gather,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .comm = MPI_COMM_WORLD};

        if (world_rank == 0) {
            device_fail("cuMemAlloc", 1);
        }
        check_class(job_start(&job), MPI_SUCCESS, "a start without memory of the device");
        if (world_rank == 0) {
            device_fail(NULL, 0);
        }
        check_class(MPI_Wait(&job.request, MPI_STATUS_IGNORE), MPI_SUCCESS,
                    "without memory of the device");
        job_check(&job);
        job_end(&job);
    }
    nothing_left();
}

/* Rank 0's driver fails as the environment says: its operation, and no other rank's, is to blame.
 */
static void driver_fails(void)
{
    MPI_Comm comm = make_counted_comm();
    char name[64];
    unsigned long nth;
    int failed = 0;

    if (!read_failure(name, &nth)) {
        return;
    }

    for (int k = 0; k < 2 * FORMS; k++) {
        job_t job = {.form = k / 2,
                     .count = 40000,
                     .gather = k % 2 == 0,
                     .slow = true,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .stream = stream_make(0),
                     .comm = comm};
        int error, class;

        if (world_rank == 0) {
            device_fail(name, nth);
        }
        error = job_start(&job);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&job.request, MPI_STATUS_IGNORE);
        }
        if (world_rank == 0) {
            device_fail(NULL, 0);
        }
        MPI_Error_class(error, &class);
        failed += class != MPI_SUCCESS;
        if (class == MPI_SUCCESS) {
            job_check(&job);
        } else {
            check(class == MPI_ERR_OTHER || (world_rank == 0 && class == MPI_ERR_NO_MEM),
                  "%s: class %d", name, class);
        }
        if (class != MPI_SUCCESS && job.form == PERSISTENT) {
            job.request = MPI_REQUEST_NULL; /* Open MPI frees one that failed */
        }
        job_end(&job);
        stream_free(job.stream);
        next_works(comm, "after the driver failed");
    }
    check(world_rank != 0 || failed > 0, "%s: nothing failed", name);
    nothing_left();
    MPI_Comm_free(&comm);
}

DEVICE_PROGRAM(test_device_errors, {"gaps", gaps}, {"passed_on", passed_on}, {"freed", freed},
               {"streams", streams}, {"stream_fails", stream_fails}, {"bounce_fails", bounce_fails},
               {"no_direct_memory", no_direct_memory}, {"no_pinned_memory", no_pinned_memory},
               {"driver_fails", driver_fails});
