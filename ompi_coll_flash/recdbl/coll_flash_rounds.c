/*
 * coll_flash_rounds.c: one operation's rounds (coll_flash_doubling.c): its memory, what is sent and what
 * comes.
 *
 * A message, which is one of Open MPI's, is a header and the blocks of a round. Who cannot take
 * part sends headers alone that say so, from memory that the request has, and receives what nobody
 * looks at, so that all others come to their ends.
 *
 * The caller orders what is done for one request; `spare` is exchanged.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "recdbl/coll_flash_doubling.h"

#include <stdlib.h>

#include "engine/flash_copy.h"
#include "recdbl/flash_doubling.h"

typedef mca_coll_flash_doubling_header_t header_t;

_Static_assert(sizeof(header_t) % _Alignof(max_align_t) == 0, "what follows is aligned");

/* Room for any message, of which nothing is read: written in MPI_Init and MPI_Finalize only. */
static header_t *trash;

/*
 * An operation's memory, from the beginning of a page on. One is kept for the next: new pages take
 * longer than what is done with it.
 */
typedef struct memory {
    _Alignas(max_align_t) size_t bytes; /* behind this */
} memory_t;

static _Atomic(memory_t *) spare; /* exchanged, with acquire and release; NULL: it is in use */

static const flash_op_params_t *params_of(const mca_coll_flash_request_t *request)
{
    return &mca_coll_flash_doubling_of(request)->params;
}

static bool gathers(const mca_coll_flash_request_t *request)
{
    return request->kind == FLASH_ALLGATHER;
}

static uint32_t ranks_of(const mca_coll_flash_request_t *request)
{
    return request->module->ring.nranks;
}

static uint32_t rank_of(const mca_coll_flash_request_t *request)
{
    return (uint32_t) ompi_comm_rank(request->module->comm);
}

static void fail(mca_coll_flash_request_t *request, int status, uint32_t blamed)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);

    if (doubling->status == FLASH_OK) {
        doubling->status = status;
        doubling->blamed = blamed;
    }
}

/* What this rank sends from now on is not to be trusted. */
static void spoil(mca_coll_flash_request_t *request, uint32_t blame)
{
    header_t *header = &mca_coll_flash_doubling_of(request)->header;

    if (!header->spoiled) {
        header->spoiled = true;
        header->blame = blame;
    }
}

/* ---------------------------------------------------------------------- memory */

/* Elements of the blocks at those places. */
static size_t count_of(const mca_coll_flash_request_t *request, uint32_t first, uint32_t count)
{
    const flash_blocks_t *blocks = &params_of(request)->schedule.blocks;
    size_t elements = 0;

    if (blocks->counts == NULL) {
        return count * blocks->count;
    }
    for (uint32_t place = first; place < first + count; place++) {
        elements +=
            flash_schedule_count(&params_of(request)->schedule,
                                 flash_doubling_block(ranks_of(request), rank_of(request), place));
    }
    return elements;
}

static char *place_at(const mca_coll_flash_request_t *request, uint32_t place)
{
    return mca_coll_flash_doubling_of(request)->blocks +
           count_of(request, 0, place) * params_of(request)->element;
}

/* Of a block in the buffers of the caller. */
static char *place_in(const mca_coll_flash_request_t *request, const void *memory, uint32_t block)
{
    const flash_op_params_t *params = params_of(request);

    return (char *) (uintptr_t) memory +
           flash_schedule_displ(&params->schedule, block) * (ptrdiff_t) params->element;
}

/*
 * All ranks have the same limit, or one has more before they agree: no message of a round is longer,
 * whatever they disagree about otherwise. (One of Open MPI's own calls may be, in a program that has a
 * call of one size here and of another there.) The limit counts the data of blocks; the pairs of
 * MPI_MAXLOC have gaps, which are less than that.
 */
static size_t room_for_message(void)
{
    return sizeof(header_t) + 2 * mca_coll_flash_params.doubling_bytes;
}

bool mca_coll_flash_rounds_open(void)
{
    trash = malloc(room_for_message());
    return trash != NULL;
}

void mca_coll_flash_rounds_close(void)
{
    free(trash);
    trash = NULL;
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

static void give_memory(char *memory)
{
    if (memory != NULL) {
        free(atomic_exchange_explicit(&spare, (memory_t *) (void *) memory - 1,
                                      memory_order_acq_rel));
    }
}

/*
 * All blocks at their places, and behind them what is sent and what comes. If they are long, the three
 * begin at a quarter, three quarters and the end of a page: so that, of whole pages, none is where
 * copying from another, or from a caller's buffer, is slow (flash_copy.h); and what is sent is far
 * from the headers that a kernel, which has no flash_copy(), puts before it.
 *
 * A receive that is too short is not to be had of Open MPI 4.1: within a node it writes past the end.
 * Memory that is too long costs nothing, since nobody touches it.
 */
static bool allocate(mca_coll_flash_request_t *request)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);
    size_t bytes = count_of(request, 0, ranks_of(request)) * params_of(request)->element;
    size_t quarter = bytes < FLASH_PAGE ? 0 : FLASH_PAGE / 4;
    size_t room = rounded_up(bytes, bytes < FLASH_PAGE ? sizeof(header_t) : FLASH_PAGE);
    size_t out = quarter + room + 2 * quarter;
    size_t in = out + sizeof(header_t) + room + quarter;

    doubling->memory = take_memory(in + room_for_message());
    if (doubling->memory == NULL) {
        return false;
    }
    doubling->blocks = doubling->memory + quarter;
    doubling->out = (header_t *) (void *) (doubling->memory + out);
    doubling->in = (header_t *) (void *) (doubling->memory + in);
    return true;
}

