/*
 * mpix_flash_explain.c: MPIX_Flash_explain.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_call.h"

#include <stdio.h>
#include <string.h>

static bool find_call(const char *name, mca_coll_flash_call_t *call)
{
    for (size_t k = 0; k < FLASH_COST_CALLS; k++) {
        if (mca_coll_flash_call_names[k] != NULL &&
            strcmp(name, mca_coll_flash_call_names[k]) == 0) {
            call->kind = (flash_kind_t) (k % FLASH_COST_KINDS);
            call->blocking = k >= FLASH_COST_KINDS;
            return true;
        }
    }
    return false;
}

/* MPI_ERR_TRUNCATE: the text has more than `size` characters, of which the first are there. */
static int explain(const mca_coll_flash_call_t *call, int ranks, int node, char *text, int size)
{
    FILE *file = fmemopen(text, (size_t) size, "w");
    bool truncated;

    if (file == NULL) {
        return MPI_ERR_NO_MEM;
    }
    mca_coll_flash_explain(call, (uint32_t) ranks, node != 0, file);
    truncated = fflush(file) != 0 || ferror(file) || ftell(file) >= size;
    fclose(file);
    text[size - 1] = '\0';
    return truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int MPIX_Flash_explain(const char *call, MPI_Count bytes, int ranks, int node, char *text, int size)
{
    /* An element of any predefined type. */
    mca_coll_flash_call_t asked = {.name = call, .element = sizeof(double)};
    int error = MPI_ERR_ARG;

    if (!flash_call_has_world()) {
        return MPI_ERR_OTHER;
    }
    if (call != NULL && find_call(call, &asked) && bytes >= 0 && ranks >= 2 &&
        ranks <= FLASH_COST_RANKS && text != NULL && size >= 1) {
        asked.bytes = (size_t) bytes;
        asked.reason = flash_call_reason(mca_coll_flash_module_of(MPI_COMM_WORLD));
        error = explain(&asked, ranks, node, text, size);
    }
    return flash_call_raise(MPI_COMM_WORLD, error, __func__);
}
