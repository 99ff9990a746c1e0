/*
 * pairs.c: see pairs.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "pairs.h"

#include "persistent.h"

/* Tells the blocks apart: from that rank, to that rank. */
static int owner_of(int from, int to)
{
    return 64 * from + to;
}

/* In place, as many come from a rank as go to it. */
int pairs_units(const call_t *call, int from, int to)
{
    int low = from < to ? from : to, high = from < to ? to : from;
    uint32_t drawn = call->in_place ? mix((uint32_t) low, (uint32_t) high, call->salt)
                                    : mix((uint32_t) from, (uint32_t) to, call->salt);
    int hub = (int) (call->salt % (unsigned) world_size),
        before = (hub + world_size - 1) % world_size;

    switch (call->shape) {
    case EQUAL:
        return call->units;
    case MIXED:
        return drawn % 4 == 0   ? 0
               : drawn % 4 == 1 ? 1 + (int) (drawn / 4 % 3)
               : drawn % 4 == 2 ? call->units
                                : (int) (drawn / 4 % (uint32_t) (call->units + 1));
    case LONE:
        return from == hub || (call->in_place && to == hub) ? call->units : 0;
    case PAIR:
        return (from == hub && to == before) || (call->in_place && to == hub && from == before)
                   ? call->units
                   : 0;
    case OWN:
        return from == to ? call->units : 0;
    default:
        return to == (from + 1) % world_size || (call->in_place && from == (to + 1) % world_size)
                   ? call->units
                   : 1;
    }
}

/* From the last rank's block on to the first one's, with an element between two. */
side_t pairs_side(const call_t *call, const typed_t *typed, bool leave)
{
    side_t side = {.elements = 0};

    for (int rank = world_size - 1; rank >= 0; rank--) {
        int units =
            leave ? pairs_units(call, world_rank, rank) : pairs_units(call, rank, world_rank);

        side.displs[rank] = side.elements + 1;
        side.counts[rank] = units * typed->per_unit;
        side.elements += 1 + side.counts[rank];
    }
    return side;
}

/* Memory for all blocks of a side with a margin on both sides, all canaries. */
unsigned char *pairs_buffer(const typed_t *typed, const side_t *side, size_t *bytes)
{
    *bytes = (size_t) (side->elements + 1) * (size_t) typed->extent + 2 * typed_margin(typed);
    return memset(get_memory(*bytes), PAIRS_CANARY, *bytes);
}

/* The blocks that leave this rank, or that arrive at it. */
void pairs_write(const typed_t *typed, const side_t *side, unsigned char *buffer, bool leave,
                 unsigned salt)
{
    for (int rank = 0; rank < world_size; rank++) {
        typed_write(typed,
                    buffer + typed_margin(typed) + (ptrdiff_t) side->displs[rank] * typed->extent,
                    (size_t) side->counts[rank],
                    leave ? owner_of(world_rank, rank) : owner_of(rank, world_rank), salt);
    }
}

void pairs_start(const call_t *call, const side_t *from, const void *send, const side_t *to,
                 void *recv, MPI_Comm comm, MPI_Request *request)
{
    const int *counts = from->counts, *displs = from->displs;
    MPI_Datatype type = call->send.type;

    if (call->in_place) { /* MPI reads nothing of the send side */
        send = MPI_IN_PLACE;
        counts = displs = NULL;
        type = MPI_DATATYPE_NULL;
    }
    if (!call->persistent) {
        MPI_Ialltoallv(send, counts, displs, type, recv, to->counts, to->displs, call->recv.type,
                       comm, request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        MPI_Alltoallv_init(send, counts, displs, type, recv, to->counts, to->displs,
                           call->recv.type, comm, MPI_INFO_NULL, request);
    }
    MPI_Start(request);
}

void pairs_types(call_t *call, int signature, int send_way, int recv_way)
{
    typed_make(&call->send, signature,
               send_way == OWN_WAY ? (world_rank + (int) call->salt) % WAYS : send_way);
    typed_make(&call->recv, signature,
               recv_way == OWN_WAY ? (3 * world_rank + (int) call->salt) % WAYS : recv_way);
}

void pairs_run(call_t *call, int signature, int send_way, int recv_way)
{
    size_t send_bytes, recv_bytes;
    unsigned char *send, *recv, *wanted;
    side_t from, to, back;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm = MPI_COMM_WORLD;

    if (call->apart) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    pairs_types(call, signature, send_way, recv_way);
    from = pairs_side(call, &call->send, true);
    to = pairs_side(call, &call->recv, false);
    back = pairs_side(call, &call->recv, true);
    send = pairs_buffer(&call->send, &from, &send_bytes);
    recv = pairs_buffer(&call->recv, &to, &recv_bytes);
    wanted = pairs_buffer(&call->recv, &to, &recv_bytes);
    for (unsigned round = 0; round < (call->persistent ? 3 : 1); round++) {
        unsigned salt = call->salt + round;

        pairs_write(&call->send, &from, send, true, salt);
        pairs_write(&call->recv, &to, wanted, false, salt);
        memset(recv, PAIRS_CANARY, recv_bytes);
        if (call->in_place) {
            pairs_write(&call->recv, &back, recv, true, salt);
        }
        pairs_start(call, &from, send + typed_margin(&call->send), &to,
                    recv + typed_margin(&call->recv), comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        see_request(request);
        check(memcmp(recv, wanted, recv_bytes) == 0,
              "shape %d, signature %d, ways %d and %d, %d units%s%s, salt %u: wrong",
              (int) call->shape, signature, send_way, recv_way, call->units,
              call->in_place ? ", in place" : "", call->persistent ? ", persistent" : "", salt);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    if (call->apart) {
        MPI_Comm_free(&comm);
    }
    typed_free(&call->send);
    typed_free(&call->recv);
    free(send);
    free(recv);
    free(wanted);
}
