/*
 * coll_flash_deferred_free.c: requests that failed, after Open MPI has freed them.
 *
 * Open MPI frees a request that failed first, and then calls the error handler of its
 * communicator, in the same thread. The communicator may have been freed by its user long before,
 * and live by the request's reference alone. So the request is only set aside, and freed when that
 * thread starts its next operation, or never if it starts none.
 *
 * Each thread has its own list: no other one knows when the handler has returned. A handler that
 * starts an operation itself frees the request while it runs: the communicator that it was given is
 * gone then, if its user had freed it.
 *
 * When the component is closed, with the last of MPI_Finalize and MPI_Session_finalize, Open MPI has
 * freed the communicators, and the requests' memory goes. It may be opened again: a thread then drops
 * what it had set aside before.
 *
 * Shared between threads: `closed`, atomic, written by the thread that closes the component; relaxed,
 * since an application that opens MPI again orders its own calls.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_handle.h"

static _Thread_local mca_coll_flash_deferred_free_t *deferred;
static _Thread_local unsigned since; /* how often the component had been closed */
static atomic_uint closed;

static void drop_those_before(void)
{
    unsigned now = atomic_load_explicit(&closed, memory_order_relaxed);

    if (since != now) {
        since = now;
        deferred = NULL;
    }
}

void mca_coll_flash_drop_deferred(void)
{
    atomic_fetch_add_explicit(&closed, 1, memory_order_relaxed);
}

bool mca_coll_flash_defer_free(ompi_request_t *request,
                               mca_coll_flash_deferred_free_t *deferred_free,
                               void (*free_it)(ompi_request_t *request))
{
    if (!flash_compat_is_complete(request) || request->req_status.MPI_ERROR == MPI_SUCCESS) {
        return false;
    }
    drop_those_before();
    *deferred_free =
        (mca_coll_flash_deferred_free_t){.next = deferred, .request = request, .free_it = free_it};
    deferred = deferred_free;
    return true;
}

void mca_coll_flash_free_deferred(void)
{
    drop_those_before();
    while (deferred != NULL) {
        mca_coll_flash_deferred_free_t deferred_free = *deferred; /* it goes with the request */

        deferred = deferred_free.next;
        deferred_free.free_it(deferred_free.request);
    }
}
