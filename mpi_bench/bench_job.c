/*
 * bench_job.c: what a benchmark wants to know of its job.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_job.h"

#include <mpix_flash.h>

#include "keep_libraries.h"

MPI_Comm bench_own_communicator(MPI_Comm comm)
{
    MPI_Comm own;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", "^flash");
    MPI_Comm_dup_with_info(comm, info, &own);
    MPI_Info_free(&info);
    return own;
}

bool bench_served(MPI_Comm comm, bool all)
{
    int flag = 0;

    MPIX_Flash_active(comm, &flag);
    MPI_Allreduce(MPI_IN_PLACE, &flag, 1, MPI_INT, all ? MPI_LAND : MPI_LOR, MPI_COMM_WORLD);
    return flag != 0;
}

int bench_count_hosts(int rank, int *least)
{
    MPI_Comm host;
    int host_rank, first;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &host_rank);
    MPI_Comm_size(host, least);
    MPI_Comm_free(&host);
    MPI_Allreduce(MPI_IN_PLACE, least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    first = host_rank == 0;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return first;
}
