/*
 * test_device_stream.c: operations in the order of a device's stream, whose callbacks leave work
 * there; without a ring as well.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"

static void allgather(void)
{
    all_places(true, STREAM, STREAM);
}

static void reduce_scatter(void)
{
    all_places(false, STREAM, STREAM);
}

/* With a callback for the own block, which leaves its work there. */
static void own(void)
{
    static const place_t places[] = {IN_HOST, IN_DEVICE};
    void *stream = stream_make(0);

    for (int k = 0; k < 32; k++) {
        job_t job = {.form = STREAM,
                     .count = k % 2 == 0 ? 7 : 40000,
                     .gather = k / 2 % 2 == 0,
                     .unequal = k / 4 % 2 == 1,
                     .pieces = k / 8,
                     .own = true,
                     .send_place = places[(k / 4 + world_rank) % 2],
                     .recv_place = places[k / 8 % 2],
                     .stream = stream,
                     .comm = MPI_COMM_WORLD};

        job_run(&job);
    }
    stream_free(stream);
    nothing_left();
}

/* The default stream is that of the thread's context. */
static void default_stream(void)
{
    device_enter();
    for (int gather = 0; gather <= 1; gather++) {
        job_t job = {.form = STREAM,
                     .count = 30000,
                     .gather = gather,
                     .pieces = 3,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE,
                     .stream = NULL,
                     .comm = MPI_COMM_WORLD};

        job_run(&job);
    }
    device_leave();
    nothing_left();
}

/* Of both kinds, in two streams and in none. */
static void many(void)
{
    enum { MANY = 12 };
    static job_t jobs[MANY];
    void *streams[] = {stream_make(0), stream_make(0)};

    for (int k = 0; k < MANY; k++) {
        jobs[k] = (job_t){.form = k % 3 == 0 ? COMPUTE : STREAM,
                          .count = 3000 * k,
                          .unequal = k % 4 == 1,
                          .gather = k / 2 % 2 == 0,
                          .pieces = k % 4,
                          .send_place = IN_DEVICE,
                          .recv_place = k % 5 != 0 ? IN_DEVICE : IN_HOST,
                          .stream = streams[k % 2],
                          .comm = MPI_COMM_WORLD};
    }
    jobs_run(jobs, MANY);
    stream_free(streams[0]);
    stream_free(streams[1]);
    nothing_left();
}

/* The extension's calls alone, which work without the component, too. */
static void extension(void)
{
    all_places(true, COMPUTE, STREAM);
    all_places(false, COMPUTE, STREAM);
}

DEVICE_PROGRAM(test_device_stream, {"allgather", allgather}, {"reduce_scatter", reduce_scatter},
               {"default_stream", default_stream}, {"many", many}, {"own", own},
               {"extension", extension});
