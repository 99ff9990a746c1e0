/*
 * coll_flash_bounce_calls.c: calls that do not use the ring, on buffers in the memory of devices.
 *
 * The modules below would touch them with the processor. Such a call goes on with its data in host
 * bounces, and its result is copied back before its request completes: as other ranks see it,
 * nothing is different.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device/flash_device.h"
#include "device/flash_stager.h"
#include "calls/coll_flash_bounce.h"
#include "calls/flash_fallback.h"

/*
 * Bytes that the start of a persistent request waits for: some ten microseconds, and short messages
 * leave with the start. Longer ones would need the application's next MPI call anyway, for their
 * rendezvous: the start returns while they are copied, and such a call starts the request below.
 */
enum { MOST_AT_ONCE = 256 << 10 };

/* ------------------------------------------------------------------------- copies */

static int tell_failed(void)
{
    mca_coll_flash_tell_device_failed();
    return MPI_ERR_OTHER;
}

/* What it sends. */
static int copy_at_once(const flash_fallback_t *call)
{
    const flash_host_bounce_t *bounce = call->bounce;

    for (size_t k = 0; k < bounce->ins; k++) {
        const flash_host_bounce_part_t *part = &bounce->in[k];

        if (!flash_stager_copy(call->stager, part->sent, part->host, part->device, part->size)) {
            return tell_failed();
        }
    }
    return MPI_SUCCESS;
}

static size_t bytes_sent(const flash_host_bounce_t *bounce)
{
    size_t bytes = 0;

    for (size_t k = 0; k < bounce->ins; k++) {
        bytes += bounce->in[k].size;
    }
    return bytes;
}

/* In any thread. With the decrement the call may be gone. */
static void end_copy(flash_gpu_copy_t *copy, bool well)
{
    flash_host_bounce_part_t *part =
        (flash_host_bounce_part_t *) ((char *) copy - offsetof(flash_host_bounce_part_t, copy));
    flash_fallback_t *call = part->call;

    if (!well) {
        atomic_store_explicit(&call->copy_failed, true, memory_order_relaxed);
    }
    atomic_fetch_sub_explicit(&call->copies, 1, memory_order_release);
}

static void begin_copy(flash_fallback_t *call, flash_host_bounce_part_t *part, bool in)
{
    part->call = call;
    part->copy = (flash_gpu_copy_t){
        .done = end_copy, .way = !in, .pageable = call->bounce->pageable != NULL};
    atomic_fetch_add_explicit(&call->copies, 1, memory_order_relaxed);
    if (!flash_stager_begin(call->stager, part->sent, in ? part->host : part->device,
                            in ? part->device : part->host, part->size, &part->copy)) {
        end_copy(&part->copy, false);
    }
}

/* Of copies that have ended. */
static int check_copies(const flash_fallback_t *call)
{
    return atomic_load_explicit(&call->copy_failed, memory_order_relaxed) ? tell_failed()
                                                                          : MPI_SUCCESS;
}

/* ------------------------------------------------- what is done when nothing is under way */

static bool end_call(flash_fallback_t *call)
{
    flash_fallback_fail(call, check_copies(call));
    return true;
}

/* Nobody waits for the device here: this thread may be needed for other operations. */
static bool copy_result(flash_fallback_t *call)
{
    flash_host_bounce_t *bounce = call->bounce;

    flash_fallback_end_inner(call);
    if (flash_fallback_has_failed(call)) {
        return true;
    }
    call->advance = end_call;
    for (size_t k = 0; k < bounce->outs; k++) {
        begin_copy(call, &bounce->out[k], false);
    }
    return false;
}

static int start_below(flash_fallback_t *call)
{
    int rc = call->below->req_start(1, &call->below);

    if (rc == MPI_SUCCESS) {
        call->inner[0] = call->below;
        call->advance = copy_result;
    }
    return rc;
}

/* What it sends has been copied. */
static bool start_late(flash_fallback_t *call)
{
    int rc = check_copies(call);

    flash_fallback_fail(call, rc == MPI_SUCCESS ? start_below(call) : rc);
    return flash_fallback_has_failed(call);
}

/* -------------------------------------------------------------------- plain calls */

static flash_fallback_t *new_call(ompi_communicator_t *comm, flash_host_bounce_t *bounce)
{
    flash_fallback_t *call = flash_fallback_new(comm);

    if (call != NULL) {
        call->bounce = bounce;
    }
    return call;
}

/*
 * Waits for the copy of what is sent: the call on the bounces has to begin before the application's
 * call returns, and reads them when it begins. Open MPI's collectives and recursive doubling take
 * the communicator's next tag when they begin, and shared memory runs operations in the order in
 * which they begin. Another collective that the application calls in between, and that flash may
 * not see, would otherwise take this one's turn here, and not on the other ranks.
 */
int mca_coll_flash_bounce(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                          mca_coll_flash_path_t path, const struct flash_stager_order *order,
                          struct flash_fallback **bounced)
{
    struct flash_stager *stager;
    flash_host_bounce_t *bounce;
    flash_fallback_t *call;
    int rc;

