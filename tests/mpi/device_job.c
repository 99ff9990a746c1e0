/*
 * device_job.c: see device_job.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"

#include <stdio.h>

#include "extension.h"
#include "persistent.h"

static const char *const form_names[] = {"plain", "in place", "compute", "stream", "persistent"};

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

static int own_count(const job_t *job)
{
    return job->counts[world_rank];
}

static int all_count(const job_t *job)
{
    return sum_of_counts(job->count, job->unequal, world_size);
}

/* ---------------------------------------------------------------- what is sent */

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

static void make_gather(job_t *job)
{
    size_t bytes = (size_t) all_count(job) * sizeof(int64_t);
    int64_t *all = get_memory(bytes + 1), *own = all + job->displs[world_rank];

    memset(all, 0xff, bytes);
    for (int i = 0; i < own_count(job); i++) {
        own[i] = contribution(world_rank, world_rank, i);
    }
    job->recv = buffer_make(job->recv_place, bytes);
    if (job->form == IN_PLACE) {
        buffer_write(&job->recv, all);
    } else {
        job->send = buffer_make(job->send_place, (size_t) own_count(job) * sizeof(int64_t));
        if (job->own) { /* its callback copies it, wherever it is to be */
            job->input = get_memory(job->send.bytes + 1);
            memcpy(job->input, own, job->send.bytes);
        } else {
            fill(job, &job->send, own);
        }
    }
    free(all);
}

static void make_scatter(job_t *job)
{
    size_t bytes = (size_t) all_count(job) * sizeof(int64_t);
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
        job->recv = buffer_make(job->recv_place, (size_t) own_count(job) * sizeof(int64_t));
        job->send = buffer_make(job->send_place, bytes);
        buffer_write(&job->send, all);
    }
    free(all);
}

/* ------------------------------------------------------------------- what is got */

static void check_gather(const job_t *job)
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
        check(job->seen == all_count(job), "callbacks saw %d elements", job->seen);
    }
    free(all);
}

static void check_scatter(const job_t *job)
{
    int64_t *own = get_memory(job->recv.bytes + 1);

    fetch(job, own);
    for (int i = 0; i < own_count(job); i++) {
        int64_t sum = 0;

        for (int rank = 0; rank < world_size; rank++) {
            sum += contribution(rank, world_rank, i);
        }
        if (!check(own[i] == sum, "%s of %d, %d to %d: sum %d", form_names[job->form], job->count,
                   job->send_place, job->recv_place, i)) {
            break;
        }
    }
    if (job->own) {
        stream_wait(job->stream);
        check(job->recv.bytes == 0 || memcmp(job->sums, own, job->recv.bytes) == 0,
              "the own block's callback saw other sums, of %d", job->count);
    }
    free(own);
}

/* ---------------------------------------------------------------------- callbacks */

/* Whether a consumer's piece is in a device's memory: in that of the buffer that it lies in. */
static bool piece_is_in_device(const job_t *job, const MPIX_Flash_block *block)
{
    const int64_t *place =
        (const int64_t *) job->recv.data + job->displs[block->rank] + block->offset;

    return is_in_device(block->data == place ? job->recv_place : job->send_place);
}

/* FLASH_TEST_CALLER=1 in the environment: flash's thread, which has a device for what is in one. */
static void check_context(void)
{
    check(getenv("FLASH_TEST_CALLER") == NULL || !device_is_standin() || device_has_context(),
          "a callback for a device's memory without a context");
}

static int consume_on_stream(const MPIX_Flash_block *block, void *arg)
{
    job_t *job = arg;
    int64_t *place = job->kept + job->displs[block->rank] + block->offset;
    size_t bytes = (size_t) block->count * sizeof(*place);

    check(block->stream == job->stream, "a consumer's stream");
    if (piece_is_in_device(job, block)) {
        check_context();
        stream_copy(block->stream, place, block->data, bytes);
    } else {
        memcpy(place, block->data, bytes);
    }
    job->seen += (int) block->count;
    return MPI_SUCCESS;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    job_t *job = arg;
    bool in_device = piece_is_in_device(job, block);
    int64_t *data = get_memory((size_t) block->count * sizeof(*data) + 1);

    if (in_device) {
        check_context();
        device_fetch(data, block->data, (size_t) block->count * sizeof(*data));
    } else {
        memcpy(data, block->data, (size_t) block->count * sizeof(*data));
    }
    for (int i = 0; i < block->count; i++) {
        check(data[i] == contribution(block->rank, block->rank, (int) block->offset + i) ||
                  (in_device && device_is_broken()),
              "callback for block %d: element %d", block->rank, i);
    }
    job->seen += (int) block->count;
    free(data);
    return MPI_SUCCESS;
}

/* A producer writes to memory of the host, wherever the result goes. */
static int produce(const MPIX_Flash_block *block, void *arg)
{
    int64_t *data = block->data;

    (void) arg;
    for (int i = 0; i < block->count; i++) {
        data[i] = contribution(world_rank, block->rank, (int) block->offset + i);
    }
    return MPI_SUCCESS;
}

