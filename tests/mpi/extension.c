/*
 * extension.c: see extension.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"

enum { GUARD = 8 };
static const int64_t CANARY = 0x5a5a5a5a5a5a5a5a;

/* ------------------------------------------------------------------- values */

/* Of an allgather: what `owner` sends. */
static int64_t sent(const watch_t *watch, int owner, size_t index)
{
    return mix((uint32_t) owner, (uint32_t) index, watch->options.salt);
}

/* Of a reduce-scatter: what `rank` contributes to a block. */
static int64_t contributed(const watch_t *watch, int rank, int block, size_t index)
{
    return mix((uint32_t) (rank * 64 + block), (uint32_t) index, watch->options.salt);
}

static int64_t summed(const watch_t *watch, int block, size_t index)
{
    int64_t sum = 0;

    for (int rank = 0; rank < watch->size; rank++) {
        sum += contributed(watch, rank, block, index);
    }
    return sum;
}

/* ------------------------------------------------------------------ set-up */

static void place_blocks(watch_t *watch)
{
    const watch_options_t *options = &watch->options;
    int next = GUARD;

    for (int rank = 0; rank < watch->size; rank++) {
        bool empty = rank % 3 == 1;

        watch->counts[rank] = !options->unequal ? options->count
                              : empty           ? 0
                                                : options->count + 3 * rank;
    }
    for (int k = 0; k < watch->size; k++) {
        int rank = options->unequal ? watch->size - 1 - k : k;

        watch->displs[rank] = next;
        next += watch->counts[rank] + (options->unequal ? k % 3 : 0);
    }
    if (watch->kind == WATCH_REDUCE_SCATTER) {
        next = GUARD + watch->counts[watch->rank];
    }
    watch->recv_elements = (size_t) (next + GUARD);
}

static bool is_on_thread(MPI_Comm comm, const watch_options_t *options)
{
    const char *everywhere = getenv("FLASH_TEST_CALLBACK_THREAD");
    int served;

    MPIX_Flash_active(comm, &served);
    return served &&
           (options->on_callback_thread || (everywhere != NULL && strcmp(everywhere, "1") == 0));
}

void watch_init(watch_t *watch, watch_kind_t kind, MPI_Comm comm, const watch_options_t *options)
{
    size_t own;

    memset(watch, 0, sizeof(*watch));
    watch->kind = kind;
    watch->options = *options;
    watch->comm = comm;
    watch->thread = pthread_self();
    watch->on_callback_thread = is_on_thread(comm, options);
    watch->block = -1;
    MPI_Comm_rank(comm, &watch->rank);
    MPI_Comm_size(comm, &watch->size);
    watch->counts = get_memory(sizeof(int) * (size_t) watch->size);
    watch->displs = get_memory(sizeof(int) * (size_t) watch->size);
    place_blocks(watch);
    own = (size_t) watch->counts[watch->rank];
    watch->send = get_memory(sizeof(int64_t) * own);
    watch->recv = get_memory(sizeof(int64_t) * watch->recv_elements);
    for (size_t k = 0; k < watch->recv_elements; k++) {
        watch->recv[k] = CANARY;
    }
    for (size_t k = 0; k < own && kind == WATCH_ALLGATHER; k++) {
        watch->send[k] = sent(watch, watch->rank, k);
        if (options->in_place) {
            watch->recv[(size_t) watch->displs[watch->rank] + k] = watch->send[k];
        }
    }
}

void watch_free(watch_t *watch)
{
    free(watch->counts);
    free(watch->displs);
    free(watch->send);
    free(watch->recv);
}

/* --------------------------------------------------------------- callbacks */

static int pieces_of(const watch_t *watch, int block)
{
    int row = watch->options.row > 1 ? watch->options.row : 1;
    int rows = (watch->counts[block] + row - 1) / row;
    int pieces = watch->options.pieces > 1 ? watch->options.pieces : 1;

    return rows < pieces ? rows : pieces;
}

int watch_expected_calls(const watch_t *watch)
{
    int calls = 0;

    for (int rank = 0; rank < watch->size; rank++) {
        calls += pieces_of(watch, rank);
    }
    return calls;
}

/* There is one of that name. */
static bool is_flashs(void)
{
    char name[16] = "";

    pthread_getname_np(pthread_self(), name, sizeof(name));
    return strcmp(name, "flash-callbacks") == 0;
}

