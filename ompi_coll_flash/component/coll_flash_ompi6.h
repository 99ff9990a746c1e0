/*
 * coll_flash_ompi6.h: what Open MPI 6 wants and its predecessors do not; never run, and its
 * newer calls only checked by syntax.
 *
 * The functions that the module takes over come with counts that may be larger than an int, and
 * arrays of counts that may hold such. A block of 2 GiB and more falls back, which is equal on all
 * ranks, and so is what comes in arrays of large counts, MPI_Iallgatherv_c for one: its ranks are
 * all to call that. What falls back there is in host memory, but for blocking calls, which are passed
 * on as they are, and not counted. And a module gives back what it took.
 *
 * coll_flash_ompi6.c has non-blocking calls and persistent requests, coll_flash_ompi6_rooted.c those that
 * have a root, coll_flash_ompi6_blocking.c blocking calls.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_OMPI6_H
#define COLL_FLASH_OMPI6_H

#include "calls/coll_flash_calls.h"

#if FLASH_LARGE_COUNTS

#include <limits.h>

static inline const mca_coll_flash_previous_t *flash_previous_of(mca_coll_base_module_t *base)
{
    return &((mca_coll_flash_module_t *) base)->previous;
}

static inline bool flash_fits_int(size_t count, MPI_Datatype type)
{
    size_t size;

    ompi_datatype_type_size(type, &size);
    return size == 0 || count <= INT_MAX / size;
}

static inline bool flash_arrays_are_small(flash_large_counts_t counts,
                                          const flash_large_displs_t *displs)
{
    return !ompi_count_array_is_64bit(counts) &&
           (displs == NULL || !ompi_disp_array_is_64bit(*displs));
}

/*
 * Whether a block is short enough, of blocks of all ranks; or an allreduce's vector, or a chain's one
 * block. One that is not is told of, and counted.
 */
bool flash_large_block_fits(const char *name, size_t count, MPI_Datatype type,
                            mca_coll_base_module_t *base);
bool flash_large_vector_fits(const char *name, size_t count, MPI_Datatype type,
                             mca_coll_base_module_t *base);
/* The same of arrays of counts and, unless it is NULL, of displacements. */
bool flash_large_arrays_fit(const char *name, flash_large_counts_t counts,
                            const flash_large_displs_t *displs, MPI_Datatype type,
                            mca_coll_base_module_t *base);
/* Tells of a call that does not fit, of so many elements, and counts it. False. */
bool flash_large_not_served(const char *name, size_t count, MPI_Datatype type,
                            mca_coll_base_module_t *base);
/*
 * MPI_SUCCESS, or MPI_ERR_BUFFER, which is explained: the host would read it. `op`: NULL, no reduction.
 */
int flash_large_refuse_devices(const void *sendbuf, const void *recvbuf, MPI_Op op);

/* More is empty, or does not match the block, which is found out. */
static inline flash_count_t flash_small_count(size_t count)
{
    return count > INT_MAX ? INT_MAX : (flash_count_t) count;
}

#endif

#endif /* COLL_FLASH_OMPI6_H */
