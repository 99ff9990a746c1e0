/*
 * coll_flash_rounds.c: one operation's rounds (coll_flash_doubling.c): what is sent and what comes.
 *
 * A message, which is one of Open MPI's, is a header and the blocks of a round. Who cannot take
 * part sends headers alone that say so, from memory that the request has, and receives what nobody
 * looks at, so that all others come to their ends.
 *
 * The caller orders what is done for one request.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "recdbl/coll_flash_rounds.h"

#include "engine/flash_copy.h"

typedef mca_coll_flash_doubling_header_t header_t;

_Static_assert(sizeof(header_t) % _Alignof(max_align_t) == 0, "what follows is aligned");

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

/* ---------------------------------------------------------------------- rounds */

static flash_doubling_round_t round_of(const mca_coll_flash_request_t *request)
{
    return flash_doubling_round(flash_rounds_ranks(request), flash_rounds_rank(request),
                                flash_rounds_gather(request),
                                mca_coll_flash_doubling_of(request)->round);
}

/* Open MPI's own error, which leaves nothing under way. */
static void fail_to_post(mca_coll_flash_request_t *request, uint32_t rank)
{
    fail(request, FLASH_ERR_TRANSPORT, rank);
    spoil(request, flash_rounds_rank(request));
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
    rc = MCA_PML_CALL(irecv(doubling->in, flash_rounds_room(), MPI_BYTE, (int) from, doubling->tag,
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
        bytes = flash_rounds_count(request, round.sends.first, round.sends.count) *
                flash_rounds_params(request)->element;
        flash_copy(doubling->out + 1, flash_rounds_place(request, round.sends.first), bytes);
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
           header->mark == FLASH_ROUND_MARK && header->spoiled &&
           header->blame < flash_rounds_ranks(request);
}

/* Whether the blocks of the round have come. */
static bool check_arrival(mca_coll_flash_request_t *request)
{
    const mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);
    flash_doubling_round_t round = round_of(request);
    size_t bytes = flash_rounds_count(request, round.receives.first, round.receives.count) *
                   flash_rounds_params(request)->element;

    if (doubling->error != MPI_SUCCESS) {
        fail(request, FLASH_ERR_TRANSPORT, round.from);
    } else if (is_spoiled(request)) {
        if (doubling->in->blame != flash_rounds_rank(request)) { /* who knows better */
            fail(request, FLASH_ERR_PEER, doubling->in->blame);
        }
        spoil(request, doubling->in->blame);
    } else if (doubling->length != sizeof(header_t) + bytes ||
               doubling->in->mark != FLASH_ROUND_MARK || doubling->in->spoiled) {
        fail(request, FLASH_ERR_TRUNCATED, round.from);
    }
    if (doubling->status != FLASH_OK) {
        spoil(request, flash_rounds_rank(request));
    }
    return !doubling->header.spoiled;
}

/* Of a round, what has come. */
static void take(mca_coll_flash_request_t *request)
{
    const flash_op_params_t *params = flash_rounds_params(request);
    flash_doubling_round_t round = round_of(request);
    size_t count = flash_rounds_count(request, round.receives.first, round.receives.count);
    char *to = flash_rounds_place(request, round.receives.first);

    if (count == 0) {
        return;
    }
    if (flash_rounds_gather(request)) {
        flash_copy(to, mca_coll_flash_doubling_of(request)->in + 1, count * params->element);
    } else {
        int status = params->combine(params->combine_arg,
                                     mca_coll_flash_doubling_of(request)->in + 1, to, count);

        if (status != FLASH_OK) {
            fail(request, status, FLASH_NOBODY);
            spoil(request, flash_rounds_rank(request));
        }
    }
}

bool mca_coll_flash_rounds_advance(mca_coll_flash_request_t *request, bool *happened)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);

    while (doubling->round < flash_doubling_rounds(flash_rounds_ranks(request))) {
        if (!has_arrived(doubling) || !has_left(doubling)) {
            return false;
        }
        *happened = true;
        if (doubling->memory != NULL && check_arrival(request)) {
            take(request);
        }
        if (++doubling->round < flash_doubling_rounds(flash_rounds_ranks(request))) {
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

    if (doubling->round >= flash_doubling_rounds(flash_rounds_ranks(request))) {
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
    *silence = (flash_silence_t){.user = request,
                                 .watches = doubling->watches,
                                 .rank = doubling->arrived ? round.to : round.from,
                                 .sending = doubling->arrived,
                                 .step = doubling->round,
                                 .steps = flash_doubling_rounds(flash_rounds_ranks(request)),
                                 .block = flash_doubling_block(flash_rounds_ranks(request),
                                                               flash_rounds_rank(request), place)};
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
        .in = flash_rounds_trash,
        .header.mark = FLASH_ROUND_MARK,
        .watched = UINT32_MAX};
    if (params->element == 0 || !flash_rounds_allocate(request)) {
        fail(request, FLASH_ERR_NO_MEMORY, FLASH_NOBODY);
        spoil(request, flash_rounds_rank(request));
    } else if (params->spoiled) {
        spoil(request, flash_rounds_rank(request));
    } else {
        flash_rounds_copy(request, !flash_rounds_gather(request), true);
    }
    post(request);
}

void mca_coll_flash_rounds_end(mca_coll_flash_request_t *request)
{
    mca_coll_flash_doubling_t *doubling = mca_coll_flash_doubling_of(request);

    if (doubling->status == FLASH_OK && !doubling->header.spoiled) {
        flash_rounds_copy(request, flash_rounds_gather(request), false);
    }
    flash_rounds_give_memory(doubling->memory);
    doubling->memory = NULL;
}
