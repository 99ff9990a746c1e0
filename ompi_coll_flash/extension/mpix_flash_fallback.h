/*
 * mpix_flash_fallback.h: the extension where flash's rings do not serve the communicator.
 *
 * The plain collective, what produces before it, and what consumes after it.
 * Nothing overlaps, everything is right. The arguments have been checked.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MPIX_FLASH_FALLBACK_H
#define MPIX_FLASH_FALLBACK_H

#include "calls/coll_flash_calls.h"

/* recvcounts == NULL: equal blocks of recvcount. */
int flash_fallback_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, int recvcount, const int recvcounts[],
                             const int displs[], MPI_Datatype recvtype,
                             const mca_coll_flash_compute_t *compute, MPI_Comm comm,
                             MPI_Request *request);

int flash_fallback_reduce_scatter(const mca_coll_flash_compute_t *compute, void *recvbuf,
                                  int recvcount, const int recvcounts[], MPI_Datatype datatype,
                                  MPI_Op op, MPI_Comm comm, MPI_Request *request);

/* These two reach no device's memory. */
int flash_fallback_allreduce(const mca_coll_flash_compute_t *compute, void *recvbuf, int count,
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
int flash_fallback_alltoall(const mca_coll_flash_compute_t *compute,
                            const mca_coll_flash_alltoall_t *arguments, MPI_Comm comm,
                            MPI_Request *request);

/* ------------------------------------------------------- what these have in common */

struct flash_fallback; /* see flash_fallback.h */

/* Without blocks. NULL: there is no memory. */
struct flash_fallback *flash_fallback_make_without(flash_kind_t kind,
                                                   const mca_coll_flash_compute_t *compute,
                                                   MPI_Datatype datatype, MPI_Comm comm);
/*
 * `first`: the first of the ranks' blocks in the schedule. counts == NULL: equal ones of `count`.
 */
void flash_fallback_set_blocks(struct flash_fallback *fallback, uint32_t first, int count,
                               const int counts[], const int displs[]);
/* Room for all blocks, as well aligned as malloc()'s. MPI_SUCCESS or MPI_ERR_NO_MEM. */
int flash_fallback_allocate_contribution(struct flash_fallback *fallback);
/* Has callbacks produce all; what they cannot, this rank takes part without. */
void flash_fallback_produce_or_miss(struct flash_fallback *fallback);
/* The same, where the user's memory is, and maybe in the order of a stream. */
void flash_fallback_produce_there(struct flash_fallback *fallback);
/*
 * These begin the communicator's own collectives. MPI_SUCCESS or an error class, which no error
 * handler has been called with.
 */
int flash_fallback_begin_collective(const mca_coll_flash_arguments_t *arguments, MPI_Comm comm,
                                    MPI_Request *request);
int flash_fallback_begin_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type,
                                   MPI_Op op, MPI_Comm comm, MPI_Request *request);
int flash_fallback_begin_alltoall(const mca_coll_flash_alltoall_t *arguments, MPI_Comm comm,
                                  MPI_Request *request);
/* With the collective begun, or not: `rc`. Has the operation then, and drops it where nothing began. */
int flash_fallback_begin_report(struct flash_fallback *fallback, int rc, MPI_Request *request);
/* Completes a collective that is under way, and tells the others whether this rank failed them. */
int flash_fallback_wait_and_report(MPI_Request *collective, int missing, MPI_Comm comm);

#endif /* MPIX_FLASH_FALLBACK_H */
