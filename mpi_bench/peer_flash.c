/*
 * peer_flash.c: flash's extension, as much of it as the benchmarks of a collective need, for an MPI
 * that flash is not made for: it is never active.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

int MPIX_Flash_active(MPI_Comm comm, int *flag)
{
    (void) comm;
    *flag = 0;
    return MPI_SUCCESS;
}
