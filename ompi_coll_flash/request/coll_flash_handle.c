/*
 * coll_flash_handle.c: how a request is freed, completed and recycled.
 *
 * Who recycles a request is settled by its `state`, exchanged with acquire-release order by the two that
 * may be last: req_free (the waiting thread, or MPI_Request_free of an active request) and the completion.
 * Whoever comes second recycles.
 *
 * The reference to the communicator is the completion's, but of a request that failed: somebody waits for
 * its error, and hands it to the communicator's handler. Then it goes with the request.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_handle.h"

enum { IN_USE, FREED, COMPLETED };

static void recycle(mca_coll_flash_handle_t *handle)
{
    ompi_request_t *persistent = handle->persistent;
    void (*complete)(ompi_request_t * persistent, int error) = handle->complete_persistent;
    int error = handle->super.super.req_status.MPI_ERROR;

    OMPI_REQUEST_FINI(&handle->super.super);
    handle->recycle(handle);
    if (persistent != NULL) {
        complete(persistent, error);
    }
}

static void leave(ompi_request_t *base)
{
    mca_coll_flash_handle_t *handle = (mca_coll_flash_handle_t *) base;
    ompi_communicator_t *comm = base->req_mpi_object.comm; /* may be gone, with the module */

    if (atomic_exchange_explicit(&handle->state, FREED, memory_order_acq_rel) == COMPLETED) {
        bool failed = base->req_status.MPI_ERROR != MPI_SUCCESS;

        recycle(handle);
        if (failed) {
            flash_compat_release_comm(comm);
        }
    }
}

/* Nobody waits for a round of a persistent request's: its own handle is what fails. */
static int handle_free(ompi_request_t **request)
{
    mca_coll_flash_handle_t *handle = (mca_coll_flash_handle_t *) *request;

    flash_compat_see_request(*request);
    if (handle->persistent != NULL ||
        !mca_coll_flash_defer_free(*request, &handle->deferred_free, leave)) {
        leave(*request);
    }
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* MPI 3.1, section 5.12: a non-blocking collective cannot be cancelled. */
static int handle_cancel(ompi_request_t *request, int flag)
{
    (void) request;
    (void) flag;
    return MPI_ERR_REQUEST;
}

static void handle_construct(mca_coll_flash_handle_t *handle)
{
    handle->super.super.req_type = OMPI_REQUEST_COLL;
    handle->super.super.req_free = handle_free;
    handle->super.super.req_cancel = handle_cancel;
}

OBJ_CLASS_INSTANCE(mca_coll_flash_handle_t, ompi_coll_base_nbc_request_t, handle_construct, NULL);

void mca_coll_flash_handle_init(mca_coll_flash_handle_t *handle, ompi_communicator_t *comm,
                                void (*recycle_it)(mca_coll_flash_handle_t *handle))
{
    ompi_request_t *base = &handle->super.super;

    OMPI_REQUEST_INIT(base, false);
    base->req_state = OMPI_REQUEST_ACTIVE;
    base->req_type = OMPI_REQUEST_COLL;
    base->req_mpi_object.comm = comm;
    base->req_status = ompi_status_empty;
    atomic_init(&handle->state, IN_USE);
    handle->persistent = NULL;
    handle->complete_persistent = NULL;
    handle->recycle = recycle_it;
}

ompi_request_t *mca_coll_flash_handle_begin(mca_coll_flash_handle_t *handle)
{
    OBJ_RETAIN(handle->super.super.req_mpi_object.comm);
    return &handle->super.super;
}

void mca_coll_flash_handle_complete(mca_coll_flash_handle_t *handle, int error)
{
    ompi_request_t *base = &handle->super.super;
    ompi_communicator_t *comm = base->req_mpi_object.comm;
    bool freed;

    base->req_status.MPI_ERROR = error;
    if (error != MPI_SUCCESS) {
        base->req_type = FLASH_FAILED_REQUEST;
    }
    ompi_request_complete(base, true);
    freed = atomic_exchange_explicit(&handle->state, COMPLETED, memory_order_acq_rel) == FREED;
    if (freed) {
        recycle(handle);
    }
    if (error == MPI_SUCCESS || freed) {
        /* It may have been freed by its user meanwhile, and go away with this. */
        flash_compat_release_comm(comm);
    }
}
