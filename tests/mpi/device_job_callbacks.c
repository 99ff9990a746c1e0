/*
 * device_job_callbacks.c: the callbacks of a job, which look at what comes and make what goes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job_parts.h"

/* Whether a consumer's piece is in a device's memory: in that of the buffer that it lies in. */
static bool piece_is_in_device(const job_t *job, const MPIX_Flash_block *block)
{
    const int64_t *place =
        (const int64_t *) job->recv.data + job->displs[block->rank] + block->offset;

    return is_in_device(block->data == place ? job->recv_place : job->send_place);
}

/*
 * FLASH_TEST_CALLBACK_THREAD=1 in the environment: flash's thread, which has a device for what is
 * in one.
 */
static void check_context(void)
{
    check(getenv("FLASH_TEST_CALLBACK_THREAD") == NULL || !device_is_standin() ||
              device_has_context(),
          "a callback for a device's memory without a context");
}

int job_consume_on_stream(const MPIX_Flash_block *block, void *arg)
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

int job_consume(const MPIX_Flash_block *block, void *arg)
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
int job_produce(const MPIX_Flash_block *block, void *arg)
{
    int64_t *data = block->data;

    (void) arg;
    for (int i = 0; i < block->count; i++) {
        data[i] = contribution(world_rank, block->rank, (int) block->offset + i);
    }
    return MPI_SUCCESS;
}

/* On the device, and not before what the stream holds. */
int job_produce_on_stream(const MPIX_Flash_block *block, void *arg)
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

int job_make_own(const MPIX_Flash_block *block, void *arg)
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

int job_look_at_own(const MPIX_Flash_block *block, void *arg)
{
    job_t *job = arg;

    check(block->stream == job->stream && block->rank == world_rank, "the own block's callback");
    stream_copy(block->stream, job->sums + block->offset, block->data,
                (size_t) block->count * sizeof(*job->sums));
    return MPI_SUCCESS;
}