/* To or from the blocks at their places: those that an allgather, or a reduce-scatter, is about. */
static void copy_blocks(mca_coll_flash_request_t *request, bool all, bool in)
{
    const flash_op_params_t *params = params_of(request);
    uint32_t rank = rank_of(request), nranks = ranks_of(request);
    char *at = mca_coll_flash_doubling_of(request)->blocks;

    for (uint32_t place = 0; place < nranks; place++) {
        uint32_t block = flash_doubling_block(nranks, rank, place);
        size_t bytes = flash_schedule_count(&params->schedule, block) * params->element;
        const void *from = all ? place_in(request, params->input, block) : params->input;
        void *to = all ? place_in(request, params->output, block) : params->output;

        if (bytes > 0 && (all || block == rank)) {
            flash_copy(in ? at : to, in ? from : at, bytes);
        }
        at += bytes;
    }
}

/* ---------------------------------------------------------------------- rounds */

static flash_doubling_round_t round_of(const mca_coll_flash_request_t *request)
{
    return flash_doubling_round(ranks_of(request), rank_of(request), gathers(request),
                                mca_coll_flash_doubling_of(request)->round);
}

/* Open MPI's own error, which leaves nothing under way. */
static void fail_to_post(mca_coll_flash_request_t *request, uint32_t rank)
{
    fail(request, FLASH_ERR_TRANSPORT, rank);
    spoil(request, rank_of(request));
}

/*
 * Open MPI is to call when the message is complete; but not beside other threads, where it may call for
 * a request, and free it, while it still tells it whom to call.
 */
static void post_receive(mca_coll_flash_request_t *request)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);
    uint32_t from = round_of(request).from;
    ompi_request_t *receive = NULL;
    int rc;

    doubling->arrived = false;
    rc = MCA_PML_CALL(irecv(doubling->in, room_for_message(), MPI_BYTE, (int) from, doubling->tag,
                            request->module->comm, &receive));
    if (rc != OMPI_SUCCESS) {
        fail_to_post(request, from);
        doubling->error = MPI_ERR_OTHER;
        doubling->arrived = true;
    } else if (opal_using_threads()) {
        doubling->receiving = receive;
    } else {
        ompi_request_set_callback(receive, mca_coll_flash_doubling_arrival, request);
    }
}

static void post_send(mca_coll_flash_request_t *request)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);
    flash_doubling_round_t round = round_of(request);
    size_t bytes = 0;
    int rc;

    *doubling->out = doubling->header;
    if (!doubling->header.spoiled) {
        bytes =
            count_of(request, round.sends.first, round.sends.count) * params_of(request)->element;
        flash_copy(doubling->out + 1, place_at(request, round.sends.first), bytes);
    }
    rc = MCA_PML_CALL(isend(doubling->out, sizeof(header_t) + bytes, MPI_BYTE, (int) round.to,
                            doubling->tag, MCA_PML_BASE_SEND_STANDARD, request->module->comm,
                            &doubling->sending));
    if (rc != OMPI_SUCCESS) {
        doubling->sending = NULL;
        fail_to_post(request, round.to);
    }
}

static void post(mca_coll_flash_request_t *request)
{
    post_receive(request);
    post_send(request);
}

void mca_coll_flash_rounds_note(mca_coll_flash_doubling_t *doubling, ompi_request_t *receive)
{
    doubling->error = receive->req_status.MPI_ERROR;
    doubling->length = receive->req_status._ucount;
    receive->req_complete_cb_data = NULL; /* pml/ucx has a use of its own for it */
    ompi_request_free(&receive);
    doubling->arrived = true;
}

static bool has_arrived(mca_coll_flash_doubling_t *doubling)
{
    ompi_request_t *receive = doubling->receiving;

    if (receive != NULL && flash_compat_is_complete(receive)) {
        doubling->receiving = NULL;
        mca_coll_flash_rounds_note(doubling, receive);
    }
    return doubling->arrived;
}

static bool has_left(mca_coll_flash_doubling_t *doubling)
{
    if (doubling->sending != NULL && flash_compat_is_complete(doubling->sending)) {
        ompi_request_free(&doubling->sending);
        doubling->sending = NULL;
    }
    return doubling->sending == NULL;
}

