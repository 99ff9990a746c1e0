/*
 * coll_flash_path.h: which way a call takes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_PATH_H
#define COLL_FLASH_PATH_H

#include "request/coll_flash_request.h"

/* All blocks together, of `count` elements each or of counts[] where that is not NULL. */
size_t mca_coll_flash_bytes(flash_count_t count, flash_counts_t counts, MPI_Datatype type,
                            ompi_communicator_t *comm);
/* Why no ring serves a call; equal on all ranks. First those that are no board's. */
typedef enum mca_coll_flash_obstacle {
    FLASH_NO_OBSTACLE,
    FLASH_BELOW_MIN,
    FLASH_BELOW_TWICE_MIN,
    FLASH_BELOW_STEP,
    FLASH_BELOW_TWICE_STEP,
    FLASH_ON_ONE_NODE,
    FLASH_NOT_COMMUTATIVE,
    FLASH_NOT_OF_REDUCTIONS,
    FLASH_NOT_PREDEFINED,
    FLASH_TYPE_WITH_GAPS,
    FLASH_PERSISTENT_NUMBERS,
    FLASH_TOO_MANY_RANKS,
    FLASH_MERGED,
    FLASH_NOT_SERVED,
    FLASH_COUNTS_TOO_LARGE,
    FLASH_OBSTACLES
} mca_coll_flash_obstacle_t;

/* Which way a call takes. */
typedef enum mca_coll_flash_path {
    FLASH_PASSED_ON, /* to the component below */
    FLASH_BY_RING,
    FLASH_DIRECT, /* a reduce-scatter too small for a ring; the thread is not woken for it */
    FLASH_BY_BOARD,
    FLASH_BY_DOUBLING /* too small for all these: a few rounds of Open MPI's own messages */
} mca_coll_flash_path_t;

/*
 * Of a call, which is counted, and said at coll_flash_verbose 2; equal on all ranks. Without an
 * obstacle, its size decides. `element`: what is not to be cut, for a board; 0: none is to serve it.
 */
mca_coll_flash_path_t mca_coll_flash_choose_path(const char *name, flash_kind_t kind, size_t bytes,
                                                 size_t element,
                                                 const mca_coll_flash_module_t *module,
                                                 mca_coll_flash_obstacle_t obstacle);
/* The next operation of a plain call on that path, which is not passed on: see mca_coll_flash_ring_ticket(). */
mca_coll_flash_ticket_t mca_coll_flash_plain_ticket(mca_coll_flash_module_t *module,
                                                    mca_coll_flash_path_t path);
/*
 * What is to become of such a call, on all ranks, where this one cannot begin it because of `error`: that,
 * now or of the request.
 */
int mca_coll_flash_plain_refuse(mca_coll_flash_module_t *module, flash_kind_t kind,
                                mca_coll_flash_path_t path, int error, ompi_request_t **request);
/* Counts and says so of a call of the extension, which takes the ring if there is no obstacle. */
void mca_coll_flash_tell_path(const char *name, size_t bytes, ompi_communicator_t *comm,
                              mca_coll_flash_obstacle_t obstacle);

#endif /* COLL_FLASH_PATH_H */