/* On the device, and not before what the stream holds. */
static int produce_on_stream(const MPIX_Flash_block *block, void *arg)
{
    job_t *job = arg;
    int64_t *place = job->kept + job->displs[block->rank] + block->offset;

    check(block->stream == job->stream, "a producer's stream");
    check_context();
    for (int i = 0; i < block->count; i++) {
        place[i] = contribution(world_rank, block->rank, (int) block->offset + i);
    }
    for (int k = 0; k < (job->slow ? 2000 : 20); k++) {
        stream_copy(block->stream, block->data, place, 1);
    }
    stream_copy(block->stream, block->data, place, (size_t) block->count * sizeof(*place));
    return MPI_SUCCESS;
}

static int make_own_on_stream(const MPIX_Flash_block *block, void *arg)
{
    job_t *job = arg;

    check(block->stream == job->stream && block->rank == world_rank, "the own block's callback");
    for (int k = 0; k < 20; k++) {
        stream_copy(block->stream, block->data, job->input, 1);
    }
    stream_copy(block->stream, block->data, job->input + block->offset,
                (size_t) block->count * sizeof(*job->input));
    return MPI_SUCCESS;
}

static int look_at_own_on_stream(const MPIX_Flash_block *block, void *arg)
{
    job_t *job = arg;

    check(block->stream == job->stream && block->rank == world_rank, "the own block's callback");
    stream_copy(block->stream, job->sums + block->offset, block->data,
                (size_t) block->count * sizeof(*job->sums));
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------------------- calls */

static MPIX_Flash_hints hints_of(job_t *job)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = job->pieces;
    hints.on_stream = job->form == STREAM;
    hints.stream = job->stream;
    if (job->own) {
        hints.own = job->gather ? make_own_on_stream : look_at_own_on_stream;
        hints.own_arg = job;
    }
    return hints;
}

static int start_gather(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;
    MPIX_Flash_hints hints = hints_of(job);
    int own = own_count(job);

    if (job->form == COMPUTE || job->form == STREAM) {
        return MPIX_Iallgatherv_compute(send, own, MPI_INT64_T, job->recv.data, job->counts,
                                        job->displs, MPI_INT64_T,
                                        job->form == STREAM ? consume_on_stream : consume, job,
                                        &hints, job->comm, &job->request);
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

static int start_scatter(job_t *job)
{
    const void *send = job->form == IN_PLACE ? MPI_IN_PLACE : job->send.data;
    MPIX_Flash_hints hints = hints_of(job);
    MPI_Op op = job->op == NULL ? MPI_SUM : job->op;

    if (job->form == COMPUTE || job->form == STREAM) {
        return MPIX_Ireduce_scatter_compute(job->form == STREAM ? produce_on_stream : produce, job,
                                            &hints, job->recv.data, job->counts, MPI_INT64_T, op,
                                            job->comm, &job->request);
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
    return MPI_Ireduce_scatter_block(send, job->recv.data, own_count(job), MPI_INT64_T, op,
                                     job->comm, &job->request);
}

void job_make(job_t *job)
{
    arrays(job->count, job->unequal, job->counts, job->displs);
    job->request = MPI_REQUEST_NULL;
    job->seen = 0;
    job->input = NULL;
    job->kept = get_memory((size_t) all_count(job) * sizeof(*job->kept) + 1);
    job->sums = get_memory((size_t) own_count(job) * sizeof(*job->sums) + 1);
    if (job->gather) {
        make_gather(job);
    } else {
        make_scatter(job);
    }
}

int job_begin(job_t *job)
{
    return job->gather ? start_gather(job) : start_scatter(job);
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
        check_gather(job);
    } else {
        check_scatter(job);
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

/* Of the pairs of kinds of memory: which come in turn. Of the longest blocks the short tier has a third of the
   others', another for each form: of plain calls that from a device to a device. */
static int step_of_pairs(form_t form, bool longest)
{
    return !short_tier ? (form == PLAIN ? 1 : 3) : longest ? 9 : 3;
}

static int first_pair(form_t form, bool longest, bool unequal)
{
    int third = form == PLAIN ? 2 : ((int) form + unequal) % 3;

    return short_tier && longest ? 3 * third : 0;
}

/* Each kind of memory to each, and on each rank another one. */
void all_places(bool gather, form_t first, form_t last)
{
    static const int counts[] = {0, 1, 7, 1000, 70001};
    void *stream = stream_make(0);

    for (form_t form = first; form <= last; form++) {
        for (size_t k = 0; k < 2 * LENGTH(counts); k++) {
            bool longest = k / 2 == LENGTH(counts) - 1;

            for (int turn = first_pair(form, longest, k % 2 == 1); turn < PLACES * PLACES;
                 turn += step_of_pairs(form, longest)) {
                int where = turn + (turn % 2) * world_rank;
                job_t job = {.form = form,
                             .count = counts[k / 2],
                             .unequal = k % 2 == 1,
                             .gather = gather,
                             .send_place = (place_t) (where % PLACES),
                             .recv_place = (place_t) (where / PLACES % PLACES),
                             .pieces = turn % 4,
                             .stream = stream,
                             .comm = MPI_COMM_WORLD};

                job_run(&job);
            }
        }
    }
    stream_free(stream);
    nothing_left();
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
