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
/* Of blocks that may differ. */
static inline size_t mca_coll_flash_bytes_of_block(const mca_coll_flash_layout_t *layout, int rank)
{
    return (size_t) mca_coll_flash_block_count(layout, rank) * layout->size;
}
/* The two sides of an all-to-all. */
mca_coll_flash_layout_t mca_coll_flash_sent_layout(const mca_coll_flash_arguments_t *arguments);
mca_coll_flash_layout_t mca_coll_flash_received_layout(const mca_coll_flash_arguments_t *arguments);
/* Of a gather or a scatter: the blocks that the root receives or sends; on another rank, its own one. */
mca_coll_flash_layout_t mca_coll_flash_roots_layout(const mca_coll_flash_arguments_t *arguments);
/* Whether `count` elements lie in memory as their packed form does. */
bool mca_coll_flash_is_dense(MPI_Datatype type, flash_count_t count);
/*
 * `on_device` gets the address of the first data of a block that is not empty, if a device's memory
 * has them; else NULL. MPI_SUCCESS, or MPI_ERR_BUFFER: there is no buffer, or the block would have to
 * be packed in a device's memory, which is explained.
 */
int mca_coll_flash_find_block(const mca_coll_flash_layout_t *layout, const void *buffer,
                              const void **on_device);
/* Where a block of that side begins in a buffer. */
static inline const void *mca_coll_flash_block_of(const mca_coll_flash_layout_t *layout,
                                                  const void *buffer, int rank)
{
    return (const char *) buffer + mca_coll_flash_block_displ(layout, rank) * layout->extent;
}
/* MPI_Pack, beyond 2^31 bytes, too. MPI_SUCCESS or MPI_ERR_INTERN. */
int mca_coll_flash_pack(const void *from, flash_count_t count, MPI_Datatype type, char *to);
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

/*
 * All ranks' blocks that this rank sends, as the input: in place, or packed if the type has gaps or
 * `copies` says that what arrives takes their place. Blocks in a device's memory are not copied, but
 * told by `on_device`. MPI_SUCCESS, MPI_ERR_BUFFER or MPI_ERR_NO_MEM.
 */
int mca_coll_flash_place_sent(mca_coll_flash_request_t *request,
                              const mca_coll_flash_layout_t *layout, const void *buffer,
                              bool copies, flash_op_params_t *params, const void **on_device);
/* All ranks' blocks that this rank receives, as the output; the request unpacks those of a type with
   gaps at its end. The same errors. */
int mca_coll_flash_place_received(mca_coll_flash_request_t *request,
                                  const mca_coll_flash_layout_t *layout, void *buffer,
                                  flash_op_params_t *params, const void **on_device);

/*
 * A side's blocks, of bytes: where they are in the user's buffer, or, `packed`, one behind another.
 * `counts` and `displs` have room for all.
 */
void mca_coll_flash_set_blocks(const mca_coll_flash_layout_t *layout, bool packed, int ranks,
                               size_t *counts, ptrdiff_t *displs);
/* The only side of an operation: with arrays of the request's, unless the blocks are equal. MPI_SUCCESS or
   MPI_ERR_NO_MEM. */
int mca_coll_flash_set_side(mca_coll_flash_request_t *request,
                            const mca_coll_flash_layout_t *layout, bool packed,
                            flash_blocks_t *blocks);
/* Where a block begins there. */
static inline ptrdiff_t mca_coll_flash_place_of(const flash_blocks_t *blocks, int rank)
{
    return blocks->displs == NULL ? (ptrdiff_t) ((size_t) rank * blocks->count)
                                  : blocks->displs[rank];
}

/*
 * Starts a call whose bytes travel, because ranks may describe its blocks by different types. `place`
 * says of what length the blocks are, and where they lie; its error refuses the request.
 */
typedef int (*mca_coll_flash_place_t)(mca_coll_flash_request_t *request,
                                      const mca_coll_flash_arguments_t *arguments,
                                      flash_op_params_t *params);
int mca_coll_flash_start_bytes(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                               const mca_coll_flash_arguments_t *arguments,
                               mca_coll_flash_place_t place, ompi_request_t **request);

/* MPI_Igather, MPI_Igatherv; MPI_Iscatter, MPI_Iscatterv. A block without elements travels in no message. */
int mca_coll_flash_start_gather(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                const mca_coll_flash_arguments_t *arguments,
                                mca_coll_flash_path_t path, ompi_request_t **request);
int mca_coll_flash_start_scatter(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                 const mca_coll_flash_arguments_t *arguments,
                                 mca_coll_flash_path_t path, ompi_request_t **request);

#endif /* COLL_FLASH_PACKED_H */
