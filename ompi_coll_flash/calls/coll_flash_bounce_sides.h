/*
 * coll_flash_bounce_sides.h: the buffers of a call, and where blocks lie in them and in their host
 * bounces. Of one call, within one function.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_BOUNCE_SIDES_H
#define COLL_FLASH_BOUNCE_SIDES_H

#include "calls/coll_flash_calls.h"

/* A buffer of a call, and the blocks there. In place there is no send buffer. */
typedef struct mca_coll_flash_bounce_side {
    const void *buffer;
    MPI_Datatype type;
    int blocks;
    flash_count_t count;   /* of each block, if counts is NULL */
    flash_counts_t counts; /* likewise, or NULL */
    flash_displs_t displs; /* in elements; NULL: one block behind another */
    const void *device;    /* where the first data lie, if in a device's memory; or NULL */
    flash_displs_t places; /* as displs, in the bounce; NULL: the same */
    ptrdiff_t first, end;  /* elements of the bounce that the blocks lie in */
} mca_coll_flash_bounce_side_t;

typedef struct mca_coll_flash_bounce_sides {
    mca_coll_flash_bounce_side_t sent, received;
} mca_coll_flash_bounce_sides_t;

static inline ptrdiff_t mca_coll_flash_bounce_side_count(const mca_coll_flash_bounce_side_t *side,
                                                         int block)
{
    return side->counts == NULL ? side->count : side->counts[block];
}

/* Where a block begins, of equal blocks or of those with displacements. */
static inline ptrdiff_t mca_coll_flash_bounce_side_displ(const mca_coll_flash_bounce_side_t *side,
                                                         int block)
{
    return side->displs == NULL ? (ptrdiff_t) block * side->count : side->displs[block];
}

static inline ptrdiff_t mca_coll_flash_bounce_side_place(const mca_coll_flash_bounce_side_t *side,
                                                         int block)
{
    return side->places == NULL ? mca_coll_flash_bounce_side_displ(side, block)
                                : side->places[block];
}

/* Of a call that does not use the ring. */
mca_coll_flash_bounce_sides_t
mca_coll_flash_bounce_sides_of(const mca_coll_flash_arguments_t *arguments,
                               ompi_communicator_t *comm);
/*
 * Whether nothing but the data of its elements lies between the first and the last byte of several.
 * A predefined type's padding is nobody's.
 */
bool mca_coll_flash_bounce_is_dense(MPI_Datatype type);
/*
 * Has the bounce hold the blocks one behind another, where they are less than half of what they lie
 * in: of a call that flash shares with the fallback, long blocks lie between the short ones
 * (coll_flash_shared.c). `places`: room for a place of each block.
 */
void mca_coll_flash_bounce_side_pack(mca_coll_flash_bounce_side_t *side, flash_displ_t *places);

#endif /* COLL_FLASH_BOUNCE_SIDES_H */
