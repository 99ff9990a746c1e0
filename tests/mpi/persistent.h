/*
 * persistent.h: the persistent collectives by their names in MPI 4.0, where Open MPI has them as an
 * extension, too.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PERSISTENT_H
#define PERSISTENT_H

#include <mpi.h>

#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allgather_init            MPIX_Allgather_init
#define MPI_Allgatherv_init           MPIX_Allgatherv_init
#define MPI_Allreduce_init            MPIX_Allreduce_init
#define MPI_Alltoall_init             MPIX_Alltoall_init
#define MPI_Alltoallv_init            MPIX_Alltoallv_init
#define MPI_Bcast_init                MPIX_Bcast_init
#define MPI_Gather_init               MPIX_Gather_init
#define MPI_Gatherv_init              MPIX_Gatherv_init
#define MPI_Reduce_init               MPIX_Reduce_init
#define MPI_Reduce_scatter_init       MPIX_Reduce_scatter_init
#define MPI_Reduce_scatter_block_init MPIX_Reduce_scatter_block_init
#define MPI_Scatter_init              MPIX_Scatter_init
#define MPI_Scatterv_init             MPIX_Scatterv_init
#endif

#endif /* PERSISTENT_H */
