/*
 * flash_ucx_messages.c: messages under way, of which UCX holds a part.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <stdlib.h>

void flash_ucx_link(flash_message_t **list, flash_message_t *message)
{
    message->next = *list;
    message->link = list;
    if (message->next != NULL) {
        message->next->link = &message->next;
    }
    *list = message;
}

static void unlink_message(flash_message_t *message)
{
    *message->link = message->next;
    if (message->next != NULL) {
        message->next->link = message->link;
    }
}

/* The end of a message, for the engine and for UCX. */
void flash_ucx_finish(flash_message_t *message, int status, uint64_t tag, size_t length)
{
    flash_transfer_t *transfer = message->transfer;

    if (status != FLASH_OK && message->peer->lost) {
        status = FLASH_ERR_LOST;
    }
    if (message->peer->ucx->posting == message) {
        message->peer->ucx->posting = NULL;
    }
    /* What arrives from a peer comes by no exchange's endpoint. */
    message->peer->used |=
        status == FLASH_OK &&
        (message->sends || flash_ucx_sender(message->peer) == message->peer->ucx->worker);
    unlink_message(message);
    flash_ucx_link(&message->peer->ucx->spare, message);
    message->peer->ucx->messages += transfer == NULL;
    if (transfer != NULL) {
        transfer->done(transfer, status, tag, length);
    }
}

/* The end of a message for the engine alone. */
void flash_ucx_orphan(flash_message_t *message)
{
    flash_transfer_t *transfer = message->transfer;

    unlink_message(message);
    flash_ucx_link(&message->peer->ucx->orphans, message);
    message->peer->ucx->messages--;
    message->transfer = NULL;
    transfer->done(transfer, FLASH_ERR_LOST, 0, 0);
}

static int make_spare(flash_ucx_t *ucx)
{
    flash_message_t *message = malloc(sizeof(*message));

    if (message == NULL) {
        return FLASH_ERR_NO_MEMORY;
    }
    flash_ucx_link(&ucx->spare, message);
    ucx->messages++;
    return FLASH_OK;
}

int flash_ucx_reserve(flash_transport_t *transport, uint32_t transfers)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);

    while (ucx->messages < ucx->reserved + transfers) {
        if (make_spare(ucx) != FLASH_OK) {
            return FLASH_ERR_NO_MEMORY;
        }
    }
    ucx->reserved += transfers;
    return FLASH_OK;
}

void flash_ucx_unreserve(flash_transport_t *transport, uint32_t transfers)
{
    flash_ucx_of(transport)->reserved -= transfers;
}

/* Of those reserved; of others only where orphans are in UCX's hands instead. */
flash_message_t *flash_ucx_take_spare(flash_ucx_t *ucx)
{
    flash_message_t *message;

    if (ucx->spare == NULL && make_spare(ucx) != FLASH_OK) {
        return NULL;
    }
    message = ucx->spare;
    unlink_message(message);
    return message;
}

static void free_list(flash_message_t **list)
{
    flash_message_t *message;

    while ((message = *list) != NULL) {
        unlink_message(message);
        free(message);
    }
}

void flash_ucx_free_messages(flash_ucx_t *ucx)
{
    free_list(&ucx->orphans);
    free_list(&ucx->spare);
}
