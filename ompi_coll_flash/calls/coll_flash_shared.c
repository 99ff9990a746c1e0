/*
 * coll_flash_shared.c: non-blocking calls that flash shares with the fallback.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_shared.h"

#include "calls/coll_flash_kept.h"
#include "calls/flash_fallback.h"

/* With the counts of the rest, which the module below may read until its request ends. NULL: there is no
   memory. */
static flash_fallback_t *new_both(ompi_communicator_t *comm, mca_coll_flash_arguments_t *rest)
{
    flash_fallback_t *both = flash_fallback_new(comm);

    if (both != NULL &&
        mca_coll_flash_arguments_copy(rest, ompi_comm_size(comm), &both->kept) != MPI_SUCCESS) {
        flash_fallback_drop(both);
        return NULL;
    }
    return both;
}

/*
 * Without memory to stand for both: the ranks that exchange long blocks with this one hear of that. The
 * later calls of the module below, each of which takes a tag, stay in step. The ranks to which this call
 * of that module would send something wait: of libnbc, those that have short blocks with this one; the
 * root of a gather, and all ranks of a scatter if this one is the root.
 */
static int refuse(mca_coll_flash_module_t *module, const mca_coll_flash_arguments_t *by_ring,
                  mca_coll_flash_setup_state_t setup, ompi_request_t **request)
{
    mca_coll_flash_ticket_t ticket = mca_coll_flash_plain_ticket(module, FLASH_RING);
    mca_coll_flash_request_t *refused;
    flash_steps_t taken;

    if (setup == FLASH_SETUP_PENDING) {
        mca_coll_flash_no_memory(module->comm); /* nothing can tell the other ranks yet */
    }
    mca_coll_flash_leave_out(module);
    if (setup == FLASH_SETUP_REFUSED) {
        return MPI_ERR_NO_MEM;
    }
    ticket.part = mca_coll_flash_part_of(module, by_ring, &taken);
    refused = mca_coll_flash_request_new(module, ticket, by_ring->kind);
    return refused == NULL ? MPI_ERR_NO_MEM
                           : mca_coll_flash_request_refuse(refused, MPI_ERR_NO_MEM, request);
}

/* What has started of a part, or what has become of it. */
static void note_part(flash_fallback_t *both, MPI_Request *inner, int error)
{
    if (error != MPI_SUCCESS) {
        *inner = MPI_REQUEST_NULL;
        flash_fallback_fail(both, error);
    }
}

int mca_coll_flash_start_by_ring(const mca_coll_flash_collective_t *collective, const char *name,
                                 mca_coll_flash_module_t *module,
                                 mca_coll_flash_arguments_t *arguments,
                                 mca_coll_flash_setup_state_t setup, ompi_request_t **request)
{
    if (setup == FLASH_SETUP_PENDING) {
        return mca_coll_flash_hold(collective, name, module, arguments, FLASH_RING, request);
    }
    if (setup == FLASH_SETUP_REFUSED) {
        return mca_coll_flash_fall_back_out_of_turn(collective, module, arguments, request);
    }
    return collective->start(module, mca_coll_flash_plain_ticket(module, FLASH_RING), arguments,
                             FLASH_RING, request);
}

bool mca_coll_flash_moves_nothing(const mca_coll_flash_module_t *module,
                                  const mca_coll_flash_arguments_t *rest)
{
    return flash_schedule_has_root(rest->kind) &&
           mca_coll_flash_call_of(NULL, rest, module->comm).bytes == 0;
}

int mca_coll_flash_start_shared(const mca_coll_flash_collective_t *collective, const char *name,
                                mca_coll_flash_module_t *module,
                                mca_coll_flash_arguments_t *by_ring,
                                const mca_coll_flash_arguments_t *rest,
                                mca_coll_flash_setup_state_t setup, ompi_request_t **request)
{
    mca_coll_flash_arguments_t below = *rest;
    flash_fallback_t *both = new_both(module->comm, &below);

    if (both == NULL) {
        return refuse(module, by_ring, setup, request);
    }
    both->moves_nothing = mca_coll_flash_moves_nothing(module, rest);
    /* The ring first: the rest may have to wait for a device's memory to be copied. */
    note_part(
        both, &both->inner[1],
        mca_coll_flash_start_by_ring(collective, name, module, by_ring, setup, &both->inner[1]));
    note_part(
        both, &both->inner[0],
        mca_coll_flash_start_bounced(collective, module, &below, FLASH_FALLBACK, &both->inner[0]));
    flash_fallback_enlist(both, request);
    return MPI_SUCCESS;
}
