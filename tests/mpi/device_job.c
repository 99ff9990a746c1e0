/*
 * device_job.c: see device_job.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job_parts.h"

#include <stdio.h>

#include "persistent.h"

/* Elements of int64_t in a block; 0 in each third one where they are unequal. */
static int block_count(int count, bool unequal, int rank)
{
    return !unequal ? count : rank % 3 == 2 ? 0 : count + rank;
}

static int sum_of_counts(int count, bool unequal, int before)
{
    int sum = 0;

    for (int rank = 0; rank < before; rank++) {
        sum += block_count(count, unequal, rank);
    }
    return sum;
}

/* What a rank contributes to an element. */
int64_t contribution(int rank, int block, int index)
{
    return (int64_t) mix((uint32_t) rank, (uint32_t) block, (uint32_t) index);
}

static void arrays(int count, bool unequal, int *counts, int *displs)
{
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = block_count(count, unequal, rank);
        displs[rank] = sum_of_counts(count, unequal, rank);
    }
}

int job_own_count(const job_t *job)
{
    return job->counts[world_rank];
}

int job_all_count(const job_t *job)
{
    return sum_of_counts(job->count, job->unequal, world_size);
}

static MPIX_Flash_hints hints_of(job_t *job)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = job->pieces;
    hints.on_stream = job->form == STREAM;
    hints.stream = job->stream;
    if (job->own) {
        hints.own = job->gather ? job_make_own : job_look_at_own;
        hints.own_arg = job;
    }
    return hints;
}

static int start_gather(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;
    MPIX_Flash_hints hints = hints_of(job);
    int own = job_own_count(job);

    if (job->form == COMPUTE || job->form == STREAM) {
        return MPIX_Iallgatherv_compute(send, own, MPI_INT64_T, job->recv.data, job->counts,
                                        job->displs, MPI_INT64_T,
                                        job->form == STREAM ? job_consume_on_stream : job_consume,
                                        job, &hints, job->comm, &job->request);
    }
    if (job->form == PERSISTENT) {
        int error =
            MPI_Allgatherv_init(send, own, MPI_INT64_T, job->recv.data, job->counts, job->displs,
                                MPI_INT64_T, job->comm, MPI_INFO_NULL, &job->request);

        return error == MPI_SUCCESS ? MPI_Start(&job->request) : error;
    }
    if (job->unequal) {
        return MPI_Iallgatherv(send, own, MPI_INT64_T, job->recv.data, job->counts, job->displs,
                               MPI_INT64_T, job->comm, &job->request);
    }
    return MPI_Iallgather(send, own, MPI_INT64_T, job->recv.data, own, MPI_INT64_T, job->comm,
                          &job->request);
}

static int start_everywhere(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;
    MPI_Op op = job->op == NULL ? MPI_SUM : job->op;
    int all = job_all_count(job), error;

    if (job->form != PERSISTENT) {
        return MPI_Iallreduce(send, job->recv.data, all, MPI_INT64_T, op, job->comm, &job->request);
    }
    error = MPI_Allreduce_init(send, job->recv.data, all, MPI_INT64_T, op, job->comm, MPI_INFO_NULL,
                               &job->request);
    return error == MPI_SUCCESS ? MPI_Start(&job->request) : error;
}

static int start_exchange(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;
    static bool with_counts; /* every other time; alike on all ranks, which make the same calls */
    int own = job_own_count(job), error;

    with_counts = !with_counts;
    if (job->form != PERSISTENT && with_counts) {
        return MPI_Ialltoallv(send, job->counts, job->displs, MPI_INT64_T, job->recv.data,
                              job->counts, job->displs, MPI_INT64_T, job->comm, &job->request);
    }
    if (job->form != PERSISTENT) {
        return MPI_Ialltoall(send, own, MPI_INT64_T, job->recv.data, own, MPI_INT64_T, job->comm,
                             &job->request);
    }
    error = MPI_Alltoall_init(send, own, MPI_INT64_T, job->recv.data, own, MPI_INT64_T, job->comm,
                              MPI_INFO_NULL, &job->request);
    return error == MPI_SUCCESS ? MPI_Start(&job->request) : error;
}

