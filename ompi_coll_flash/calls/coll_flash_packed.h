/*
 * coll_flash_packed.h: the receive side of a call: where its blocks are, and packed memory for those
 * of a datatype with gaps.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_PACKED_H
#define COLL_FLASH_PACKED_H

#include "calls/coll_flash_calls.h"

/* The receive side of a call, as MPI gives it. */
typedef struct mca_coll_flash_layout {
    MPI_Datatype type;
    size_t size; /* bytes of an element */
    ptrdiff_t extent, true_lb;
    flash_count_t count;
    flash_counts_t counts; /* NULL: equal blocks of `count` */
    flash_displs_t displs;
} mca_coll_flash_layout_t;

static inline flash_count_t mca_coll_flash_block_count(const mca_coll_flash_layout_t *layout,
                                                       int rank)
{
    return layout->counts == NULL ? layout->count : layout->counts[rank];
}

/* In elements of the type. */
static inline ptrdiff_t mca_coll_flash_block_displ(const mca_coll_flash_layout_t *layout, int rank)
{
    return layout->counts == NULL ? (ptrdiff_t) rank * layout->count : layout->displs[rank];
}

void mca_coll_flash_read_type(MPI_Datatype type, size_t *size, ptrdiff_t *extent,
                              ptrdiff_t *true_lb);
/* Whether `count` elements lie in memory as their packed form does. */
bool mca_coll_flash_is_dense(MPI_Datatype type, flash_count_t count);
/* MPI_Pack, beyond 2^31 bytes, too. MPI_SUCCESS or MPI_ERR_INTERN. */
int mca_coll_flash_pack(const void *from, flash_count_t count, MPI_Datatype type, char *to);
/*
 * Gives the request packed blocks as its output, which it unpacks to `recvbuf`. MPI_SUCCESS or
 * MPI_ERR_NO_MEM.
 */
int mca_coll_flash_place_packed(mca_coll_flash_request_t *request,
                                const mca_coll_flash_layout_t *layout, void *recvbuf,
                                flash_op_params_t *params);
/* The same of a chain, which has one block of layout->count elements. */
int mca_coll_flash_place_packed_block(mca_coll_flash_request_t *request,
                                      const mca_coll_flash_layout_t *layout, void *recvbuf,
                                      flash_op_params_t *params);

#endif /* COLL_FLASH_PACKED_H */
