/*
 * coll_flash_memory.h: the memory of a request's buffers.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_MEMORY_H
#define COLL_FLASH_MEMORY_H

#include "request/coll_flash_request.h"

struct flash_stager; /* see flash_stager.h */
struct flash_stager_order;

/* MPI_SUCCESS, or MPI_ERR_BUFFER: there is none. */
int mca_coll_flash_check_buffer(const void *address);
/* Whether it is a device's, so that the host must not touch it. */
bool mca_coll_flash_is_on_device(const void *address);
/* MPI_ERR_BUFFER, which this explains; of a type with gaps in such memory, for one. */
int mca_coll_flash_refuse_device(const char *reason);
int mca_coll_flash_refuse_gaps(void);
/*
 * Of buffers in such memory; NULL: not, or none. With `produces`, what the request's callback
 * produces is, too; with `awaits`, what it has written, wherever that is, is there when its stream
 * is done. MPI_SUCCESS, or an error that is explained.
 */
int mca_coll_flash_stage(mca_coll_flash_request_t *request, const void *input, const void *output,
                         bool produces, bool awaits);
/* A block of the output, in whatever allocation, is read before the operation begins. The same. */
int mca_coll_flash_cover(const mca_coll_flash_request_t *request, const void *block);
/* A callback has returned with that error, and left work in its stream. For flash_callback_fn. */
int mca_coll_flash_await_stream(const mca_coll_flash_request_t *request, const flash_piece_t *piece,
                                int error);
/* What copies to and from these. The same. */
int mca_coll_flash_open_stager(const void *input, const void *output,
                               const struct flash_stager_order *order,
                               struct flash_stager **stager);
/* Of one that is staged: completes the parameters. MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mca_coll_flash_find_scratch(const mca_coll_flash_request_t *request, flash_op_params_t *params);
/* Copies a result to the memory of such an operation, or another one's. */
int mca_coll_flash_copy_back(const mca_coll_flash_request_t *request, void *to, const void *from,
                             size_t size);
void mca_coll_flash_tell_device_failed(void);

#endif /* COLL_FLASH_MEMORY_H */
