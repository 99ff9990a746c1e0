/*
 * coll_flash_persistent.c: the persistent forms of the operations that flash serves.
 *
 * A persistent request keeps the arguments of its call. Each start hands them to the same function
 * as a non-blocking call, which makes a request of its own, the ring's, and starts it; when that
 * one is at its end, the persistent one completes. So nothing of an operation outlives it, and
 * there is one way to start a ring.
 *
 * Nobody else holds the ring's request: it is freed as soon as it is started, and is at its end
 * when both that and the operation are done (coll_flash_request.c), whichever comes last. Open
 * MPI's completion callback would not do: at MPI_THREAD_MULTIPLE another thread may complete the
 * request before the callback is set.
 *
 * Where flash shares a call with the fallback, each round starts the ring's request and a persistent
 * one of the module below, and a request stands for both (flash_fallback.h).
 *
 * Where no ring serves it, the request is the module's below. Of buffers in a device's memory, that
 * one is made for host bounces, with the other ranks' (coll_flash_bounce.h), and one of flash's
 * stands for it: each round copies what is sent, starts the one below, and copies the result back.
 *
 * A start that fails completes at once with the error, which MPI_Wait and its like hand to the
 * communicator's error handler: MPI_Start and MPI_Startall would lose it.
 *
 * What a persistent request has is written by the thread that makes it, and by the one that starts
 * or completes it, ordered as Open MPI orders its requests. Who releases it: coll_flash_handle.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_persistent.h"
#include "ring/coll_flash_ring.h"

#include <stdlib.h>
#include <string.h>

static void recycle(mca_coll_flash_handle_t *handle)
{
    mca_coll_flash_persistent_t *persistent = (mca_coll_flash_persistent_t *) handle;

    if (persistent->below != NULL) {
        ompi_request_free(&persistent->below); /* as long as its communicator is there */
    }
    if (persistent->beside != NULL) {
        ompi_request_free(&persistent->beside);
    }
    if (persistent->sequence != 0 && persistent->refused == MPI_SUCCESS && !persistent->failed) {
        mca_coll_flash_persistent_id_return(persistent->module,
                                            persistent->sequence - FLASH_CALL_SEQUENCES);
    }
    OBJ_RELEASE(persistent);
}

/*
 * Where `below` has failed, or has not been started, its rounds are out of step with other ranks'. So are those
 * of `beside` where flash's part has failed and it is still under way: it may be for good, and reads its
 * counts (is_left() in flash_fallback.c).
 */
void mca_coll_flash_complete_round(ompi_request_t *request, int error)
{
    mca_coll_flash_persistent_t *persistent = (mca_coll_flash_persistent_t *) request;

    if (persistent->below != NULL && error != MPI_SUCCESS) {
        persistent->refused = error;
    }
    if (persistent->beside != NULL && persistent->beside->req_state == OMPI_REQUEST_ACTIVE) {
        persistent->refused = error;
        persistent->beside = NULL;
        persistent->kept = NULL;
    }
    persistent->failed = persistent->failed || error != MPI_SUCCESS;
    mca_coll_flash_handle_complete(&persistent->handle, error);
}

static flash_kind_t kind_of(const mca_coll_flash_module_t *module,
                            const mca_coll_flash_settings_t *settings,
                            const mca_coll_flash_arguments_t *arguments)
{
    return arguments->kind == FLASH_REDUCE_SCATTER
               ? mca_coll_flash_reduce_scatter_kind(module, settings)
               : arguments->kind;
}

static mca_coll_flash_ticket_t ticket_of(const mca_coll_flash_persistent_t *persistent)
{
    return (mca_coll_flash_ticket_t){.algorithm = &mca_coll_flash_ring,
                                     .sequence = persistent->sequence,
                                     .settings = &persistent->settings};
}

/*
 * The other ranks cannot tell one round's messages from another's: where one was refused, there is
 * no going back (flash_engine_refuse()).
 */
static int refuse_again(mca_coll_flash_persistent_t *persistent, ompi_request_t **ring)
{
    mca_coll_flash_ticket_t ticket = ticket_of(persistent);
    mca_coll_flash_request_t *request;
    flash_steps_t taken;

    ticket.part = mca_coll_flash_part_of(persistent->module, &persistent->arguments, &taken);
    request = mca_coll_flash_request_new(
        persistent->module, ticket,
        kind_of(persistent->module, &persistent->settings, &persistent->arguments));
    return request == NULL ? persistent->refused
                           : mca_coll_flash_request_refuse(request, persistent->refused, ring);
}

