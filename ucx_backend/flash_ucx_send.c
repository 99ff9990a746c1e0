/*
 * flash_ucx_send.c: messages: sending, receiving, progress. The transport's table.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <stdlib.h>

/*
 * UCX has no memory for a while: its completions, and the application, may free some. For so many
 * seconds a message is tried again, and as often at least, for who seldom comes to MPI.
 */
#define PATIENCE_SECONDS 5
#define PATIENCE_TRIES   100

/* ------------------------------------------------------------ UCX's callbacks */

/* A send that UCX has taken fails with its endpoint only, whose handler is called after this. */
static void send_done(void *request, ucs_status_t status, void *arg)
{
    flash_message_t *message = arg;

    ucp_request_free(request);
    if (status != UCS_OK) {
        message->peer->failing = message->peer->ucx->failing = true;
    }
    flash_ucx_finish(message, status == UCS_OK ? FLASH_OK : FLASH_ERR_LOST, 0, 0);
}

static void recv_done(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                      void *arg)
{
    flash_message_t *message = arg;
    uint64_t tag = info->sender_tag;
    size_t length = info->length;

    ucp_request_free(request);
    if (status == UCS_ERR_NO_MEMORY) { /* UCX has matched it, and not told its sender */
        message->peer->misses = message->peer->failing = message->peer->ucx->failing = true;
    }
    flash_ucx_finish(message, flash_ucx_status(status), tag, length);
}

/* ------------------------------------------------------------------ beginning */

static ucs_memory_type_t memory_type(const flash_message_t *message)
{
    return message->on_device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

static ucs_status_ptr_t post_send(flash_message_t *message)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                 .cb.send = send_done,
                                 .user_data = message,
                                 .memory_type = memory_type(message)};

    if (message->leaves) {
        return ucp_tag_send_nbx(message->peer->ep, message->buffer, message->length, message->tag,
                                &param);
    }
    /* Done when the receiver has a place for it: see prefer_eager() in flash_ucx_config.c. */
    return ucp_tag_send_sync_nbx(message->peer->ep, message->buffer, message->length, message->tag,
                                 &param);
}

static ucs_status_ptr_t post_recv(flash_message_t *message)
{
    /* A message that is here already must be reported too, with its tag and length: UCX 1.13 fills
       neither in when it completes a receive at once, so that it is told to call back always. */
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                     UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv = recv_done,
                                 .user_data = message,
                                 .memory_type = memory_type(message)};

    return ucp_tag_recv_nbx(message->peer->ucx->worker, message->buffer, message->length,
                            message->tag, message->mask, &param);
}

/*
 * Hands the message to UCX. False if UCX cannot take it now: for want of memory, or, of a receive,
 * for whatever reason, since what is sent here would never be taken.
 */
static bool post(flash_message_t *message)
{
    flash_ucx_t *ucx = message->peer->ucx;
    ucs_status_ptr_t request;

    ucx->posting = message;
    request = message->sends ? post_send(message) : post_recv(message);
    if (UCS_PTR_IS_PTR(request)) {
        if (ucx->posting == message) { /* else it is done, and gone */
            message->request = request;
        }
    } else if (!message->sends || UCS_PTR_STATUS(request) == UCS_ERR_NO_MEMORY) {
        return false;
    } else {
        flash_ucx_finish(message, flash_ucx_status(UCS_PTR_STATUS(request)), message->tag,
                         message->length);
    }
    return true;
}

/* At that place of the list. */
static void remember_retry(flash_ucx_t *ucx, flash_message_t *message, flash_message_t **link)
{
    message->next_retry = *link;
    *link = message;
    if (message->next_retry == NULL) {
        ucx->retries_tail = &message->next_retry;
    }
}

/* Behind those that wait already, so that messages keep their order. */
static void begin(flash_message_t *message)
{
    flash_ucx_t *ucx = message->peer->ucx;

    if (ucx->retries == NULL) {
        if (post(message)) {
            return;
        }
        ucx->refusals = 0;
    }
    remember_retry(ucx, message, ucx->retries_tail);
}

static void forget_retry(flash_ucx_t *ucx, flash_message_t *message)
{
    flash_message_t **link = &ucx->retries;

    while (*link != message) {
        link = &(*link)->next_retry;
    }
    *link = message->next_retry;
    if (message->next_retry == NULL) {
        ucx->retries_tail = link;
    }
}

static bool out_of_patience(flash_ucx_t *ucx)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (ucx->refusals++ == 0) {
        ucx->refused_since = now.tv_sec;
    }
    return ucx->refusals > PATIENCE_TRIES && now.tv_sec - ucx->refused_since > PATIENCE_SECONDS;
}

/*
 * What a receive was for stays where it is, and its sender waits until it is told; messages behind
 * one that was not sent would be taken for it.
 */
