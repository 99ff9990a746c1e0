/*
 * coll_flash_recdbl_rounds.c: one operation's rounds (coll_flash_recdbl.c): what is sent and what
 * comes.
 *
 * A message, which is one of Open MPI's, is a header and the blocks of a round. Who cannot take
 * part sends headers alone that say so, from memory that the request has, and receives what nobody
 * looks at, so that all others come to their ends.
 *
 * The caller orders what is done for one request.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "recdbl/coll_flash_recdbl_rounds.h"

#include "engine/flash_copy.h"

typedef mca_coll_flash_recdbl_header_t header_t;

_Static_assert(sizeof(header_t) % _Alignof(max_align_t) == 0, "what follows is aligned");

static void fail(mca_coll_flash_request_t *request, int status, uint32_t failed_rank)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);

    if (recdbl->status == FLASH_OK) {
        recdbl->status = status;
        recdbl->failed_rank = failed_rank;
    }
}

/* What this rank sends from now on is not to be trusted. */
static void poison(mca_coll_flash_request_t *request, uint32_t failed_rank)
{
    header_t *header = &mca_coll_flash_recdbl_of(request)->header;

    if (!header->poisoned) {
        header->poisoned = true;
        header->failed_rank = failed_rank;
    }
}

/* ---------------------------------------------------------------------- rounds */

static flash_recdbl_round_t round_of(const mca_coll_flash_request_t *request)
{
    return flash_recdbl_round(flash_recdbl_ranks(request), flash_recdbl_rank(request),
                              flash_recdbl_gather(request),
                              mca_coll_flash_recdbl_of(request)->round);
}

/* Open MPI's own error, which leaves nothing under way. */
static void fail_to_post(mca_coll_flash_request_t *request, uint32_t rank)
{
    fail(request, FLASH_ERR_TRANSPORT, rank);
    poison(request, flash_recdbl_rank(request));
}

/*
 * Open MPI is to call when the message is complete; but not beside other threads, where it may call
 * for a request, and free it, while it still tells it whom to call.
 */
static void post_receive(mca_coll_flash_request_t *request)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);
    uint32_t from = round_of(request).from;
    ompi_request_t *receive = NULL;
    int rc;

    recdbl->arrived = false;
    rc = MCA_PML_CALL(irecv(recdbl->in, flash_recdbl_room(), MPI_BYTE, (int) from, recdbl->tag,
                            request->module->comm, &receive));
    if (rc != OMPI_SUCCESS) {
        fail_to_post(request, from);
        recdbl->error = MPI_ERR_OTHER;
        recdbl->arrived = true;
    } else if (opal_using_threads()) {
        recdbl->receiving = receive;
    } else {
        ompi_request_set_callback(receive, mca_coll_flash_recdbl_arrival, request);
    }
}

static void post_send(mca_coll_flash_request_t *request)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);
    flash_recdbl_round_t round = round_of(request);
    size_t bytes = 0;
    int rc;

    *recdbl->out = recdbl->header;
    if (!recdbl->header.poisoned) {
        bytes = flash_recdbl_count(request, round.sends.first, round.sends.count) *
                flash_recdbl_params(request)->element;
        flash_copy(recdbl->out + 1, flash_recdbl_place(request, round.sends.first), bytes);
    }
    rc = MCA_PML_CALL(isend(recdbl->out, sizeof(header_t) + bytes, MPI_BYTE, (int) round.to,
                            recdbl->tag, MCA_PML_BASE_SEND_STANDARD, request->module->comm,
                            &recdbl->sending));
    if (rc != OMPI_SUCCESS) {
        recdbl->sending = NULL;
        fail_to_post(request, round.to);
    }
}

static void post(mca_coll_flash_request_t *request)
{
    post_receive(request);
    post_send(request);
}

void mca_coll_flash_recdbl_note(mca_coll_flash_recdbl_t *recdbl, ompi_request_t *receive)
{
    recdbl->error = receive->req_status.MPI_ERROR;
    recdbl->length = receive->req_status._ucount;
    receive->req_complete_cb_data = NULL; /* pml/ucx has a use of its own for it */
    ompi_request_free(&receive);
    recdbl->arrived = true;
}

static bool has_arrived(mca_coll_flash_recdbl_t *recdbl)
{
    ompi_request_t *receive = recdbl->receiving;

    if (receive != NULL && flash_compat_is_complete(receive)) {
        recdbl->receiving = NULL;
        mca_coll_flash_recdbl_note(recdbl, receive);
    }
    return recdbl->arrived;
}

static bool has_left(mca_coll_flash_recdbl_t *recdbl)
{
    if (recdbl->sending != NULL && flash_compat_is_complete(recdbl->sending)) {
        ompi_request_free(&recdbl->sending);
        recdbl->sending = NULL;
    }
    return recdbl->sending == NULL;
}

/* Whether it says that nothing is to be had of its sender, by whose fault. */
static bool is_poisoned(const mca_coll_flash_request_t *request)
{
    const header_t *header = mca_coll_flash_recdbl_of(request)->in;

    return mca_coll_flash_recdbl_of(request)->length == sizeof(*header) &&
           header->mark == FLASH_RECDBL_MARK && header->poisoned &&
           header->failed_rank < flash_recdbl_ranks(request);
}