static int start_ring(mca_coll_flash_persistent_t *persistent, ompi_request_t **ring)
{
    return persistent->refused != MPI_SUCCESS
               ? refuse_again(persistent, ring)
               : persistent->collective->start(persistent->module, ticket_of(persistent),
                                               &persistent->arguments, FLASH_RING, ring);
}

static void start_by_ring(mca_coll_flash_persistent_t *persistent)
{
    flash_fallback_t *both = mca_coll_flash_beside_new(persistent);
    ompi_request_t *ring = MPI_REQUEST_NULL;
    mca_coll_flash_request_t *request;
    int rc = start_ring(persistent, &ring);

    request = (mca_coll_flash_request_t *) ring;
    if (rc != MPI_SUCCESS) {
        persistent->refused = rc;
        ring = MPI_REQUEST_NULL;
    } else if (request->refused) {
        persistent->refused = request->known_error;
    }
    if (both != NULL) {
        mca_coll_flash_beside_start(persistent, both, ring, rc);
    } else if (rc != MPI_SUCCESS) {
        mca_coll_flash_handle_complete(&persistent->handle, rc);
    } else {
        request->handle.persistent = &persistent->handle.super.super;
        request->handle.complete_persistent = mca_coll_flash_complete_round;
        ompi_request_free(&ring);
    }
}

static void start_below(mca_coll_flash_persistent_t *persistent)
{
    ompi_request_t *base = &persistent->handle.super.super;
    int rc = persistent->refused;

    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_bounce_start(persistent->bounce, persistent->below, base,
                                         mca_coll_flash_complete_round);
    }
    if (rc != MPI_SUCCESS) {
        mca_coll_flash_complete_round(base, rc);
    }
}

static void start(mca_coll_flash_persistent_t *persistent)
{
    flash_compat_see_request(&persistent->handle.super.super); /* its round before */
    mca_coll_flash_handle_begin(&persistent->handle);
    if (persistent->below != NULL) {
        start_below(persistent);
    } else {
        start_by_ring(persistent);
    }
}

static int persistent_start(size_t count, ompi_request_t **requests)
{
    for (size_t k = 0; k < count; k++) {
        if (requests[k]->req_state != OMPI_REQUEST_INACTIVE) {
            flash_compat_raise_in_start(requests[k]->req_mpi_object.comm, MPI_ERR_REQUEST);
            return MPI_ERR_REQUEST;
        }
        start((mca_coll_flash_persistent_t *) requests[k]);
    }
    return MPI_SUCCESS;
}

static void persistent_construct(mca_coll_flash_persistent_t *persistent)
{
    persistent->handle.super.super.req_start = persistent_start;
    memset(&persistent->arguments, 0, sizeof(persistent->arguments));
    persistent->sequence = 0;
    persistent->failed = persistent->out_of_step = false;
    persistent->refused = MPI_SUCCESS;
    persistent->arrays = NULL;
    persistent->below = persistent->beside = NULL;
    persistent->beside_moves_nothing = false;
    persistent->kept = NULL;
    persistent->bounce = NULL;
}

static void persistent_destruct(mca_coll_flash_persistent_t *persistent)
{
    mca_coll_flash_bounce_free(persistent->bounce);
    mca_coll_flash_arguments_release(&persistent->arguments);
    free(persistent->arrays);
    free(persistent->kept);
}

OBJ_CLASS_INSTANCE(mca_coll_flash_persistent_t, mca_coll_flash_handle_t, persistent_construct,
                   persistent_destruct);

void mca_coll_flash_persistent_init(void)
{
    opal_class_initialize(OBJ_CLASS(mca_coll_flash_persistent_t));
}

/*
 * Open MPI does not keep the types and operation of a request that it finds complete, as this one
 * is. NULL: there is no memory.
 */