static int start_scatter(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;
    MPIX_Flash_hints hints = hints_of(job);
    MPI_Op op = job->op == NULL ? MPI_SUM : job->op;

    if (job->form == COMPUTE || job->form == STREAM) {
        return MPIX_Ireduce_scatter_compute(
            job->form == STREAM ? job_produce_on_stream : job_produce, job, &hints, job->recv.data,
            job->counts, MPI_INT64_T, op, job->comm, &job->request);
    }
    if (job->form == PERSISTENT) {
        int error = MPI_Reduce_scatter_init(send, job->recv.data, job->counts, MPI_INT64_T, op,
                                            job->comm, MPI_INFO_NULL, &job->request);

        return error == MPI_SUCCESS ? MPI_Start(&job->request) : error;
    }
    if (job->unequal) {
        return MPI_Ireduce_scatter(send, job->recv.data, job->counts, MPI_INT64_T, op, job->comm,
                                   &job->request);
    }
    return MPI_Ireduce_scatter_block(send, job->recv.data, job_own_count(job), MPI_INT64_T, op,
                                     job->comm, &job->request);
}

void job_make(job_t *job)
{
    arrays(job->count, job->unequal, job->counts, job->displs);
    job->request = MPI_REQUEST_NULL;
    job->seen = 0;
    job->input = NULL;
    job->kept = get_memory((size_t) job_all_count(job) * sizeof(*job->kept) + 1);
    job->sums = get_memory((size_t) job_own_count(job) * sizeof(*job->sums) + 1);
    if (job->gather) {
        job_make_gather(job);
    } else {
        job_make_scatter(job);
    }
}

int job_begin(job_t *job)
{
    return job->gather       ? start_gather(job)
           : job->everywhere ? start_everywhere(job)
           : job->exchanges  ? start_exchange(job)
                             : start_scatter(job);
}

int job_start(job_t *job)
{
    job_make(job);
    return job_begin(job);
}

void job_end(job_t *job)
{
    if (job->form == PERSISTENT && job->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&job->request);
    }
    if (job->form == STREAM) {
        stream_wait(job->stream);
    }
    free(job->input);
    free(job->kept);
    free(job->sums);
    check(job->form == IN_PLACE || buffer_free(&job->send), "wrote around the send buffer");
    check(buffer_free(&job->recv), "wrote around the receive buffer");
}

void job_check(job_t *job)
{
    if (job->gather) {
        job_check_gather(job);
    } else {
        job_check_scatter(job);
    }
}

void job_run(job_t *job)
{
    job_start(job);
    MPI_Wait(&job->request, MPI_STATUS_IGNORE);
    job_check(job);
    job_end(job);
}

void jobs_run(job_t *jobs, int count)
{
    MPI_Request requests[MOST_JOBS];

    for (int k = 0; k < count; k++) {
        job_start(&jobs[k]);
        requests[k] = jobs[k].request;
    }
    for (int left = count; left > 0; left--) {
        int k;

        MPI_Waitany(count, requests, &k, MPI_STATUS_IGNORE);
        job_check(&jobs[k]);
    }
    for (int k = 0; k < count; k++) {
        job_end(&jobs[k]);
    }
}

void nothing_left(void)
{
    check(device_pushed() == 0, "%d contexts are left to this thread", device_pushed());
}

bool device_is_left(void)
{
    if (device_pinned() != 0) {
        fprintf(stderr, "%d pieces of pinned memory are left\n", device_pinned());
    }
    if (device_on_device() != 0) {
        fprintf(stderr, "%d pieces of a device's memory are left\n", device_on_device());
    }
    if (device_streams() + device_events() != 0) {
        fprintf(stderr, "%d streams and %d events are left\n", device_streams(), device_events());
    }
    return device_pinned() + device_on_device() + device_streams() + device_events() == 0;
}
