/*
 * coll_flash_card.c: see coll_flash_card.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_card.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flash_ucx.h"

#define MODEX_KEY "coll_flash"

static uint64_t pid_space(void)
{
    struct stat space;

    return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t) space.st_ino : 0;
}

void mca_coll_flash_card_publish(flash_transport_t *transport, mca_coll_flash_board_memory_t board)
{
    size_t address_bytes = 0, size;
    const void *address = NULL;
    mca_coll_flash_card_t *card;
    int rc;

    if (transport != NULL) {
        address = flash_ucx_address(transport, &address_bytes);
    }
    size = sizeof(*card) + address_bytes;
    card = calloc(1, size);
    if (card == NULL) {
        return; /* peers find no card, and the agreement fails */
    }
    flash_place_binding(card->binding);
    card->pid = (int32_t) getpid();
    card->pid_space = pid_space();
    card->board = board;
    card->address_bytes = (uint32_t) address_bytes;
    if (address_bytes > 0) {
        memcpy(card + 1, address, address_bytes);
    }
    FLASH_MODEX_SEND(rc, MODEX_KEY, card, size);
    (void) rc; /* likewise */
    free(card);
}

mca_coll_flash_card_t *mca_coll_flash_card_fetch(opal_process_name_t name)
{
    void *data = NULL;
    size_t size = 0;
    mca_coll_flash_card_t *card;
    int rc;

    FLASH_MODEX_RECV(rc, MODEX_KEY, &name, &data, &size);
    if (rc != OPAL_SUCCESS) {
        return NULL;
    }
    card = data;
    if (size < sizeof(*card) || size - sizeof(*card) != card->address_bytes) {
        free(data);
        return NULL;
    }
    return card;
}

bool mca_coll_flash_card_is_near(const mca_coll_flash_card_t *card, const opal_proc_t *proc)
{
    return proc != NULL && card != NULL && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) &&
           card->pid_space != 0 && card->pid_space == pid_space();
}

flash_process_t mca_coll_flash_card_process(const mca_coll_flash_card_t *card)
{
    return (flash_process_t){.pid = (pid_t) card->pid,
                             .at = (const uint64_t *) (uintptr_t) card->board.address,
                             .number = card->board.inode};
}
