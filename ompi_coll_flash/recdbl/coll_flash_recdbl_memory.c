/*
 * coll_flash_recdbl_memory.c: the memory of an operation by recursive doubling.
 *
 * Shared between threads: `spare` is exchanged.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "recdbl/coll_flash_recdbl_rounds.h"

#include <stdlib.h>

#include "engine/flash_copy.h"

typedef mca_coll_flash_recdbl_header_t header_t;

mca_coll_flash_recdbl_header_t *flash_recdbl_trash;

/*
 * An operation's memory, from the beginning of a page on. One is kept for the next: new pages take
 * longer than what is done with it.
 */
typedef struct memory {
    _Alignas(max_align_t) size_t bytes; /* behind this */
} memory_t;

static _Atomic(memory_t *) spare; /* exchanged, with acquire and release; NULL: it is in use */

/* Elements of the blocks at those places. */
size_t flash_recdbl_count(const mca_coll_flash_request_t *request, uint32_t first, uint32_t count)
{
    const flash_blocks_t *blocks = &flash_recdbl_params(request)->schedule.blocks;
    size_t elements = 0;

    if (blocks->counts == NULL) {
        return count * blocks->count;
    }
    for (uint32_t place = first; place < first + count; place++) {
        elements += flash_schedule_count(
            &flash_recdbl_params(request)->schedule,
            flash_recdbl_block(flash_recdbl_ranks(request), flash_recdbl_rank(request), place));
    }
    return elements;
}

char *flash_recdbl_place(const mca_coll_flash_request_t *request, uint32_t place)
{
    return mca_coll_flash_recdbl_of(request)->blocks +
           flash_recdbl_count(request, 0, place) * flash_recdbl_params(request)->element;
}

/* Of a block in the buffers of the caller. */
static char *place_in(const mca_coll_flash_request_t *request, const void *memory, uint32_t block)
{
    const flash_op_params_t *params = flash_recdbl_params(request);

    return (char *) (uintptr_t) memory +
           flash_schedule_displ(&params->schedule, block) * (ptrdiff_t) params->element;
}

/*
 * No message of a round is longer, whatever the ranks disagree about otherwise. (One of Open MPI's
 * own calls may be, in a program that has a call of one size here and of another there.) The limit
 * counts the data of blocks; the pairs of MPI_MAXLOC have gaps, which are less than that.
 */
size_t flash_recdbl_room(void)
{
    return sizeof(header_t) + 2 * FLASH_RECDBL_MOST;
}

bool mca_coll_flash_recdbl_open(void)
{
    flash_recdbl_trash = malloc(flash_recdbl_room());
    return flash_recdbl_trash != NULL;
}

void mca_coll_flash_recdbl_close(void)
{
    free(flash_recdbl_trash);
    flash_recdbl_trash = NULL;
    free(atomic_exchange_explicit(&spare, NULL, memory_order_acquire));
}

static size_t rounded_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* NULL: there is none. */
static memory_t *new_memory(size_t bytes)
{
    void *memory;

    if (posix_memalign(&memory, FLASH_PAGE, sizeof(memory_t) + bytes) != 0) {
        return NULL;
    }
    *(memory_t *) memory = (memory_t){.bytes = bytes};
    return memory;
}

/* Likewise. */
static char *take_memory(size_t bytes)
{
    memory_t *memory = atomic_exchange_explicit(&spare, NULL, memory_order_acquire);

    if (memory == NULL || memory->bytes < bytes) {
        free(memory);
        memory = new_memory(bytes);
    }
    return memory == NULL ? NULL : (char *) (memory + 1);
}

void flash_recdbl_give_memory(char *memory)
{
    if (memory != NULL) {
        free(atomic_exchange_explicit(&spare, (memory_t *) (void *) memory - 1,
                                      memory_order_acq_rel));
    }
}

/*
 * All blocks at their places, and behind them what is sent and what comes. If they are long, the
 * three begin at a quarter, three quarters and the end of a page: so that, of whole pages, none is
 * where copying from another, or from a caller's buffer, is slow (flash_copy.h); and what is sent
 * is far from the headers that a kernel, which has no flash_copy(), puts before it.
 *
 * A receive that is too short is not to be had of Open MPI 4.1: within a node it writes past the
 * end. Memory that is too long costs nothing, since nobody touches it.
 */
bool flash_recdbl_allocate(mca_coll_flash_request_t *request)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);
    size_t bytes = flash_recdbl_count(request, 0, flash_recdbl_ranks(request)) *
                   flash_recdbl_params(request)->element;
    size_t quarter = bytes < FLASH_PAGE ? 0 : FLASH_PAGE / 4;
    size_t room = rounded_up(bytes, bytes < FLASH_PAGE ? sizeof(header_t) : FLASH_PAGE);
    size_t out = quarter + room + 2 * quarter;
    size_t in = out + sizeof(header_t) + room + quarter;

    recdbl->memory = take_memory(in + flash_recdbl_room());
    if (recdbl->memory == NULL) {
        return false;
    }
    recdbl->blocks = recdbl->memory + quarter;
    recdbl->out = (header_t *) (void *) (recdbl->memory + out);
    recdbl->in = (header_t *) (void *) (recdbl->memory + in);
    return true;
}

/* To or from the blocks at their places: those that an allgather, or a reduce-scatter, is about. */
void flash_recdbl_copy(mca_coll_flash_request_t *request, bool all, bool in)
{
    const flash_op_params_t *params = flash_recdbl_params(request);
    uint32_t rank = flash_recdbl_rank(request), nranks = flash_recdbl_ranks(request);
    char *at = mca_coll_flash_recdbl_of(request)->blocks;

    for (uint32_t place = 0; place < nranks; place++) {
        uint32_t block = flash_recdbl_block(nranks, rank, place);
        size_t bytes = flash_schedule_count(&params->schedule, block) * params->element;
        const void *from = all ? place_in(request, params->input, block) : params->input;
        void *to = all ? place_in(request, params->output, block) : params->output;

        if (bytes > 0 && (all || block == rank)) {
            flash_copy(in ? at : to, in ? from : at, bytes);
        }
        at += bytes;
    }
}
