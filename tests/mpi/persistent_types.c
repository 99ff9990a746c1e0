/*
 * persistent_types.c: see persistent_types.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "persistent_types.h"

#include "mpitest.h"
#include "persistent.h"

/* Blocks in elements of this rank's receive type. */
typedef struct layout {
    int *units, *counts, *displs;
    size_t elements; /* from the first to behind the last */
} layout_t;

static void make_layout(layout_t *layout, int units, bool unequal, const typed_t *recv)
{
    size_t bytes = (size_t) world_size * sizeof(int);
    int next = 0;

    *layout = (layout_t){get_memory(bytes), get_memory(bytes), get_memory(bytes), 0};
    for (int k = 0; k < world_size; k++) {
        int rank = unequal ? world_size - 1 - k : k;

        layout->units[rank] = !unequal ? units : rank % 3 == 1 ? 0 : units + 2 * rank;
        layout->counts[rank] = layout->units[rank] * recv->per_unit;
        layout->displs[rank] = next;
        next += layout->counts[rank] + unequal;
    }
    layout->elements = (size_t) next;
}

static void free_layout(layout_t *layout)
{
    free(layout->units);
    free(layout->counts);
    free(layout->displs);
}

static MPI_Request make_request(const typed_t *send, const void *from, const typed_t *recv,
                                void *to, const layout_t *layout, bool unequal)
{
    int count = layout->units[world_rank] * send->per_unit;
    MPI_Request request;

    if (unequal) {
        MPI_Allgatherv_init(from, count, send->type, to, layout->counts, layout->displs, recv->type,
                            MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    } else {
        MPI_Allgather_init(from, count, send->type, to, layout->counts[0], recv->type,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    }
    return request;
}

static void write_blocks(const typed_t *recv, unsigned char *to, const layout_t *layout,
                         unsigned round)
{
    for (int rank = 0; rank < world_size; rank++) {
        typed_write(recv, to + (size_t) layout->displs[rank] * (size_t) recv->extent,
                    (size_t) layout->counts[rank], rank, round);
    }
}

void persistent_types_run(int signature, int units, bool unequal, bool early)
{
    typed_t send, recv;
    layout_t layout;
    size_t sent, margin, bytes;
    unsigned char *from, *to, *wanted;
    MPI_Datatype others[2];
    MPI_Request request;

    typed_make(&send, signature, (world_rank + signature) % WAYS);
    typed_make(&recv, signature, (3 * world_rank + units) % WAYS);
    make_layout(&layout, units, unequal, &recv);
    sent = (size_t) (layout.units[world_rank] * send.per_unit);
    margin = typed_margin(&send) + typed_margin(&recv);
    bytes = layout.elements * (size_t) recv.extent + 2 * margin;
    from = get_memory(sent * (size_t) send.extent + 2 * margin);
    to = get_memory(bytes);
    wanted = get_memory(bytes);
    request = make_request(&send, from + margin, &recv, to + margin, &layout, unequal);
    if (early) {
        typed_free(&send);
        typed_free(&recv);
        MPI_Type_contiguous(3, MPI_INT, &others[0]); /* take their memory if it is free */
        MPI_Type_contiguous(5, MPI_INT, &others[1]);
    }
    for (unsigned round = 1; round <= 3; round++) {
        memset(to, 0x5a, bytes);
        memset(wanted, 0x5a, bytes);
        typed_write(&send, from + margin, sent, world_rank, round);
        write_blocks(&recv, wanted + margin, &layout, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(memcmp(to, wanted, bytes) == 0, "signature %d, %d units%s: wrong in round %u",
              signature, units, unequal ? ", unequal" : "", round);
    }
    MPI_Request_free(&request);
    if (early) {
        MPI_Type_free(&others[0]);
        MPI_Type_free(&others[1]);
    } else {
        typed_free(&send);
        typed_free(&recv);
    }
    free_layout(&layout);
    free(from);
    free(to);
    free(wanted);
}
