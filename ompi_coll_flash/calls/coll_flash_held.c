/*
 * coll_flash_held.c: non-blocking calls that wait for their communicator's set-up
 * (ring/coll_flash_setup.h), and then start, or fall back.
 *
 * All ranks must make the same of a call, though one rank has seen the end of the set-up and another
 * one has not. A call that is held takes its operation id and one tag of Open MPI's collectives when it
 * is made, in the order of calls, whatever becomes of it: the tag is that of a persistent request of
 * the fallback. A call that starts at once takes such a tag, too, on communicators that are set up by
 * their calls. So the tags of later calls that fall back are equal on all ranks.
 *
 * Where the set-up ends well, the persistent request is freed and the call starts. Otherwise the
 * persistent request is started; later calls that go by messages do the same, since those of other ranks
 * may have been held, and Open MPI may serve the non-blocking form of a call in another way.
 *
 * A held request is written by the thread that makes it, then by the one that lets it go on
 * (coll_flash_setup.c orders the two), then by the one that completes it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/flash_fallback.h"
#include "ring/coll_flash_setup.h"

#include <stdlib.h>

typedef struct mca_coll_flash_held {
    mca_coll_flash_handle_t handle;
    mca_coll_flash_waiter_t waiter;
    const mca_coll_flash_collective_t *collective;
    const char *name;
    mca_coll_flash_module_t *module; /* with its communicator, kept */
    mca_coll_flash_path_t path;
    mca_coll_flash_ticket_t ticket;
    mca_coll_flash_settings_t settings;   /* of the time of the call: the ticket's */
    mca_coll_flash_arguments_t arguments; /* types and operation kept */
    flash_count_t *counts;                /* owned, what the arguments point to */
    flash_displ_t *displs;                /* owned, likewise */
    ompi_request_t *below;                /* owned: the fallback's; MPI_REQUEST_NULL: error_below */
    int error_below;
} mca_coll_flash_held_t;

static void held_construct(mca_coll_flash_held_t *held)
{
    held->counts = NULL;
    held->displs = NULL;
    held->below = MPI_REQUEST_NULL;
    held->error_below = MPI_SUCCESS;
}

static void held_destruct(mca_coll_flash_held_t *held)
{
    mca_coll_flash_arguments_release(&held->arguments);
    free(held->counts);
    free(held->displs);
}

OBJ_CLASS_DECLARATION(mca_coll_flash_held_t);
OBJ_CLASS_INSTANCE(mca_coll_flash_held_t, mca_coll_flash_handle_t, held_construct, held_destruct);

static void free_below(mca_coll_flash_held_t *held)
{
    if (held->below != MPI_REQUEST_NULL) {
        ompi_request_free(&held->below); /* as long as its communicator is there */
        held->below = MPI_REQUEST_NULL;
    }
}

static void recycle(mca_coll_flash_handle_t *handle)
{
    free_below((mca_coll_flash_held_t *) handle);
    OBJ_RELEASE(handle);
}

static void complete(ompi_request_t *request, int error)
{
    mca_coll_flash_handle_complete(&((mca_coll_flash_held_t *) request)->handle, error);
}

/* ------------------------------------------------------------------- going on */

/* As a persistent request's round, see coll_flash_persistent.c. */
static int start_by_messages(mca_coll_flash_held_t *held)
{
    mca_coll_flash_request_t *request;
    ompi_request_t *started;
    int rc =
        held->collective->start(held->module, held->ticket, &held->arguments, held->path, &started);

    if (rc == MPI_SUCCESS) {
        request = (mca_coll_flash_request_t *) started;
        request->handle.persistent = &held->handle.super.super;
        request->handle.complete_persistent = complete;
        ompi_request_free(&started);
    }
    return rc;
}

static int start_below(mca_coll_flash_held_t *held)
{
    flash_fallback_t *call;
    ompi_request_t *started;
    int rc = held->error_below;

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    call = flash_fallback_new(held->module->comm);
    if (call == NULL) {
        return MPI_ERR_NO_MEM;
    }
    rc = held->below->req_start(1, &held->below);
    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(call);
        return rc;
    }
    call->inner[0] = held->below;
    call->handle.persistent = &held->handle.super.super;
    call->handle.complete_persistent = complete;
    flash_fallback_enlist(call, &started);
    ompi_request_free(&started);
    return MPI_SUCCESS;
}

