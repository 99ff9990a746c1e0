/*
 * coll_flash_bounce.h: host bounces of a call's buffers in devices' memory, and where the call's
 * data are in both.
 *
 * They are one call's at a time: a plain call's own, or those of a persistent request, which each
 * of its rounds uses. Written when they are made, but for what a copy under way has of its own: it
 * ends in whichever thread polls, by a decrement of the call's `copies`, with which all is the
 * call's again.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_BOUNCE_H
#define COLL_FLASH_BOUNCE_H

#include "calls/coll_flash_calls.h"
#include "device/flash_stager.h"

/* A part of a buffer in a device's memory, and of its bounce. */
typedef struct flash_host_bounce_part {
    char *device, *host;
    size_t size;
    size_t reach;                /* from `device` to the end of its allocation; 0: not asked for */
    bool sent;                   /* of the send buffer */
    flash_gpu_copy_t copy;       /* under way, */
    struct flash_fallback *call; /* by that call */
} flash_host_bounce_part_t;

typedef struct flash_host_bounce {
    const void *sent,
        *received;         /* where these buffers' data begin, if in a device's memory; or NULL */
    bool displaced;        /* a buffer has displacements: it may be several allocations */
    flash_loan_t pinned;   /* the bounces; or if there is none, */
    void *pageable;        /* owned: likewise */
    flash_displ_t *places; /* owned; where the blocks of both sides are in the bounces, or NULL: as
                              in the buffers */
    flash_host_bounce_part_t *in, *out; /* what the call reads, and its result: */
    size_t ins, outs;                   /* so many of `parts`, none of those in the host's memory */
    flash_host_bounce_part_t parts[];
} flash_host_bounce_t;

/*
 * Puts bounces in the place of a call's buffers in devices' memory, where the path that it takes
 * would touch them. NULL: there are none; else a stager for what is copied, to be closed.
 * MPI_SUCCESS, or an error that is explained. `order`: what comes first, or NULL.
 */
int mca_coll_flash_bounce_find(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                               mca_coll_flash_path_t path, const struct flash_stager_order *order,
                               flash_host_bounce_t **bounce, struct flash_stager **stager);
/*
 * Has the copies of a stager that has been opened for both buffers' first data come behind what may
 * still write to any part. MPI_SUCCESS, or an error that is explained.
 */
int mca_coll_flash_bounce_cover(const flash_host_bounce_t *bounce,
                                const struct flash_stager *stager);
void mca_coll_flash_bounce_free(flash_host_bounce_t *bounce);

/*
 * For a persistent request of the module below: as mca_coll_flash_bounce(), and copies nothing yet.
 * NULL: it needs none.
 */
int mca_coll_flash_bounce_keep(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                               flash_host_bounce_t **bounce);
/*
 * Starts a round of it: copies what the call reads, starts `below`, copies the result back when
 * that is complete, and then completes `persistent` by that function. An error: nothing of that is
 * under way.
 */
int mca_coll_flash_bounce_start(flash_host_bounce_t *bounce, ompi_request_t *below,
                                ompi_request_t *persistent,
                                void (*complete)(ompi_request_t *persistent, int error));

#endif /* COLL_FLASH_BOUNCE_H */