static mca_coll_flash_persistent_t *make_request(mca_coll_flash_module_t *module,
                                                 const mca_coll_flash_arguments_t *arguments)
{
    mca_coll_flash_persistent_t *persistent = OBJ_NEW(mca_coll_flash_persistent_t);

    if (persistent != NULL) {
        persistent->module = module;
        persistent->arguments = *arguments;
        if (arguments->sendbuf == MPI_IN_PLACE) {
            persistent->arguments.sendtype = NULL; /* anything may stand there */
        }
        mca_coll_flash_handle_init(&persistent->handle, module->comm, true, recycle);
        mca_coll_flash_arguments_retain(&persistent->arguments);
    }
    return persistent;
}

int mca_coll_flash_persist_ring(const mca_coll_flash_collective_t *collective,
                                mca_coll_flash_module_t *module,
                                const mca_coll_flash_arguments_t *arguments,
                                ompi_request_t **request)
{
    /* First of all, for the other ranks take it, and count the tags of this kind, too. */
    uint32_t op_id = mca_coll_flash_persistent_id_take(module);
    mca_coll_flash_persistent_t *persistent;
    flash_steps_t taken;

    /* Now, for starts may come from several threads at a time. If it fails, they will say so. */
    (void) mca_coll_flash_ring_prepare(module, kind_of(module, &module->settings, arguments),
                                       mca_coll_flash_part_of(module, arguments, &taken));
    persistent = make_request(module, arguments);
    if (persistent == NULL) {
        return MPI_ERR_NO_MEM;
    }
    persistent->sequence = FLASH_CALL_SEQUENCES | op_id;
    persistent->settings = module->settings;
    persistent->collective = collective;
    if (mca_coll_flash_arguments_copy(&persistent->arguments, ompi_comm_size(module->comm),
                                      &persistent->arrays) != MPI_SUCCESS) {
        mca_coll_flash_handle_leave(&persistent->handle);
        return MPI_ERR_NO_MEM;
    }
    *request = &persistent->handle.super.super;
    return MPI_SUCCESS;
}

/* The arrays are the module's below to keep, as in a request without bounces. */
static int stand_for_below(mca_coll_flash_module_t *module,
                           const mca_coll_flash_arguments_t *arguments, flash_host_bounce_t *bounce,
                           ompi_request_t **request)
{
    mca_coll_flash_persistent_t *persistent = make_request(module, arguments);

    if (persistent == NULL) {
        ompi_request_free(request);
        mca_coll_flash_bounce_free(bounce);
        return MPI_ERR_NO_MEM;
    }
    persistent->below = *request;
    persistent->bounce = bounce;
    *request = &persistent->handle.super.super;
    return MPI_SUCCESS;
}

int mca_coll_flash_persist_below(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 const mca_coll_flash_arguments_t *arguments,
                                 struct ompi_info_t *info, ompi_request_t **request)
{
    mca_coll_flash_arguments_t bounced = *arguments;
    flash_host_bounce_t *bounce;
    int rc = mca_coll_flash_bounce_keep(&bounced, module->comm, &bounce);

    if (rc != MPI_SUCCESS) {
        mca_coll_flash_leave_out(module);
        return rc;
    }
    rc = collective->init(module, &bounced, info, request);
    if (rc == MPI_SUCCESS && bounce != NULL && (*request)->req_type != OMPI_REQUEST_NOOP) {
        return stand_for_below(module, arguments, bounce, request);
    }
    mca_coll_flash_bounce_free(bounce);
    return rc;
}

int mca_coll_flash_persist(const mca_coll_flash_collective_t *collective,
                           mca_coll_flash_module_t *module, mca_coll_flash_path_t path,
                           const mca_coll_flash_arguments_t *arguments, struct ompi_info_t *info,
                           ompi_request_t **request)
{
    return path == FLASH_FALLBACK
               ? mca_coll_flash_persist_below(collective, module, arguments, info, request)
               : mca_coll_flash_persist_ring(collective, module, arguments, request);
}

int mca_coll_flash_make_persistent(const mca_coll_flash_collective_t *collective, const char *name,
                                   const mca_coll_flash_arguments_t *arguments,
                                   struct ompi_info_t *info, mca_coll_base_module_t *base,
                                   ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    bool has_id = mca_coll_flash_persistent_id_find(module);
    mca_coll_flash_path_t path = mca_coll_flash_persistent_path_of(
        name, arguments, module, has_id ? FLASH_NO_REASON : FLASH_PERSISTENT_OP_IDS);

    return mca_coll_flash_persist(collective, module, path, arguments, info, request);
}