static void refuse(flash_message_t *message)
{
    flash_peer_t *peer = message->peer;

    flash_ucx_finish(message, FLASH_ERR_REFUSED, 0, 0);
    flash_ucx_give_up(peer);
}

/* In their order. Those behind one that UCX has refused for long have one try each. */
static unsigned retry(flash_ucx_t *ucx)
{
    unsigned ended = 0;

    for (; ucx->retries != NULL; ended++) {
        flash_message_t *message = ucx->retries;

        forget_retry(ucx, message);
        if (post(message)) {
            ucx->refusals = 0;
        } else if (out_of_patience(ucx)) {
            refuse(message);
        } else {
            remember_retry(ucx, message, &ucx->retries);
            break;
        }
    }
    return ended;
}

static void ucx_transfer(flash_peer_t *peer, const flash_message_t *model)
{
    flash_transfer_t *transfer = model->transfer;
    flash_message_t *message;
    int status = FLASH_ERR_NO_MEMORY;
    bool refused;

    transfer->handle = NULL;
    if (peer->lost) {
        status = FLASH_ERR_LOST;
    } else if ((message = flash_ucx_take_spare(peer->ucx)) != NULL) {
        *message = *model;
        message->peer = peer;
        transfer->handle = message;
        flash_ucx_link(&peer->messages, message);
        if (message->leaves) {
            flash_ucx_leave(peer);
        }
        begin(message);
        return;
    }
    refused = status == FLASH_ERR_NO_MEMORY && !model->sends; /* as in refuse() */
    transfer->done(transfer, refused ? FLASH_ERR_REFUSED : status, 0, 0);
    if (refused) {
        flash_ucx_give_up(peer);
    }
}

static void ucx_send(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag,
                     const void *buffer, size_t length, flash_transfer_t *transfer)
{
    flash_message_t model = {.transfer = transfer,
                             .sends = true,
                             .on_device = transfer->on_device,
                             .leaves = transfer->leaves,
                             .tag = tag,
                             .buffer = (void *) (uintptr_t) buffer,
                             .length = length};

    (void) transport;
    ucx_transfer(peer, &model);
}

static void ucx_recv(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, uint64_t mask,
                     void *buffer, size_t length, flash_transfer_t *transfer)
{
    flash_message_t model = {.transfer = transfer,
                             .on_device = transfer->on_device,
                             .tag = tag,
                             .mask = mask,
                             .buffer = buffer,
                             .length = length};

    (void) transport;
    ucx_transfer(peer, &model);
}

/* ---------------------------------------------------------------------- ending */

static void cancel(flash_message_t *message)
{
    flash_ucx_t *ucx = message->peer->ucx;

    if (message->request != NULL) {
        ucp_request_cancel(message->sends ? flash_ucx_sender(message->peer) : ucx->worker,
                           message->request);
    } else {
        forget_retry(ucx, message);
        flash_ucx_finish(message, FLASH_ERR_CANCELED, 0, 0);
    }
}

static void ucx_cancel(flash_transport_t *transport, flash_transfer_t *transfer)
{
    (void) transport;
    cancel(transfer->handle);
}

static void ucx_give_up(flash_transport_t *transport, flash_peer_t *peer)
{
    (void) transport;
    flash_ucx_give_up(peer);
}

void flash_ucx_end_messages(flash_peer_t *peer)
{
    flash_message_t *message;

    while ((message = peer->messages) != NULL) {
        if (!message->sends || message->request == NULL) {
            cancel(message); /* and it is gone, unless the message is half-way here */
        }
        if (peer->messages == message) {
            flash_ucx_orphan(message);
        }
    }
}

/* ------------------------------------------------------------------- progress */

static unsigned ucx_progress(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);
    unsigned happened = ucp_worker_progress(ucx->worker);

    if (ucx->exchange_worker != NULL) {
        happened += ucp_worker_progress(ucx->exchange_worker);
    }
    flash_ucx_lose_failing(ucx);
    if (ucx->untold) {
        flash_ucx_tell(ucx);
    }
    return ucx->retries == NULL ? happened : happened + retry(ucx);
}

static int ucx_arm(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);

    return ucx->retries == NULL && ucp_worker_arm(ucx->worker) == UCS_OK &&
                   (ucx->exchange_worker == NULL || ucp_worker_arm(ucx->exchange_worker) == UCS_OK)
               ? FLASH_OK
               : FLASH_BUSY;
}

const flash_transport_ops_t flash_ucx_ops = {.reserve = flash_ucx_reserve,
                                             .unreserve = flash_ucx_unreserve,
                                             .send = ucx_send,
                                             .recv = ucx_recv,
                                             .cancel = ucx_cancel,
                                             .give_up = ucx_give_up,
                                             .progress = ucx_progress,
                                             .arm = ucx_arm,
                                             .settled = flash_ucx_settled};
