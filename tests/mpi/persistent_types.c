/*
 * persistent_types.c: see persistent_types.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "persistent_types.h"

#include "mpitest.h"
#include "persistent.h"

void persistent_types_run(int signature, int units, bool early)
{
    typed_t send, recv;
    size_t elements, margin, bytes;
    unsigned char *from, *to, *wanted;
    MPI_Datatype others[2];
    MPI_Request request;

    typed_make(&send, signature, (world_rank + signature) % WAYS);
    typed_make(&recv, signature, (3 * world_rank + units) % WAYS);
    elements = (size_t) (units * recv.per_unit);
    margin = typed_margin(&send) + typed_margin(&recv);
    bytes = (size_t) world_size * elements * (size_t) recv.extent + 2 * margin;
    from = get_memory((size_t) (units * send.per_unit) * (size_t) send.extent + 2 * margin);
    to = get_memory(bytes);
    wanted = get_memory(bytes);
    MPI_Allgather_init(from + margin, units * send.per_unit, send.type, to + margin, (int) elements,
                       recv.type, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (early) {
        typed_free(&send);
        typed_free(&recv);
        MPI_Type_contiguous(3, MPI_INT, &others[0]); /* take their memory if it is free */
        MPI_Type_contiguous(5, MPI_INT, &others[1]);
    }
    for (unsigned round = 1; round <= 3; round++) {
        memset(to, 0x5a, bytes);
        memset(wanted, 0x5a, bytes);
        typed_write(&send, from + margin, (size_t) (units * send.per_unit), world_rank, round);
        for (int rank = 0; rank < world_size; rank++) {
            typed_write(&recv, wanted + margin + (size_t) rank * elements * (size_t) recv.extent,
                        elements, rank, round);
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(memcmp(to, wanted, bytes) == 0, "signature %d, %d units: wrong in round %u",
              signature, units, round);
    }
    MPI_Request_free(&request);
    if (early) {
        MPI_Type_free(&others[0]);
        MPI_Type_free(&others[1]);
    } else {
        typed_free(&send);
        typed_free(&recv);
    }
    free(from);
    free(to);
    free(wanted);
}
