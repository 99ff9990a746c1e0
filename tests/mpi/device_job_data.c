/*
 * device_job_data.c: what a job's buffers hold before it begins, and what they are to hold at its
 * end.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job_parts.h"

#include <stdio.h>

static const char *const form_names[] = {"plain", "in place", "compute", "stream", "persistent"};

/* What a device's memory is to hold. In the order of a stream, after much else, as if it were
   computed there. */
static void fill(job_t *job, const buffer_t *buffer, const int64_t *content)
{
    if (job->form != STREAM || buffer->place != IN_DEVICE) {
        buffer_write(buffer, content);
        return;
    }
    job->input = get_memory(buffer->bytes + 1);
    memcpy(job->input, content, buffer->bytes);
    for (int k = 0; k < 20 && buffer->bytes > 0; k++) {
        stream_copy(job->stream, buffer->data, (const char *) job->input + k % 8, 1);
    }
    stream_copy(job->stream, buffer->data, job->input, buffer->bytes);
}

static void fetch(const job_t *job, int64_t *content)
{
    if (job->form != STREAM || job->recv.place != IN_DEVICE) {
        buffer_read(&job->recv, content);
        return;
    }
    stream_copy(job->stream, content, job->recv.data, job->recv.bytes);
    stream_wait(job->stream);
}

void job_make_gather(job_t *job)
{
    size_t bytes = (size_t) job_all_count(job) * sizeof(int64_t);
    int64_t *all = get_memory(bytes + 1), *own = all + job->displs[world_rank];

    memset(all, 0xff, bytes);
    for (int i = 0; i < job_own_count(job); i++) {
        own[i] = contribution(world_rank, world_rank, i);
    }
    job->recv = buffer_make(job->recv_place, bytes);
    if (job->form == IN_PLACE) {
        buffer_write(&job->recv, all);
    } else {
        job->send = buffer_make(job->send_place, (size_t) job_own_count(job) * sizeof(int64_t));
        if (job->own) { /* its callback copies it, wherever it is to be */
            job->input = get_memory(job->send.bytes + 1);
            memcpy(job->input, own, job->send.bytes);
        } else {
            fill(job, &job->send, own);
        }
    }
    free(all);
}

void job_make_scatter(job_t *job)
{
    size_t bytes = (size_t) job_all_count(job) * sizeof(int64_t);
    int64_t *all = get_memory(bytes + 1);

    for (int rank = 0; rank < world_size; rank++) {
        for (int i = 0; i < job->counts[rank]; i++) {
            all[job->displs[rank] + i] = contribution(world_rank, rank, i);
        }
    }
    if (job->form == IN_PLACE) {
        job->recv = buffer_make(job->recv_place, bytes);
        buffer_write(&job->recv, all);
    } else {
        job->recv =
            buffer_make(job->recv_place, job->everywhere || job->exchanges
                                             ? bytes
                                             : (size_t) job_own_count(job) * sizeof(int64_t));
        job->send = buffer_make(job->send_place, bytes);
        buffer_write(&job->send, all);
    }
    free(all);
}

void job_check_gather(const job_t *job)
{
    int64_t *all = get_memory(job->recv.bytes + 1);

    fetch(job, all);
    for (int rank = 0; rank < world_size; rank++) {
        for (int i = 0; i < job->counts[rank]; i++) {
            if (!check(all[job->displs[rank] + i] == contribution(rank, rank, i),
                       "%s of %d, %d to %d: element %d of block %d", form_names[job->form],
                       job->count, job->send_place, job->recv_place, i, rank)) {
                break;
            }
        }
    }
    if (job->form == STREAM) {
        stream_wait(job->stream);
        check(memcmp(job->kept, all, job->recv.bytes) == 0 || job->recv.bytes == 0,
              "callbacks saw other elements than arrived, of %d", job->count);
    }
    if (job->form == COMPUTE || job->form == STREAM) {
        check(job->seen == job_all_count(job), "callbacks saw %d elements", job->seen);
    }
    free(all);
}

static void check_sums(const job_t *job, int block, const int64_t *sums)
{
    for (int i = 0; i < job->counts[block]; i++) {
        int64_t sum = 0;

        for (int rank = 0; rank < world_size; rank++) {
            sum += contribution(rank, block, i);
        }
        if (!check(sums[i] == sum, "%s of %d, %d to %d: sum %d of block %d", form_names[job->form],
                   job->count, job->send_place, job->recv_place, i, block)) {
            break;
        }
    }
}

void job_check_scatter(const job_t *job)
{
    int64_t *own = get_memory(job->recv.bytes + 1);

    fetch(job, own);
    for (int block = 0; job->everywhere && block < world_size; block++) {
        check_sums(job, block, own + job->displs[block]);
    }
    for (int k = 0; job->exchanges && k < job_all_count(job); k++) {
        int from = k / job->count, i = k % job->count;

        if (!check(own[k] == contribution(from, world_rank, i),
                   "%s of %d, %d to %d: element %d of %d", form_names[job->form], job->count,
                   job->send_place, job->recv_place, i, from)) {
            break;
        }
    }
    if (!job->everywhere && !job->exchanges) {
        check_sums(job, world_rank, own);
    }
    if (job->own) {
        stream_wait(job->stream);
        check(job->recv.bytes == 0 || memcmp(job->sums, own, job->recv.bytes) == 0,
              "the own block's callback saw other sums, of %d", job->count);
    }
    free(own);
}
