/*
 * coll_flash_ticket.c: the next operation of a call, by the algorithm that serves it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"
#include "recdbl/coll_flash_recdbl.h"
#include "ring/coll_flash_ring.h"
#include "shm/coll_flash_shm.h"

mca_coll_flash_ticket_t mca_coll_flash_plain_ticket(mca_coll_flash_module_t *module,
                                                    mca_coll_flash_path_t path)
{
    switch (path) {
    case FLASH_SHM:
        return mca_coll_flash_shm_ticket(module);
    case FLASH_RECDBL:
        return mca_coll_flash_recdbl_ticket(module);
    default:
        return mca_coll_flash_ring_ticket(module);
    }
}

void mca_coll_flash_leave_out(mca_coll_flash_module_t *module)
{
    if (module->above_libnbc) {
        ompi_coll_base_nbc_reserve_tags(module->comm, 1);
    }
}

int mca_coll_flash_plain_refuse(mca_coll_flash_module_t *module, flash_kind_t kind,
                                mca_coll_flash_path_t path, int error, ompi_request_t **request)
{
    mca_coll_flash_request_t *refused =
        mca_coll_flash_request_new(module, mca_coll_flash_plain_ticket(module, path), kind);

    return refused == NULL ? error : mca_coll_flash_request_refuse(refused, error, request);
}