/* Whether it says that nothing is to be had of its sender, by whose fault. */
static bool is_spoiled(const mca_coll_flash_request_t *request)
{
    const header_t *header = mca_coll_flash_doubling_of(request)->in;

    return mca_coll_flash_doubling_of(request)->length == sizeof(*header) &&
           header->mark == FLASH_ROUND_MARK && header->spoiled && header->blame < ranks_of(request);
}

/* Whether the blocks of the round have come. */
static bool check_arrival(mca_coll_flash_request_t *request)
{
    const mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);
    flash_doubling_round_t round = round_of(request);
    size_t bytes =
        count_of(request, round.receives.first, round.receives.count) * params_of(request)->element;

    if (doubling->error != MPI_SUCCESS) {
        fail(request, FLASH_ERR_TRANSPORT, round.from);
    } else if (is_spoiled(request)) {
        if (doubling->in->blame != rank_of(request)) { /* who knows better */
            fail(request, FLASH_ERR_PEER, doubling->in->blame);
        }
        spoil(request, doubling->in->blame);
    } else if (doubling->length != sizeof(header_t) + bytes ||
               doubling->in->mark != FLASH_ROUND_MARK || doubling->in->spoiled) {
        fail(request, FLASH_ERR_TRUNCATED, round.from);
    }
    if (doubling->status != FLASH_OK) {
        spoil(request, rank_of(request));
    }
    return !doubling->header.spoiled;
}

/* Of a round, what has come. */
static void take(mca_coll_flash_request_t *request)
{
    const flash_op_params_t *params = params_of(request);
    flash_doubling_round_t round = round_of(request);
    size_t count = count_of(request, round.receives.first, round.receives.count);
    char *to = place_at(request, round.receives.first);

    if (count == 0) {
        return;
    }
    if (gathers(request)) {
        flash_copy(to, mca_coll_flash_doubling_of(request)->in + 1, count * params->element);
    } else {
        int status = params->combine(params->combine_arg,
                                     mca_coll_flash_doubling_of(request)->in + 1, to, count);

        if (status != FLASH_OK) {
            fail(request, status, FLASH_NOBODY);
            spoil(request, rank_of(request));
        }
    }
}

bool mca_coll_flash_rounds_advance(mca_coll_flash_request_t *request, bool *happened)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);

    while (doubling->round < flash_doubling_rounds(ranks_of(request))) {
        if (!has_arrived(doubling) || !has_left(doubling)) {
            return false;
        }
        *happened = true;
        if (doubling->memory != NULL && check_arrival(request)) {
            take(request);
        }
        if (++doubling->round < flash_doubling_rounds(ranks_of(request))) {
            post(request);
        }
    }
    return true;
}

bool mca_coll_flash_rounds_watch(mca_coll_flash_request_t *request, flash_silence_t *silence)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);
    uint32_t done = 2 * doubling->round + doubling->arrived, place;
    flash_doubling_round_t round;

    if (doubling->round >= flash_doubling_rounds(ranks_of(request))) {
        return false;
    }
    round = round_of(request);
    place = doubling->arrived ? round.sends.first : round.receives.first;
    if (done != doubling->watched) {
        doubling->watched = done;
        doubling->watches = 0;
        request->told_stuck = false; /* what it waits for now is another message */
    } else {
        doubling->watches++;
    }
    *silence = (flash_silence_t){
        .user = request,
        .watches = doubling->watches,
        .rank = doubling->arrived ? round.to : round.from,
        .sending = doubling->arrived,
        .step = doubling->round,
        .steps = flash_doubling_rounds(ranks_of(request)),
        .block = flash_doubling_block(ranks_of(request), rank_of(request), place)};
    return doubling->watches > 0;
}

void mca_coll_flash_rounds_begin(mca_coll_flash_request_t *request, const flash_op_params_t *params)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);

    *doubling = (mca_coll_flash_doubling_t){
        .params = *params,
        .tag = ompi_coll_base_nbc_reserve_tags(request->module->comm, 1),
        .status = FLASH_OK,
        .blamed = FLASH_NOBODY,
        .out = &doubling->alone,
        .in = trash,
        .header.mark = FLASH_ROUND_MARK,
        .watched = UINT32_MAX};
    if (params->element == 0 || !allocate(request)) {
        fail(request, FLASH_ERR_NO_MEMORY, FLASH_NOBODY);
        spoil(request, rank_of(request));
    } else if (params->spoiled) {
        spoil(request, rank_of(request));
    } else {
        copy_blocks(request, !gathers(request), true);
    }
    post(request);
}

void mca_coll_flash_rounds_end(mca_coll_flash_request_t *request)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);

    if (doubling->status == FLASH_OK && !doubling->header.spoiled) {
        copy_blocks(request, gathers(request), false);
    }
    give_memory(doubling->memory);
    doubling->memory = NULL;
}