/* Whether the blocks of the round have come. */
static bool check_arrival(mca_coll_flash_request_t *request)
{
    const mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);
    flash_recdbl_round_t round = round_of(request);
    size_t bytes = flash_recdbl_count(request, round.receives.first, round.receives.count) *
                   flash_recdbl_params(request)->element;

    if (recdbl->error != MPI_SUCCESS) {
        fail(request, FLASH_ERR_TRANSPORT, round.from);
    } else if (is_poisoned(request)) {
        if (recdbl->in->failed_rank != flash_recdbl_rank(request)) { /* who knows better */
            fail(request, FLASH_ERR_PEER, recdbl->in->failed_rank);
        }
        poison(request, recdbl->in->failed_rank);
    } else if (recdbl->length != sizeof(header_t) + bytes ||
               recdbl->in->mark != FLASH_RECDBL_MARK || recdbl->in->poisoned) {
        fail(request, FLASH_ERR_TRUNCATED, round.from);
    }
    if (recdbl->status != FLASH_OK) {
        poison(request, flash_recdbl_rank(request));
    }
    return !recdbl->header.poisoned;
}

/* Of a round, what has come. */
static void take(mca_coll_flash_request_t *request)
{
    const flash_op_params_t *params = flash_recdbl_params(request);
    flash_recdbl_round_t round = round_of(request);
    size_t count = flash_recdbl_count(request, round.receives.first, round.receives.count);
    char *to = flash_recdbl_place(request, round.receives.first);

    if (count == 0) {
        return;
    }
    if (flash_recdbl_gather(request)) {
        flash_copy(to, mca_coll_flash_recdbl_of(request)->in + 1, count * params->element);
    } else {
        int status = params->combine(params->combine_arg, mca_coll_flash_recdbl_of(request)->in + 1,
                                     to, count);

        if (status != FLASH_OK) {
            fail(request, status, FLASH_NOBODY);
            poison(request, flash_recdbl_rank(request));
        }
    }
}

bool mca_coll_flash_recdbl_advance(mca_coll_flash_request_t *request, bool *happened)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);

    while (recdbl->round < flash_recdbl_rounds(flash_recdbl_ranks(request))) {
        if (!has_arrived(recdbl) || !has_left(recdbl)) {
            return false;
        }
        *happened = true;
        if (recdbl->memory != NULL && check_arrival(request)) {
            take(request);
        }
        if (++recdbl->round < flash_recdbl_rounds(flash_recdbl_ranks(request))) {
            post(request);
        }
    }
    return true;
}

bool mca_coll_flash_recdbl_watch(mca_coll_flash_request_t *request, flash_silence_t *silence)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);
    uint32_t done = 2 * recdbl->round + recdbl->arrived, place;
    flash_recdbl_round_t round;

    if (recdbl->round >= flash_recdbl_rounds(flash_recdbl_ranks(request))) {
        return false;
    }
    round = round_of(request);
    place = recdbl->arrived ? round.sends.first : round.receives.first;
    if (done != recdbl->watched) {
        recdbl->watched = done;
        recdbl->watches = 0;
        request->told_stalled = false; /* what it waits for now is another message */
    } else {
        recdbl->watches++;
    }
    *silence = (flash_silence_t){.user = request,
                                 .watches = recdbl->watches,
                                 .rank = recdbl->arrived ? round.to : round.from,
                                 .sending = recdbl->arrived,
                                 .step = recdbl->round,
                                 .steps = flash_recdbl_rounds(flash_recdbl_ranks(request)),
                                 .block = flash_recdbl_block(flash_recdbl_ranks(request),
                                                             flash_recdbl_rank(request), place)};
    return recdbl->watches > 0;
}

void mca_coll_flash_recdbl_begin(mca_coll_flash_request_t *request, const flash_op_params_t *params)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);

    *recdbl =
        (mca_coll_flash_recdbl_t){.params = *params,
                                  .tag = ompi_coll_base_nbc_reserve_tags(request->module->comm, 1),
                                  .status = FLASH_OK,
                                  .failed_rank = FLASH_NOBODY,
                                  .out = &recdbl->alone,
                                  .in = flash_recdbl_trash,
                                  .header.mark = FLASH_RECDBL_MARK,
                                  .watched = UINT32_MAX};
    if (params->element == 0 || !flash_recdbl_allocate(request)) {
        fail(request, FLASH_ERR_NO_MEMORY, FLASH_NOBODY);
        poison(request, flash_recdbl_rank(request));
    } else if (params->poisoned) {
        poison(request, flash_recdbl_rank(request));
    } else {
        flash_recdbl_copy(request, !flash_recdbl_gather(request), true);
    }
    post(request);
}

void mca_coll_flash_recdbl_end(mca_coll_flash_request_t *request)
{
    mca_coll_flash_recdbl_t *recdbl = mca_coll_flash_recdbl_of(request);

    if (recdbl->status == FLASH_OK && !recdbl->header.poisoned) {
        flash_recdbl_copy(request, flash_recdbl_gather(request), false);
    }
    flash_recdbl_give_memory(recdbl->memory);
    recdbl->memory = NULL;
}
