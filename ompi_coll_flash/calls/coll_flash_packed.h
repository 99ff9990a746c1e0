/*
 * coll_flash_packed.h: the sides of a call: where its blocks are, and packed memory for those of a
 * datatype with gaps.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_PACKED_H
#define COLL_FLASH_PACKED_H

#include "calls/coll_flash_calls.h"

/* A side of a call, as MPI gives it. */
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
/* Of equal blocks. */
mca_coll_flash_layout_t mca_coll_flash_layout_of(MPI_Datatype type, flash_count_t count);
static inline size_t mca_coll_flash_block_bytes(const mca_coll_flash_layout_t *layout)
{
    return (size_t) layout->count * layout->size;
}
/* Whether `count` elements lie in memory as their packed form does. */
bool mca_coll_flash_is_dense(MPI_Datatype type, flash_count_t count);
/* The same of equal blocks, of which there are two at least. */
bool mca_coll_flash_are_packed(const mca_coll_flash_layout_t *layout);
/*
 * Of a side that is not empty, and has one block or all ranks': where its first data lie, if in a
 * device's memory, or NULL. MPI_SUCCESS, or MPI_ERR_BUFFER: there is no buffer, or it would have to
 * be packed there, which is explained.
 */
int mca_coll_flash_find_block(const mca_coll_flash_layout_t *layout, const void *buffer,
                              const void **on_device);
int mca_coll_flash_find_blocks(const mca_coll_flash_layout_t *layout, const void *buffer,
                               const void **on_device);
/* MPI_Pack, beyond 2^31 bytes, too. MPI_SUCCESS or MPI_ERR_INTERN. */
int mca_coll_flash_pack(const void *from, flash_count_t count, MPI_Datatype type, char *to);
/* Of equal blocks, one behind another. */
int mca_coll_flash_pack_blocks(const mca_coll_flash_layout_t *layout, const char *blocks, int ranks,
                               char *packed);
/*
 * Gives the request packed blocks as its output, which it unpacks to `recvbuf`. MPI_SUCCESS or
 * MPI_ERR_NO_MEM.
 */
int mca_coll_flash_place_packed(mca_coll_flash_request_t *request,
                                const mca_coll_flash_layout_t *layout, void *recvbuf,
                                flash_op_params_t *params);
/* The same of one block, of layout->count elements. */
int mca_coll_flash_place_packed_block(mca_coll_flash_request_t *request,
                                      const mca_coll_flash_layout_t *layout, void *recvbuf,
                                      flash_op_params_t *params);

#endif /* COLL_FLASH_PACKED_H */
