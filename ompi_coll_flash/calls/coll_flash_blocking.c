/*
 * coll_flash_blocking.c: MPI's blocking calls: by flash where their costs say so, or
 * coll_flash_blocking does.
 *
 * A blocking call by flash is a non-blocking one and the wait for it. It takes its number among the
 * operations of its communicator when it begins, as a non-blocking one does, and that is the same
 * number on all ranks: MPI has all ranks call a communicator's collectives in the same order,
 * blocking or not (MPI 3.1, section 5.12), and all ranks choose the same path.
 *
 * Open MPI makes such calls itself, while communicators, windows and files are made and used. It
 * makes them inside collective calls of the user's on the same communicator, or on one of its own,
 * so that their order is the user's, too. It makes none in MPI_Init before flash serves
 * MPI_COMM_WORLD, none on a communicator that is being set up, and none in MPI_Finalize once
 * components close.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

/*
 * Open MPI's wait leaves a request that has failed to its caller. The error goes to the MPI function
 * that the user has called, which hands it to the communicator's error handler, once.
 */
int mca_coll_flash_wait(ompi_request_t *request)
{
    int error = ompi_request_wait(&request, MPI_STATUS_IGNORE);

    if (error != MPI_SUCCESS) {
        ompi_request_free(&request);
    }
    return error;
}

/* `settings`: what the path was chosen by; the request keeps them until it ends, here. */
static int start(const mca_coll_flash_collective_t *collective, mca_coll_flash_module_t *module,
                 mca_coll_flash_arguments_t *arguments, mca_coll_flash_path_t path,
                 const mca_coll_flash_settings_t *settings, ompi_request_t **request)
{
    mca_coll_flash_ticket_t ticket;

    if (path != FLASH_RING && path != FLASH_PAIRWISE) {
        return mca_coll_flash_start_bounced(collective, module, arguments, path, request);
    }
    ticket = mca_coll_flash_plain_ticket(module, path);
    ticket.settings = settings;
    return collective->start(module, ticket, arguments, path, request);
}

int mca_coll_flash_block(const mca_coll_flash_collective_t *collective, const char *name,
                         mca_coll_flash_arguments_t *arguments, mca_coll_base_module_t *base)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    mca_coll_flash_settings_t settings;
    mca_coll_flash_path_t path = FLASH_FALLBACK;
    ompi_request_t *request;
    int rc;

    arguments->blocking = true;
    if (mca_coll_flash_may_block(module, arguments->kind)) {
        settings = mca_coll_flash_blocking_settings(&module->settings);
        path = mca_coll_flash_blocking_path_of(name, arguments, module, &settings);
    }
    if (path == FLASH_FALLBACK) {
        return collective->block(module, arguments);
    }
    rc = start(collective, module, arguments, path, &settings, &request);
    return rc == MPI_SUCCESS ? mca_coll_flash_wait(request) : rc;
}