static void check_arguments(const watch_t *watch, const MPIX_Flash_block *block, int expected)
{
    bool last = block->piece == block->pieces - 1;
    int row = watch->options.row > 1 ? watch->options.row : 1;

    check(!watch->inside, "callbacks overlap");
    check(watch->on_callback_thread ? is_flashs() : pthread_equal(pthread_self(), watch->thread),
          "callback on the wrong thread");
    check(!watch->failed, "callback after one that failed");
    check(block->rank == expected, "call %d is for block %d, not %d", watch->calls, block->rank,
          expected);
    check(block->piece == watch->piece, "call %d is for piece %d, not %d", watch->calls,
          block->piece, watch->piece);
    check(block->pieces == pieces_of(watch, expected), "%d pieces, not %d", block->pieces,
          pieces_of(watch, expected));
    check(block->offset == watch->offset, "offset %lld, not %lld", (long long) block->offset,
          (long long) watch->offset);
    check(block->count >= 1 && (last || block->count % row == 0), "count %lld of rows of %d",
          (long long) block->count, row);
    check(last == (block->offset + block->count == watch->counts[expected]),
          "pieces do not make up the block");
    check(block->datatype == MPI_INT64_T && block->stream == NULL, "datatype or stream is wrong");
}

static void consume(watch_t *watch, const MPIX_Flash_block *block)
{
    const int64_t *data = block->data;
    bool in_send = block->rank == watch->rank && data == watch->send + block->offset;

    if (!check(in_send || data == watch->recv + watch->displs[block->rank] + block->offset,
               "block %d is not in its place", block->rank)) {
        return;
    }
    for (size_t k = 0; k < (size_t) block->count; k++) {
        if (!check(data[k] == sent(watch, block->rank, (size_t) block->offset + k),
                   "block %d is not there yet", block->rank)) {
            return;
        }
    }
}

static void produce(watch_t *watch, const MPIX_Flash_block *block)
{
    int64_t *data = block->data;

    for (size_t k = 0; k < (size_t) block->count; k++) {
        data[k] = contributed(watch, watch->rank, block->rank, (size_t) block->offset + k);
    }
}

void watch_compute(watch_t *watch, const MPIX_Flash_block *block)
{
    (watch->kind == WATCH_ALLGATHER ? consume : produce)(watch, block);
}

static int compute(const MPIX_Flash_block *block, void *arg)
{
    watch_t *watch = arg;
    int expected, result = MPI_SUCCESS;

    watch->calls++;
    if (!check(block->rank >= 0 && block->rank < watch->size, "block %d", block->rank)) {
        return MPI_SUCCESS;
    }
    if (watch->block < 0) {
        check(turns_allow(watch->done, watch->counts, watch->size, watch->rank,
                          watch->kind == WATCH_ALLGATHER, block->rank),
              "call %d: it is not the turn of block %d", watch->calls, block->rank);
        watch->block = block->rank;
    }
    expected = watch->block;
    watch->misaligned |= watch->kind == WATCH_REDUCE_SCATTER && block->pieces == 1 &&
                         (uintptr_t) block->data % 64 != 0;
    check_arguments(watch, block, expected);
    watch->inside = true;
    if (watch->options.defer != NULL) {
        result = watch->options.defer(watch->options.defer_arg, watch, block);
    } else {
        watch_compute(watch, block);
    }
    if (watch->options.hook != NULL) {
        watch->options.hook(watch->options.hook_arg, watch->calls);
    }
    watch->inside = false;
    watch->failed = watch->calls == watch->options.fail_call;
    if (watch->failed) {
        return watch->options.fail_error;
    }
    watch->piece++;
    watch->offset += block->count;
    if (watch->offset >= watch->counts[expected]) {
        watch->done |= UINT64_C(1) << expected;
        watch->block = -1;
        watch->piece = 0;
        watch->offset = 0;
    }
    return result;
}

/* -------------------------------------------------------------------- calls */

static const MPIX_Flash_hints *make_hints(const watch_t *watch, MPIX_Flash_hints *hints)
{
    *hints = (MPIX_Flash_hints) MPIX_FLASH_HINTS_INIT;
    hints->pieces = watch->options.pieces;
    hints->row = watch->options.row;
    return hints->pieces == 0 && hints->row == 0 ? NULL : hints;
}

