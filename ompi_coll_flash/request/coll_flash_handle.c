/*
 * coll_flash_handle.c: how a request is freed, completed and recycled.
 *
 * The last holder of a request recycles it. The user is a holder until req_free (by the waiting
 * thread, or by MPI_Request_free of an active request). The operation is a holder until it has
 * completed the request. A persistent request may have two operations for a moment: one thread
 * starts it again while another thread still leaves the completion that allowed the start. The
 * count is atomic, acquire-release: the last holder sees what all others have written.
 *
 * The communicator is kept as long as the request: whoever waits for an error hands it to the
 * communicator's handler (coll_flash_deferred_free.c).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_handle.h"

void mca_coll_flash_handle_leave(mca_coll_flash_handle_t *handle)
{
    ompi_request_t *base = &handle->super.super, *persistent;
    void (*complete)(ompi_request_t * persistent, int error);
    ompi_communicator_t *comm;
    int error;

    if (atomic_fetch_sub_explicit(&handle->holders, 1, memory_order_acq_rel) > 1) {
        return;
    }
    /* Not before: the other holders write these fields until they leave. */
    persistent = handle->persistent;
    complete = handle->complete_persistent;
    comm = base->req_mpi_object.comm;
    error = base->req_status.MPI_ERROR;
    OMPI_REQUEST_FINI(base);
    handle->recycle(handle);
    if (persistent != NULL) {
        complete(persistent, error);
    }
    flash_compat_release_comm(comm); /* with the module, perhaps: last of all */
}

static void leave(ompi_request_t *base)
{
    mca_coll_flash_handle_leave((mca_coll_flash_handle_t *) base);
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
                                bool persistent, void (*recycle)(mca_coll_flash_handle_t *handle))
{
    ompi_request_t *base = &handle->super.super;

    OMPI_REQUEST_INIT(base, persistent);
    base->req_type = OMPI_REQUEST_COLL;
    base->req_mpi_object.comm = comm;
    base->req_status = ompi_status_empty;
    OBJ_RETAIN(comm);
    atomic_init(&handle->holders, 1);
    handle->persistent = NULL;
    handle->complete_persistent = NULL;
    handle->recycle = recycle;
}

ompi_request_t *mca_coll_flash_handle_begin(mca_coll_flash_handle_t *handle)
{
    ompi_request_t *base = &handle->super.super;

    atomic_fetch_add_explicit(&handle->holders, 1, memory_order_relaxed);
    base->req_type = OMPI_REQUEST_COLL;
    base->req_status = ompi_status_empty;
    base->req_complete = REQUEST_PENDING;
    base->req_state = OMPI_REQUEST_ACTIVE;
    return base;
}

void mca_coll_flash_handle_complete(mca_coll_flash_handle_t *handle, int error)
{
    ompi_request_t *base = &handle->super.super;

    base->req_status.MPI_ERROR = error;
    if (error != MPI_SUCCESS) {
        base->req_type = FLASH_FAILED_REQUEST;
    }
    ompi_request_complete(base, true);
    mca_coll_flash_handle_leave(handle);
}
