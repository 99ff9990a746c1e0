/*
 * test_device_two_callbacks.c: an allreduce and an all-to-all that produce and consume, on buffers
 * in the memory of devices and of the host, by callbacks that wait for the device and in a stream's
 * order.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "aftermath.h"
#include "device_job.h"

typedef struct run {
    bool reduces;
    bool on_stream;
    void *stream;
    int count; /* of the vector, or of a block */
    place_t send_place, recv_place;
    buffer_t send, recv;
    int64_t *made, *seen; /* what is copied to the pieces, and from them */
    int produced, consumed;
} run_t;

static int all_count(const run_t *run)
{
    return run->reduces ? run->count : run->count * world_size;
}

/* What this rank contributes to a place of the vector, or of its send buffer. */
static int64_t contributed(const run_t *run, int place)
{
    return run->reduces ? contribution(world_rank, 0, place)
                        : contribution(world_rank, place / run->count, place % run->count);
}

/* What is to be at a place of the receive buffer. */
static int64_t expected(const run_t *run, int place)
{
    int64_t sum = 0;

    if (!run->reduces) {
        return contribution(place / run->count, world_rank, place % run->count);
    }
    for (int rank = 0; rank < world_size; rank++) {
        sum += contribution(rank, 0, place);
    }
    return sum;
}

/* ------------------------------------------------------------------ callbacks */

/* In the stream, or at once. */
static void copy(const run_t *run, bool on_device, void *to, const void *from, MPI_Count count)
{
    size_t bytes = (size_t) count * sizeof(int64_t);

    if (!on_device) {
        memcpy(to, from, bytes);
        return;
    }
    for (int k = 0; k < 10 && run->on_stream; k++) { /* something that takes time */
        stream_copy(run->stream, to, from, 1);
    }
    stream_copy(run->stream, to, from, bytes);
    if (!run->on_stream) {
        stream_wait(run->stream);
    }
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    MPI_Count first = block->displ + block->offset;
    bool on_device = run->reduces ? run->on_stream : is_in_device(run->send_place);

    check(block->on_stream == run->on_stream && (!run->on_stream || block->stream == run->stream),
          "a producer's stream");
    for (MPI_Count k = 0; k < block->count; k++) {
        run->made[first + k] = contributed(run, (int) (first + k));
    }
    copy(run, on_device, block->data, run->made + first, block->count);
    run->produced += (int) block->count;
    return MPI_SUCCESS;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    MPI_Count first = block->displ + block->offset;
    bool in_recv = block->data == (int64_t *) run->recv.data + first;
    place_t place = in_recv ? run->recv_place : run->send_place;

    check(in_recv || (!run->reduces && block->rank == world_rank), "a piece is elsewhere");
    copy(run, is_in_device(place), run->seen + first, block->data, block->count);
    run->consumed += (int) block->count;
    return MPI_SUCCESS;
}

/* -------------------------------------------------------------------- running */

static void make(run_t *run)
{
    size_t bytes = (size_t) all_count(run) * sizeof(int64_t);

    run->stream = stream_make(0);
    run->recv = buffer_make(run->recv_place, bytes);
    run->send = buffer_make(run->send_place, run->reduces ? 0 : bytes);
    run->made = get_memory(bytes + 1);
    run->seen = get_memory(bytes + 1);
    memset(run->seen, 0xff, bytes);
}

static int start(run_t *run, MPI_Comm comm, MPI_Request *request)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = 3;
    hints.on_stream = run->on_stream;
    hints.stream = run->stream;
    return run->reduces
               ? MPIX_Iallreduce_compute(produce, run, consume, run, &hints, run->recv.data,
                                         run->count, MPI_INT64_T, MPI_SUM, comm, request)
               : MPIX_Ialltoall_compute(run->send.data, run->count, MPI_INT64_T, run->recv.data,
                                        run->count, MPI_INT64_T, produce, run, consume, run, &hints,
                                        comm, request);
}

static void check_run(run_t *run)
{
    int64_t *got = get_memory(run->recv.bytes + 1);
    const char *name = run->reduces ? "allreduce" : "all-to-all";

    stream_wait(run->stream);
    buffer_read(&run->recv, got);
    for (int k = 0; k < all_count(run); k++) {
        if (!check(got[k] == expected(run, k) && run->seen[k] == got[k],
                   "%s of %d, %d to %d%s: element %d", name, run->count, run->send_place,
                   run->recv_place, run->on_stream ? ", on a stream" : "", k)) {
            break;
        }
    }
    check(run->produced == all_count(run) && run->consumed == all_count(run),
          "%s of %d: %d produced, %d consumed", name, run->count, run->produced, run->consumed);
    free(got);
}

