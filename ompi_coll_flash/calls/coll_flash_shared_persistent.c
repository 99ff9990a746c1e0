/*
 * coll_flash_shared_persistent.c: persistent requests of calls that flash shares with the fallback.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_persistent.h"
#include "ring/coll_flash_ring.h"

/* ---------------------------------------------------------------------- rounds */

/* A round of `beside` that has not started leaves it out of step with other ranks': it is not started
 * again. */
void mca_coll_flash_beside_start(mca_coll_flash_persistent_t *persistent, flash_fallback_t *both,
                                 ompi_request_t *ring, int error)
{
    int rc = persistent->beside->req_start(1, &persistent->beside);
    ompi_request_t *round;

    both->inner[0] = rc == MPI_SUCCESS ? persistent->beside : MPI_REQUEST_NULL;
    both->inner[1] = ring;
    both->moves_nothing = persistent->beside_moves_nothing;
    flash_fallback_fail(both, error);
    flash_fallback_fail(both, rc);
    if (rc != MPI_SUCCESS) {
        persistent->out_of_step = true;
        persistent->refused = rc; /* by the ring alone, a round would lack the short blocks */
    }
    both->handle.persistent = &persistent->handle.super.super;
    both->handle.complete_persistent = mca_coll_flash_complete_round;
    flash_fallback_enlist(both, &round);
    ompi_request_free(&round);
}

/* Without memory, the ranks of the ring hear of that, and the others wait, see refuse() in coll_flash_shared.c. */
flash_fallback_t *mca_coll_flash_beside_new(mca_coll_flash_persistent_t *persistent)
{
    flash_fallback_t *both = NULL;

    if (persistent->beside != NULL && !persistent->out_of_step) {
        both = flash_fallback_new(persistent->module->comm);
        if (both == NULL) {
            persistent->out_of_step = true;
            persistent->refused = MPI_ERR_NO_MEM;
        }
    }
    return both;
}

/* --------------------------------------------------------------- making requests */

/* The module below makes its request, with counts that are kept for it; its call takes a tag. */
static int make_beside(mca_coll_flash_persistent_t *persistent,
                       const mca_coll_flash_collective_t *collective,
                       const mca_coll_flash_arguments_t *rest, struct ompi_info_t *info)
{
    mca_coll_flash_module_t *module = persistent->module;
    mca_coll_flash_arguments_t below = *rest;
    int rc = mca_coll_flash_arguments_copy(&below, ompi_comm_size(module->comm), &persistent->kept);

    if (rc != MPI_SUCCESS) {
        mca_coll_flash_leave_out(module);
        return rc;
    }
    rc = mca_coll_flash_persist_below(collective, module, &below, info, &persistent->beside);
    if (rc != MPI_SUCCESS) {
        persistent->beside = NULL;
    } else if (persistent->beside->req_type == OMPI_REQUEST_NOOP) {
        ompi_request_free(&persistent->beside); /* nothing falls back on this rank, in any round */
        persistent->beside = NULL;
    }
    return rc;
}

/* Where the module below makes none, the rounds fail, and tell the ranks of the ring. */
int mca_coll_flash_persist_shared(const mca_coll_flash_collective_t *collective,
                                  mca_coll_flash_module_t *module,
                                  const mca_coll_flash_arguments_t *by_ring,
                                  const mca_coll_flash_arguments_t *rest, struct ompi_info_t *info,
                                  ompi_request_t **request)
{
    mca_coll_flash_persistent_t *persistent;
    int rc = mca_coll_flash_persist_ring(collective, module, by_ring, request);

    if (rc != MPI_SUCCESS) {
        mca_coll_flash_leave_out(module);
        return rc;
    }
    persistent = (mca_coll_flash_persistent_t *) *request;
    persistent->beside_moves_nothing = mca_coll_flash_moves_nothing(module, rest);
    persistent->refused = make_beside(persistent, collective, rest, info);
    return MPI_SUCCESS;
}

int mca_coll_flash_persist_aside(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 const mca_coll_flash_arguments_t *arguments,
                                 struct ompi_info_t *info, ompi_request_t **request)
{
    /* No message of it comes here or leaves: this rank is done with it. */
    mca_coll_flash_persistent_id_return(module, mca_coll_flash_persistent_id_take(module));
    return mca_coll_flash_persist_below(collective, module, arguments, info, request);
}
