/*
 * flash_fallback_calls.c: callbacks around a collective that the fallback serves.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/flash_fallback.h"

uint64_t flash_fallback_undone(const flash_fallback_t *fallback)
{
    return atomic_load_explicit(&fallback->undone, memory_order_acquire);
}

/* Whether there is room for one more. */
bool flash_fallback_may_begin(const flash_fallback_t *fallback)
{
    return (flash_fallback_undone(fallback) & flash_pending_bit(fallback->begun)) == 0;
}

void flash_fallback_fail(flash_fallback_t *fallback, int error)
{
    int none = MPI_SUCCESS;

    atomic_compare_exchange_strong_explicit(&fallback->error, &none, error, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* Who finds the bit clear may free the operation: nothing is touched after that. */
bool flash_fallback_end_pending(void *operation, MPI_Count piece, int error)
{
    flash_fallback_t *fallback = operation;
    uint64_t bit = flash_pending_bit((uint64_t) (-1 - piece));

    if ((flash_fallback_undone(fallback) & bit) == 0) {
        return false;
    }
    flash_fallback_fail(fallback, error);
    atomic_fetch_and_explicit(&fallback->undone, ~bit, memory_order_release);
    return true;
}

bool flash_fallback_has_failed(const flash_fallback_t *fallback)
{
    return atomic_load_explicit(&fallback->error, memory_order_relaxed) != MPI_SUCCESS;
}

static char *first_of(const flash_fallback_t *fallback, bool produces, uint32_t block)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    bool one = schedule->kind == (produces ? FLASH_ALLGATHER : FLASH_REDUCE_SCATTER);
    ptrdiff_t element = one ? 0 : flash_schedule_displ(schedule, block);

    return (produces ? fallback->input : fallback->output) + element * fallback->extent;
}

/* `block` but for what all callbacks have in common. */
static void call_back(flash_fallback_t *fallback, bool produces, MPIX_Flash_block block)
{
    const mca_coll_flash_compute_t *compute = &fallback->compute;
    bool nested = flash_in_callback;
    int error;

    block.datatype =
        produces && fallback->sendtype != NULL ? fallback->sendtype : fallback->datatype;
    block.on_stream = compute->on_stream;
    block.stream = compute->stream;
    block.handle = (MPIX_Flash_handle){fallback, -1 - (MPI_Count) fallback->begun};
    atomic_fetch_or_explicit(&fallback->undone, flash_pending_bit(fallback->begun++),
                             memory_order_relaxed);
    flash_in_callback = true;
    error = produces ? compute->produce(&block, compute->produce_arg)
                     : compute->consume(&block, compute->consume_arg);
    flash_in_callback = nested;
    if (error != MPIX_FLASH_PENDING) {
        flash_fallback_end_pending(fallback, block.handle.piece,
                                   error >= 0 ? error : MPI_ERR_OTHER);
    }
}

static void call_piece(flash_fallback_t *fallback, bool produces, uint32_t number, uint32_t piece)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    flash_split_t split = flash_schedule_split(schedule, number);
    flash_range_t range = flash_split_piece(&split, piece);

    call_back(fallback, produces,
              (MPIX_Flash_block){.rank = (int) flash_schedule_rank(schedule, number),
                                 .piece = (int) piece,
                                 .pieces = (int) split.pieces,
                                 .ranks = 1,
                                 .displ = flash_schedule_displ(schedule, number),
                                 .offset = (MPI_Count) range.offset,
                                 .count = (MPI_Count) range.count,
                                 .data = first_of(fallback, produces, number) +
                                         (ptrdiff_t) range.offset * fallback->extent});
}

/*
 * All blocks of a walk, if callbacks may take them at once: several, of whole rows, which lie one
 * behind another as the ranks do. False: not so, or there is nothing in them, or nobody to call.
 */
static bool find_whole(flash_fallback_t *fallback, bool produces, MPIX_Flash_block *whole)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    uint32_t ranks = schedule->ring.nranks;
    uint32_t first = produces ? flash_schedule_blocks(schedule) - ranks : 0;
    ptrdiff_t end = 0;

    *whole = (MPIX_Flash_block){.pieces = 1, .ranks = (int) ranks};
    if (!fallback->compute.merge || flash_fallback_has_failed(fallback) ||
        flash_schedule_length(schedule, produces ? FLASH_PRODUCED : FLASH_CONSUMED) == 1) {
        return false;
    }
    for (uint32_t block = first; block < first + ranks; block++) {
        ptrdiff_t displ = flash_schedule_displ(schedule, block);
        size_t count = flash_schedule_count(schedule, block);

        if (count == 0) {
            continue;
        }
        if (whole->count == 0) {
            whole->displ = displ;
            whole->data = first_of(fallback, produces, block);
        } else if (displ != end || whole->count % (MPI_Count) schedule->row != 0) {
            return false;
        }
        end = displ + (ptrdiff_t) count;
        whole->count += (MPI_Count) count;
    }
    return whole->count > 0;
}

/* Moves on to the next piece for a consumer. False if there is none. */
bool flash_fallback_find_next(flash_fallback_t *fallback)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    MPIX_Flash_block whole;

    if (fallback->compute.consume == NULL || flash_fallback_has_failed(fallback)) {
        return false;
    }
    if (fallback->at == 0 && fallback->piece == 0 && find_whole(fallback, false, &whole)) {
        return true;
    }
    for (; fallback->at < flash_schedule_length(schedule, FLASH_CONSUMED); fallback->at++) {
        uint32_t block = flash_schedule_block(schedule, FLASH_CONSUMED, fallback->at);

        if (fallback->piece < flash_schedule_split(schedule, block).pieces) {
            return true;
        }
        fallback->piece = 0;
    }
    return false;
}

void flash_fallback_consume_next(flash_fallback_t *fallback)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    MPIX_Flash_block whole;

    if (fallback->at == 0 && fallback->piece == 0 && find_whole(fallback, false, &whole)) {
        fallback->at = flash_schedule_length(schedule, FLASH_CONSUMED);
        call_back(fallback, false, whole);
    } else {
        call_piece(fallback, false, flash_schedule_block(schedule, FLASH_CONSUMED, fallback->at),
                   fallback->piece++);
    }
}

static void produce_block(flash_fallback_t *fallback, uint32_t block)
{
    uint32_t pieces = flash_schedule_split(&fallback->schedule, block).pieces;

    for (uint32_t piece = 0; piece < pieces && !flash_fallback_has_failed(fallback); piece++) {
        while (!flash_fallback_may_begin(fallback)) {
            opal_progress();
        }
        if (flash_fallback_has_failed(fallback)) {
            break; /* meanwhile */
        }
        call_piece(fallback, true, block, piece);
    }
}

void flash_fallback_produce(flash_fallback_t *fallback)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    uint32_t length = flash_schedule_length(schedule, FLASH_PRODUCED);
    MPIX_Flash_block whole;

    if (find_whole(fallback, true, &whole)) {
        call_back(fallback, true, whole);
    } else {
        for (uint32_t at = 0; at < length; at++) {
            produce_block(fallback, flash_schedule_block(schedule, FLASH_PRODUCED, at));
        }
    }
    while (flash_fallback_undone(fallback) != 0) {
        opal_progress();
    }
}