static void release(run_t *run)
{
    check(buffer_free(&run->send) && buffer_free(&run->recv), "wrote around a buffer");
    stream_free(run->stream);
    free(run->made);
    free(run->seen);
}

static void one(run_t run)
{
    MPI_Request request;

    make(&run);
    check_class(start(&run, MPI_COMM_WORLD, &request), MPI_SUCCESS, "a start");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "an operation");
    check_run(&run);
    release(&run);
}

/* From each kind of memory to each; on each rank another. */
static void all_kinds(bool reduces, bool on_stream)
{
    static const int counts[] = {0, 1, 7, 5000};

    for (int from = 0; from < PLACES; from++) {
        for (int to = 0; to < PLACES; to++) {
            for (size_t c = 0; c < LENGTH(counts); c++) {
                one((run_t){.reduces = reduces,
                            .on_stream = on_stream,
                            .count = counts[c],
                            .send_place = (place_t) ((from + world_rank) % PLACES),
                            .recv_place = (place_t) ((to + world_rank) % PLACES)});
            }
        }
    }
    nothing_left();
}

static void allreduce(void)
{
    all_kinds(true, false);
    all_kinds(true, true);
}

static void alltoall(void)
{
    all_kinds(false, false);
    all_kinds(false, true);
}

/* bfloat16 of a small whole number: the upper half of single precision. */
static uint16_t half_of(int number)
{
    float x = (float) number;
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (uint16_t) (bits >> 16);
}

static int produce_half(const MPIX_Flash_block *block, void *arg)
{
    uint16_t *made = (uint16_t *) arg + block->displ + block->offset;

    for (MPI_Count k = 0; k < block->count; k++) {
        made[k] = half_of(world_rank + 1);
    }
    stream_copy(block->stream, block->data, made, (size_t) block->count * sizeof(*made));
    return MPI_SUCCESS;
}

/* 16-bit floating point, on a stream: the device adds, or the host. */
static void float16(void)
{
    enum { COUNT = 3000 };
    uint16_t made[COUNT], got[COUNT];
    buffer_t recv = buffer_make(IN_DEVICE, sizeof(got));
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    unsigned long launches = device_launches();
    const char *reduce = getenv("OMPI_MCA_coll_flash_cuda_reduce");
    bool by_device = device_is_standin() && (reduce == NULL || strcmp(reduce, "0") != 0);
    MPI_Datatype type;

    hints.on_stream = 1;
    hints.stream = stream_make(0);
    MPIX_Flash_type(MPIX_FLASH_BF16, &type);
    check_class(MPIX_Allreduce_compute(produce_half, made, NULL, NULL, &hints, recv.data, COUNT,
                                       type, MPI_SUM, MPI_COMM_WORLD),
                MPI_SUCCESS, "an allreduce of 16 bits");
    stream_wait(hints.stream);
    buffer_read(&recv, got);
    for (int k = 0; k < COUNT; k++) {
        if (!check(got[k] == half_of(world_size * (world_size + 1) / 2), "element %d: %x", k,
                   (unsigned) got[k])) {
            break;
        }
    }
    check(!by_device || device_launches() > launches, "the device has not added");
    check(buffer_free(&recv), "wrote around a buffer");
    stream_free(hints.stream);
    nothing_left();
}

/* Without a ring, rank 0's buffer is refused; the others are told, and the next call works. */
static void refused(void)
{
    MPI_Comm comm = make_counted_comm();

    for (int reduces = 0; reduces <= 1; reduces++) {
        run_t run = {.reduces = reduces != 0,
                     .count = 100,
                     .send_place = IN_HOST,
                     .recv_place = world_rank == 0 ? IN_DEVICE : IN_HOST};
        MPI_Request request;

        make(&run);
        check_class(start(&run, comm, &request), MPI_SUCCESS, "a start");
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                    world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER, "a buffer out of reach");
        check(run.consumed == 0, "consumed what did not arrive");
        release(&run);
        one((run_t){.reduces = reduces != 0, .count = 100});
    }
    MPI_Comm_free(&comm);
}

DEVICE_PROGRAM(test_device_two_callbacks, {"allreduce", allreduce}, {"alltoall", alltoall},
               {"float16", float16}, {"refused", refused});
