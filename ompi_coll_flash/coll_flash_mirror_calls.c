/*
 * coll_flash_mirror_calls.c: calls that take no ring, on buffers in the memory of devices.
 *
 * The modules below would touch them with the processor. Such a call goes on with its data in host
 * bounces, and its result is copied back before its request completes: as other ranks see it, nothing
 * is different.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_stager.h"
#include "mpix_flash_fallback_operation.h"

static int copy_part(const flash_fallback_t *call, const flash_mirror_part_t *part, bool in)
{
    if (part->size > 0 && !flash_stager_copy(call->stager, part->own, in ? part->near : part->far,
                                             in ? part->far : part->near, part->size)) {
        mca_coll_flash_tell_device_failed();
        return MPI_ERR_OTHER;
    }
    return MPI_SUCCESS;
}

/* Copies the result to where it belongs. */
static int copy_back(flash_fallback_t *call)
{
    const flash_mirror_t *mirror = call->mirror;
    int rc = MPI_SUCCESS;

    for (size_t k = 0; k < mirror->outs && rc == MPI_SUCCESS; k++) {
        rc = copy_part(call, &mirror->out[k], false);
    }
    return rc;
}

static flash_fallback_t *new_call(ompi_communicator_t *comm, flash_mirror_t *mirror)
{
    flash_fallback_t *call = OBJ_NEW(flash_fallback_t);

    if (call != NULL) {
        call->super.super.req_mpi_object.comm = comm;
        call->comm = comm;
        OBJ_RETAIN(comm);
        call->mirror = mirror;
        call->finish = copy_back;
    }
    return call;
}

int mca_coll_flash_mirror(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                          mca_coll_flash_path_t path, const struct flash_stager_order *order,
                          struct flash_fallback **mirrored)
{
    struct flash_stager *stager;
    flash_mirror_t *mirror;
    flash_fallback_t *call;
    int rc;

    *mirrored = NULL;
    mca_coll_flash_settle();
    rc = mca_coll_flash_mirror_find(arguments, comm, path, order, &mirror, &stager);
    if (mirror == NULL) {
        return rc;
    }
    call = new_call(comm, mirror);
    if (call == NULL) {
        flash_stager_close(stager);
        mca_coll_flash_mirror_free(mirror);
        return MPI_ERR_NO_MEM;
    }
    call->stager = stager;
    rc = copy_part(call, &mirror->in, true);
    if (rc != MPI_SUCCESS) {
        OBJ_RELEASE(call);
        return rc;
    }
    *mirrored = call;
    return MPI_SUCCESS;
}

int mca_coll_flash_mirror_started(struct flash_fallback *mirrored, int error,
                                  ompi_request_t **request)
{
    if (mirrored == NULL) {
        return error;
    }
    if (error != MPI_SUCCESS) {
        mirrored->mirror = NULL; /* given up: part of the call may be under way */
        OBJ_RELEASE(mirrored);
        return error;
    }
    mirrored->inner[0] = *request;
    flash_fallback_enlist(mirrored, request);
    return MPI_SUCCESS;
}

/* ---------------------------------------------------------- persistent requests */

int mca_coll_flash_mirror_keep(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                               flash_mirror_t **mirror)
{
    struct flash_stager *stager;
    int rc = mca_coll_flash_mirror_find(arguments, comm, FLASH_PASSED_ON, NULL, mirror, &stager);

    flash_stager_close(stager);
    return rc;
}

int mca_coll_flash_mirror_start(flash_mirror_t *mirror, ompi_request_t *below,
                                ompi_request_t *persistent)
{
    flash_fallback_t *call;
    ompi_request_t *round;
    int rc;

    mca_coll_flash_settle();
    call = new_call(persistent->req_mpi_object.comm, mirror);
    if (call == NULL) {
        return MPI_ERR_NO_MEM;
    }
    call->persistent = persistent;
    rc = mca_coll_flash_open_stager(mirror->own, mirror->all, NULL, &call->stager);
    if (rc == MPI_SUCCESS) {
        rc = copy_part(call, &mirror->in, true);
    }
    if (rc == MPI_SUCCESS) {
        rc = below->req_start(1, &below);
    }
    if (rc != MPI_SUCCESS) {
        OBJ_RELEASE(call);
        return rc;
    }
    call->inner[0] = below;
    flash_fallback_enlist(call, &round);
    ompi_request_free(&round);
    return MPI_SUCCESS;
}