int watch_start(watch_t *watch, MPI_Request *request)
{
    MPIX_Flash_hints space;
    const MPIX_Flash_hints *hints = make_hints(watch, &space);
    const void *send = watch->options.in_place ? MPI_IN_PLACE : watch->send;
    int own = watch->counts[watch->rank];

    if (watch->kind == WATCH_ALLGATHER) {
        return watch->options.unequal
                   ? MPIX_Iallgatherv_compute(send, own, MPI_INT64_T, watch->recv, watch->counts,
                                              watch->displs, MPI_INT64_T, compute, watch, hints,
                                              watch->comm, request)
                   : MPIX_Iallgather_compute(send, own, MPI_INT64_T, watch->recv + GUARD, own,
                                             MPI_INT64_T, compute, watch, hints, watch->comm,
                                             request);
    }
    return watch->options.unequal
               ? MPIX_Ireduce_scatter_compute(compute, watch, hints, watch->recv + GUARD,
                                              watch->counts, MPI_INT64_T, MPI_SUM, watch->comm,
                                              request)
               : MPIX_Ireduce_scatter_block_compute(compute, watch, hints, watch->recv + GUARD, own,
                                                    MPI_INT64_T, MPI_SUM, watch->comm, request);
}

int watch_blocking(watch_t *watch)
{
    MPIX_Flash_hints space;
    const MPIX_Flash_hints *hints = make_hints(watch, &space);
    const void *send = watch->options.in_place ? MPI_IN_PLACE : watch->send;
    int own = watch->counts[watch->rank];

    if (watch->kind == WATCH_ALLGATHER) {
        return watch->options.unequal
                   ? MPIX_Allgatherv_compute(send, own, MPI_INT64_T, watch->recv, watch->counts,
                                             watch->displs, MPI_INT64_T, compute, watch, hints,
                                             watch->comm)
                   : MPIX_Allgather_compute(send, own, MPI_INT64_T, watch->recv + GUARD, own,
                                            MPI_INT64_T, compute, watch, hints, watch->comm);
    }
    return watch->options.unequal
               ? MPIX_Reduce_scatter_compute(compute, watch, hints, watch->recv + GUARD,
                                             watch->counts, MPI_INT64_T, MPI_SUM, watch->comm)
               : MPIX_Reduce_scatter_block_compute(compute, watch, hints, watch->recv + GUARD, own,
                                                   MPI_INT64_T, MPI_SUM, watch->comm);
}

/* ------------------------------------------------------------------ results */

LOOKS_AHEAD static bool allgather_is_right(const watch_t *watch)
{
    for (int rank = 0; rank < watch->size; rank++) {
        for (size_t k = 0; k < (size_t) watch->counts[rank]; k++) {
            if (watch->recv[(size_t) watch->displs[rank] + k] != sent(watch, rank, k)) {
                return false;
            }
        }
    }
    return true;
}

LOOKS_AHEAD static bool sum_is_right(const watch_t *watch)
{
    for (size_t k = 0; k < (size_t) watch->counts[watch->rank]; k++) {
        if (watch->recv[GUARD + k] != summed(watch, watch->rank, k)) {
            return false;
        }
    }
    return true;
}

bool watch_result_is_right(const watch_t *watch)
{
    return watch->kind == WATCH_ALLGATHER ? allgather_is_right(watch) : sum_is_right(watch);
}

static bool in_a_block(const watch_t *watch, size_t element)
{
    if (watch->kind == WATCH_REDUCE_SCATTER) {
        return element >= GUARD && element < GUARD + (size_t) watch->counts[watch->rank];
    }
    for (int rank = 0; rank < watch->size; rank++) {
        size_t first = (size_t) watch->displs[rank];

        if (element >= first && element < first + (size_t) watch->counts[rank]) {
            return true;
        }
    }
    return false;
}

bool watch_guards_are_intact(const watch_t *watch)
{
    for (size_t k = 0; k < watch->recv_elements; k++) {
        if (watch->recv[k] != CANARY && !in_a_block(watch, k)) {
            return false;
        }
    }
    return true;
}

void watch_check(const watch_t *watch, const char *what)
{
    check(watch->calls == watch_expected_calls(watch), "%s, %s: %d callbacks, not %d", what,
          watch->kind == WATCH_ALLGATHER ? "allgather" : "reduce-scatter", watch->calls,
          watch_expected_calls(watch));
    check(watch_result_is_right(watch), "%s, kind %d: wrong result", what, watch->kind);
    check(watch_guards_are_intact(watch), "%s, kind %d: wrote outside", what, watch->kind);
}

void watch_one(watch_kind_t kind, MPI_Comm comm, const watch_options_t *options, const char *what)
{
    MPI_Request request;
    watch_t watch;

    watch_init(&watch, kind, comm, options);
    watch_start(&watch, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    watch_check(&watch, what);
    watch_free(&watch);
}
