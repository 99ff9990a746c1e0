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

#endif /* MPIX_FLASH_FALLBACK_H */