    *bounced = NULL;
    mca_coll_flash_free_deferred();
    rc = mca_coll_flash_bounce_find(arguments, comm, path, order, &bounce, &stager);
    if (bounce == NULL) {
        return rc;
    }
    call = new_call(comm, bounce);
    if (call == NULL) {
        flash_stager_close(stager);
        mca_coll_flash_bounce_free(bounce);
        return MPI_ERR_NO_MEM;
    }
    call->free_bounce = mca_coll_flash_bounce_free;
    call->stager = stager;
    call->advance = copy_result;
    rc = copy_at_once(call);
    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(call);
        return rc;
    }
    *bounced = call;
    return MPI_SUCCESS;
}

int mca_coll_flash_bounce_started(struct flash_fallback *bounced, int error,
                                  ompi_request_t **request)
{
    if (bounced == NULL) {
        return error;
    }
    if (error != MPI_SUCCESS) {
        bounced->bounce = NULL; /* given up: part of the call may be under way */
        flash_fallback_drop(bounced);
        return error;
    }
    bounced->inner[0] = *request;
    flash_fallback_enlist(bounced, request);
    return MPI_SUCCESS;
}

int mca_coll_flash_start_bounced(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 mca_coll_flash_arguments_t *arguments, mca_coll_flash_path_t path,
                                 ompi_request_t **request)
{
    struct flash_fallback *bounced = NULL;
    int rc = MPI_SUCCESS;

    if (flash_device_any()) {
        rc = mca_coll_flash_bounce(arguments, module->comm, path, NULL, &bounced);
    }
    if (rc != MPI_SUCCESS && path != FLASH_FALLBACK) {
        return mca_coll_flash_plain_refuse(module, arguments->kind, path, rc, request);
    }
    if (rc != MPI_SUCCESS) {
        mca_coll_flash_leave_out(module);
    }
    if (rc == MPI_SUCCESS && path == FLASH_FALLBACK) {
        rc = collective->pass_on(module, arguments, request);
    } else if (rc == MPI_SUCCESS) {
        rc = collective->start(module, mca_coll_flash_plain_ticket(module, path), arguments, path,
                               request);
    }
    return mca_coll_flash_bounce_started(bounced, rc, request);
}

int mca_coll_flash_block_bounced(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 mca_coll_flash_arguments_t *arguments)
{
    struct flash_fallback *bounced = NULL;
    ompi_request_t *copies_back = MPI_REQUEST_NULL;
    int rc = MPI_SUCCESS;

    if (flash_device_any()) {
        rc = mca_coll_flash_bounce(arguments, module->comm, FLASH_FALLBACK, NULL, &bounced);
    }
    if (rc == MPI_SUCCESS) {
        rc = collective->block(module, arguments);
    }
    rc = mca_coll_flash_bounce_started(bounced, rc, &copies_back);
    return bounced == NULL || rc != MPI_SUCCESS ? rc : mca_coll_flash_wait(copies_back);
}

/* ---------------------------------------------------------- persistent requests */

int mca_coll_flash_bounce_keep(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                               flash_host_bounce_t **bounce)
{
    struct flash_stager *stager;
    int rc = mca_coll_flash_bounce_find(arguments, comm, FLASH_FALLBACK, NULL, bounce, &stager);

    flash_stager_close(stager);
    return rc;
}

/* The request below has had its tag since it was made: it may be started when the copy is done. */
static int begin_round(flash_fallback_t *call)
{
    flash_host_bounce_t *bounce = call->bounce;
    int rc;

    if (bytes_sent(bounce) > MOST_AT_ONCE) {
        call->advance = start_late;
        for (size_t k = 0; k < bounce->ins; k++) {
            begin_copy(call, &bounce->in[k], true);
        }
        return MPI_SUCCESS;
    }
    rc = copy_at_once(call);
    return rc == MPI_SUCCESS ? start_below(call) : rc;
}

int mca_coll_flash_bounce_start(flash_host_bounce_t *bounce, ompi_request_t *below,
                                ompi_request_t *persistent,
                                void (*complete)(ompi_request_t *persistent, int error))
{
    flash_fallback_t *call;
    ompi_request_t *round;
    int rc;

    mca_coll_flash_free_deferred();
    call = new_call(persistent->req_mpi_object.comm, bounce);
    if (call == NULL) {
        return MPI_ERR_NO_MEM;
    }
    call->below = below;
    rc = mca_coll_flash_open_stager(bounce->sent, bounce->received, NULL, &call->stager);
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_bounce_cover(bounce, call->stager);
    }
    if (rc == MPI_SUCCESS) {
        rc = begin_round(call);
    }
    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(call);
        return rc;
    }
    call->handle.persistent = persistent;
    call->handle.complete_persistent = complete;
    flash_fallback_enlist(call, &round);
    ompi_request_free(&round);
    return MPI_SUCCESS;
}