static void go_on(mca_coll_flash_waiter_t *waiter, bool ready)
{
    mca_coll_flash_held_t *held =
        (mca_coll_flash_held_t *) ((char *) waiter - offsetof(mca_coll_flash_held_t, waiter));
    const mca_coll_flash_call_t call =
        mca_coll_flash_call_of(held->name, &held->arguments, held->module->comm);
    int rc;

    mca_coll_flash_tell_call(&call, held->module->comm, ready ? held->path : FLASH_FALLBACK,
                             ready ? FLASH_NO_REASON : FLASH_NOT_SET_UP);
    if (ready) {
        free_below(held);
    }
    rc = ready ? start_by_messages(held) : start_below(held);
    if (rc != MPI_SUCCESS) {
        mca_coll_flash_handle_complete(&held->handle, rc);
    }
}

/* -------------------------------------------------------------------- holding */

/* One tag is taken, also by a fallback that takes none, or that has no request for the call. */
static void reserve(mca_coll_flash_held_t *held, const mca_coll_flash_arguments_t *arguments)
{
    ompi_communicator_t *comm = held->module->comm;
    int next = flash_compat_next_tag(comm);

    held->error_below = mca_coll_flash_make_persistent_below(
        held->module, held->collective, arguments, MPI_INFO_NULL, &held->below);
    if (held->error_below != MPI_SUCCESS) {
        held->below = MPI_REQUEST_NULL;
    }
    if (flash_compat_next_tag(comm) == next) {
        flash_compat_take_tag(comm);
    }
}

/* NULL: there is no memory. */
static mca_coll_flash_held_t *new_held(mca_coll_flash_module_t *module,
                                       const mca_coll_flash_arguments_t *arguments)
{
    mca_coll_flash_held_t *held = OBJ_NEW(mca_coll_flash_held_t);

    if (held == NULL) {
        return NULL;
    }
    held->module = module;
    held->arguments = *arguments;
    if (arguments->sendbuf == MPI_IN_PLACE) {
        held->arguments.sendtype = NULL; /* anything may stand there */
    }
    mca_coll_flash_handle_init(&held->handle, module->comm, false, recycle);
    mca_coll_flash_arguments_retain(&held->arguments);
    if (mca_coll_flash_arguments_copy(&held->arguments, ompi_comm_size(module->comm), &held->counts,
                                      &held->displs) != MPI_SUCCESS) {
        mca_coll_flash_handle_leave(&held->handle);
        return NULL;
    }
    return held;
}

int mca_coll_flash_hold(const mca_coll_flash_collective_t *collective, const char *name,
                        mca_coll_flash_module_t *module,
                        const mca_coll_flash_arguments_t *arguments, mca_coll_flash_path_t path,
                        ompi_request_t **request)
{
    mca_coll_flash_held_t *held = new_held(module, arguments);

    mca_coll_flash_free_deferred();
    if (held == NULL) {
        mca_coll_flash_no_memory(module->comm); /* the other ranks would wait for this one */
    }
    held->collective = collective;
    held->name = name;
    held->path = path;
    held->settings = module->settings;
    held->ticket = mca_coll_flash_plain_ticket(module, path);
    held->ticket.settings = &held->settings;
    held->waiter.go_on = go_on;
    reserve(held, arguments);
    *request = mca_coll_flash_handle_begin(&held->handle);
    mca_coll_flash_setup_await(
        module, mca_coll_flash_setup_for(arguments->kind, path == FLASH_PAIRWISE), &held->waiter);
    return MPI_SUCCESS;
}

int mca_coll_flash_start_call(const mca_coll_flash_collective_t *collective, const char *name,
                              mca_coll_flash_arguments_t *arguments, mca_coll_base_module_t *base,
                              ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    bool held;
    mca_coll_flash_path_t path = mca_coll_flash_path_of(name, arguments, module, &held);

    if (held) {
        return mca_coll_flash_hold(collective, name, module, arguments, path, request);
    }
    if (path != FLASH_RING && path != FLASH_PAIRWISE) {
        return mca_coll_flash_start_bounced(collective, module, arguments, path, request);
    }
    if (module->late) {
        flash_compat_take_tag(module->comm); /* as where it is held */
    }
    return collective->start(module, mca_coll_flash_plain_ticket(module, path), arguments, path,
                             request);
}
