/*
 * test_alltoall.c: MPI_Ialltoall and its persistent form: types that differ from rank to rank,
 * lengths, in place.
 *
 * Each rank works out what its receive buffer must hold in the end, gaps and guards included, and
 * compares all of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "persistent.h"
#include "typed.h"

enum { CANARY = 0x5a, OWN_WAY = -1 };

typedef struct call {
    typed_t send, recv;
    int units; /* of a block */
    bool persistent, in_place;
    unsigned salt;
} call_t;

/* Tells the blocks apart: from that rank, to that rank. */
static int owner_of(int from, int to)
{
    return 64 * from + to;
}

/* Memory for all blocks of a side with a margin on both sides, all canaries. */
static unsigned char *make_buffer(const typed_t *typed, int units, size_t *bytes)
{
    size_t elements = (size_t) (world_size * units * typed->per_unit);

    *bytes = elements * (size_t) typed->extent + 2 * typed_margin(typed);
    return memset(get_memory(*bytes), CANARY, *bytes);
}

/* The blocks that leave this rank, or that arrive at it. */
static void write_blocks(const typed_t *typed, unsigned char *buffer, int units, bool leave,
                         unsigned salt)
{
    size_t elements = (size_t) (units * typed->per_unit);

    for (int rank = 0; rank < world_size; rank++) {
        typed_write(
            typed, buffer + typed_margin(typed) + (size_t) rank * elements * (size_t) typed->extent,
            elements, leave ? owner_of(world_rank, rank) : owner_of(rank, world_rank), salt);
    }
}

static void start(const call_t *call, const void *send, void *recv, MPI_Request *request)
{
    int sendcount = call->units * call->send.per_unit,
        recvcount = call->units * call->recv.per_unit;

    send = call->in_place ? MPI_IN_PLACE : send;
    if (!call->persistent) {
        MPI_Ialltoall(send, sendcount, call->send.type, recv, recvcount, call->recv.type,
                      MPI_COMM_WORLD, request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        MPI_Alltoall_init(send, sendcount, call->send.type, recv, recvcount, call->recv.type,
                          MPI_COMM_WORLD, MPI_INFO_NULL, request);
    }
    MPI_Start(request);
}

static void run(call_t *call, int signature, int send_way, int recv_way)
{
    size_t send_bytes, recv_bytes;
    unsigned char *send, *recv, *wanted;
    MPI_Request request = MPI_REQUEST_NULL;

    typed_make(&call->send, signature,
               send_way == OWN_WAY ? (world_rank + (int) call->salt) % WAYS : send_way);
    typed_make(&call->recv, signature,
               recv_way == OWN_WAY ? (3 * world_rank + (int) call->salt) % WAYS : recv_way);
    send = make_buffer(&call->send, call->units, &send_bytes);
    recv = make_buffer(&call->recv, call->units, &recv_bytes);
    wanted = make_buffer(&call->recv, call->units, &recv_bytes);
    for (unsigned round = 0; round < (call->persistent ? 3 : 1); round++) {
        unsigned salt = call->salt + round;

        write_blocks(&call->send, send, call->units, true, salt);
        write_blocks(&call->recv, wanted, call->units, false, salt);
        memset(recv, CANARY, recv_bytes);
        if (call->in_place) {
            write_blocks(&call->recv, recv, call->units, true, salt);
        }
        start(call, send + typed_margin(&call->send), recv + typed_margin(&call->recv), &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(memcmp(recv, wanted, recv_bytes) == 0,
              "signature %d, ways %d and %d, %d units%s%s, salt %u: wrong", signature, send_way,
              recv_way, call->units, call->in_place ? ", in place" : "",
              call->persistent ? ", persistent" : "", salt);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    typed_free(&call->send);
    typed_free(&call->recv);
    free(send);
    free(recv);
    free(wanted);
}

static void run_forms(int signature, int send_way, int recv_way, int units)
{
    static unsigned salt; /* alike on all ranks, which run the same calls */

    for (int form = 0; form < 4; form++) {
        call_t call = {
            .units = units, .persistent = form % 2 == 1, .in_place = form > 1, .salt = ++salt};

        run(&call, signature, send_way, recv_way);
    }
}

static void counts(void)
{
    static const int units[] = {0, 1, 2, 3, 17, 513};

    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (size_t k = 0; k < LENGTH(units); k++) {
            if (is_turn(k + (size_t) signature)) {
                run_forms(signature, WAY_PREDEFINED, WAY_PREDEFINED, units[k]);
            }
        }
    }
}

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int way = 1; way < WAYS; way++) {
            if (is_turn((size_t) (signature + way))) {
                run_forms(signature, way, way, 3);
                run_forms(signature, WAY_PREDEFINED, way, 1);
                run_forms(signature, way, WAY_PREDEFINED, 41);
            }
        }
    }
}

/* Each rank describes the data in its own way. */
static void signatures(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int units = 1, k = 0; units <= 1000; units *= 10, k++) {
            if (is_turn((size_t) (signature + k))) {
                run_forms(signature, OWN_WAY, OWN_WAY, units);
                run_forms(signature, WAY_PREDEFINED, OWN_WAY, units);
            }
        }
    }
}

/* Blocks in several segments. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 1500000 : 400000;
    const int units = bytes / (TYPED_BASICS * 8) + 1;

    run_forms(SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED, units);
    run_forms(SIGNATURE_DOUBLE, OWN_WAY, OWN_WAY, units / 5);
}

TEST_PROGRAM(test_alltoall, MPI_THREAD_SINGLE, {"counts", counts}, {"types", types},
             {"signatures", signatures}, {"big", big});
