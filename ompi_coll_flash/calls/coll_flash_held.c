/*
 * coll_flash_held.c: non-blocking calls that wait for their communicator's set-up
 * (ring/coll_flash_setup.h), and then start, or fall back.
 *
 * All ranks must make the same of a call, though one rank has seen the end of the set-up and another
 * one has not. Each call that goes by messages takes a number when it is made, the module's `sequence`,
 * whatever becomes of it. libnbc matches calls by tags that it takes in turn; a call that falls back
 * since there is no set-up, be it held or not, has a tag that follows from its number instead. So the
 * tags of all other calls are those that they have without flash, in whatever order ranks take them.
 *
 * Only one thread is in MPI at a time where calls are held (coll_flash_late.c): nobody takes a tag of
 * libnbc's while one that is out of turn is set.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_kept.h"
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
    uint32_t number; /* of the call, of which the ticket's operation id has some bits */
    mca_coll_flash_settings_t settings;   /* of the time of the call: the ticket's */
    mca_coll_flash_arguments_t arguments; /* types and operation kept */
    flash_count_t *arrays;                /* owned, what the arguments point to */
} mca_coll_flash_held_t;

static void held_construct(mca_coll_flash_held_t *held)
{
    held->arrays = NULL;
}

static void held_destruct(mca_coll_flash_held_t *held)
{
    mca_coll_flash_arguments_release(&held->arguments);
    free(held->arrays);
}

OBJ_CLASS_DECLARATION(mca_coll_flash_held_t);
OBJ_CLASS_INSTANCE(mca_coll_flash_held_t, mca_coll_flash_handle_t, held_construct, held_destruct);

static void recycle(mca_coll_flash_handle_t *handle)
{
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

/* By libnbc, with the tag of that number: see above. */
static int pass_on(const mca_coll_flash_collective_t *collective, mca_coll_flash_module_t *module,
                   mca_coll_flash_arguments_t *arguments, uint32_t number, ompi_request_t **request)
{
    int next = flash_compat_set_tag(module->comm, FLASH_TAG_OUT_OF_TURN(number));
    int rc = mca_coll_flash_start_bounced(collective, module, arguments, FLASH_FALLBACK, request);

    (void) flash_compat_set_tag(module->comm, next);
    return rc;
}

/*
 * Types that are not used, in place, may be anything: libnbc looks at them all the same, and gets one
 * that is there.
 */
static int fall_back(mca_coll_flash_held_t *held)
{
    mca_coll_flash_arguments_t arguments = held->arguments;
    flash_fallback_t *call = flash_fallback_new(held->module->comm);
    ompi_request_t *started;
    int rc;

    if (call == NULL) {
        return MPI_ERR_NO_MEM;
    }
    arguments.sendtype = arguments.sendtype == NULL ? arguments.recvtype : arguments.sendtype;
    rc = pass_on(held->collective, held->module, &arguments, held->number, &call->inner[0]);
    if (rc != MPI_SUCCESS) {
        call->inner[0] = MPI_REQUEST_NULL;
        flash_fallback_drop(call);
        return rc;
    }
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

    if (held->name != NULL) {
        mca_coll_flash_tell_call(&call, held->module->comm, ready ? held->path : FLASH_FALLBACK,
                                 ready ? FLASH_NO_REASON : FLASH_NOT_SET_UP);
    }
    rc = ready ? start_by_messages(held) : fall_back(held);
    if (rc != MPI_SUCCESS) {
        mca_coll_flash_handle_complete(&held->handle, rc);
    }
}

/* -------------------------------------------------------------------- holding */

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
    if (mca_coll_flash_arguments_copy(&held->arguments, ompi_comm_size(module->comm),
                                      &held->arrays) != MPI_SUCCESS) {
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
    held->number = module->sequence;
    held->ticket = mca_coll_flash_plain_ticket(module, path);
    held->ticket.settings = &held->settings;
    held->waiter.go_on = go_on;
    *request = mca_coll_flash_handle_begin(&held->handle);
    mca_coll_flash_setup_await(
        module, mca_coll_flash_setup_for(arguments->kind, path == FLASH_PAIRWISE), &held->waiter);
    return MPI_SUCCESS;
}

int mca_coll_flash_fall_back_out_of_turn(const mca_coll_flash_collective_t *collective,
                                         mca_coll_flash_module_t *module,
                                         mca_coll_flash_arguments_t *arguments,
                                         ompi_request_t **request)
{
    return pass_on(collective, module, arguments, module->sequence++, request);
}
