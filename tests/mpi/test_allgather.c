/*
 * test_allgather.c: MPI_Iallgather and MPI_Iallgatherv, and with the same arguments the calls of
 * <mpix_flash.h>.
 *
 * Each rank works out what its receive buffer must hold in the end, gaps and guards included, and
 * compares all of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "typed.h"

enum { CANARY = 0x5a, NO_WAY = -1 };
enum { EQUAL = 0, UNEQUAL = 1, IN_PLACE = 2, COMPUTE = 4, FORMS = 8 }; /* bits of `form` */

/* One call, as this rank describes it. */
typedef struct call {
    typed_t send, recv;
    int form;
    int *units;            /* of each rank's block */
    int *displs, *counts;  /* in elements of recv */
    size_t elements, slot; /* of recv: the buffer's length, the furthest two blocks are apart */
    unsigned salt;
    unsigned char *recvbuf;
    MPI_Count consumed; /* elements */
} call_t;

/* ------------------------------------------------------------- the arguments */

/* Blocks in another order than the ranks', with room between them. */
static void place_blocks(call_t *call)
{
    int longest = 0;

    for (int rank = 0; rank < world_size; rank++) {
        longest = call->units[rank] > longest ? call->units[rank] : longest;
    }
    call->slot = (size_t) longest * (size_t) call->recv.per_unit;
    if (call->form & UNEQUAL) {
        call->slot += 1 + call->salt % 3;
    }
    for (int rank = 0; rank < world_size; rank++) {
        int place = call->form & UNEQUAL ? world_size - 1 - rank : rank;

        if ((call->form & UNEQUAL) && world_size > 2 && rank < 2) {
            place = world_size - 2 + rank; /* not quite the reverse */
        }
        call->counts[rank] = call->units[rank] * call->recv.per_unit;
        call->displs[rank] = place * (int) call->slot;
    }
    call->elements = (size_t) world_size * call->slot;
}

/* The ways of this rank: `way`, or one that only this rank has. */
static void make_call(call_t *call, int signature, int send_way, int recv_way, int form,
                      const int units[], unsigned salt)
{
    memset(call, 0, sizeof(*call));
    if (send_way == NO_WAY) {
        send_way = (int) ((unsigned) world_rank + salt) % WAYS;
    }
    if (recv_way == NO_WAY) {
        /* A consumer's elements are of equal size on all ranks. */
        int least = form & COMPUTE ? WAY_PREDEFINED + 1 : WAY_PREDEFINED;

        recv_way = least + (int) (3 * (unsigned) world_rank + salt / 2) % (WAYS - least);
    }
    typed_make(&call->send, signature, send_way);
    typed_make(&call->recv, signature, recv_way);
    call->form = form;
    call->salt = salt;
    call->units = get_memory(sizeof(int) * (size_t) world_size);
    call->counts = get_memory(sizeof(int) * (size_t) world_size);
    call->displs = get_memory(sizeof(int) * (size_t) world_size);
    memcpy(call->units, units, sizeof(int) * (size_t) world_size);
    place_blocks(call);
}

static void free_call(call_t *call)
{
    typed_free(&call->send);
    typed_free(&call->recv);
    free(call->units);
    free(call->counts);
    free(call->displs);
}

/* ----------------------------------------------------------------- the call */

/* Memory for `elements` of a type with a margin on both sides, all canaries. */
static unsigned char *make_buffer(const typed_t *typed, size_t elements, size_t *bytes)
{
    unsigned char *memory;

    *bytes = elements * (size_t) typed->extent + 2 * typed_margin(typed);
    memory = get_memory(*bytes);
    memset(memory, CANARY, *bytes);
    return memory;
}

static void write_block(const call_t *call, unsigned char *buffer, int rank)
{
    typed_write(&call->recv,
                buffer + typed_margin(&call->recv) +
                    (ptrdiff_t) call->displs[rank] * call->recv.extent,
                (size_t) call->counts[rank], rank, call->salt);
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    call_t *call = arg;
    const unsigned char *place =
        call->recvbuf +
        ((ptrdiff_t) call->displs[block->rank] + (ptrdiff_t) block->offset) * call->recv.extent;

    check(block->rank == world_rank || block->data == place, "block %d is not in its place",
          block->rank);
    check(typed_is(&call->recv, block->data, (size_t) block->offset, (size_t) block->count,
                   block->rank, call->salt),
          "block %d, elements from %lld on: wrong in a callback, form %d", block->rank,
          (long long) block->offset, call->form);
    call->consumed += block->count;
    return MPI_SUCCESS;
}

static void start_compute(call_t *call, const void *sendbuf, int sendcount, MPI_Request *request)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = (int) (call->salt % 4);
    hints.row = (MPI_Count) (call->salt % 3);
    call->consumed = 0;
    if (call->form & UNEQUAL) {
        MPIX_Iallgatherv_compute(sendbuf, sendcount, call->send.type, call->recvbuf, call->counts,
                                 call->displs, call->recv.type, consume, call, &hints,
                                 MPI_COMM_WORLD, request);
    } else {
        MPIX_Iallgather_compute(sendbuf, sendcount, call->send.type, call->recvbuf, call->counts[0],
                                call->recv.type, consume, call, &hints, MPI_COMM_WORLD, request);
    }
}

static void start(call_t *call, const void *sendbuf, MPI_Request *request)
{
    int sendcount = call->units[world_rank] * call->send.per_unit;

    if (call->form & COMPUTE) {
        start_compute(call, sendbuf, sendcount, request);
    } else if (call->form & UNEQUAL) {
        MPI_Iallgatherv(sendbuf, sendcount, call->send.type, call->recvbuf, call->counts,
                        call->displs, call->recv.type, MPI_COMM_WORLD, request);
    } else {
        MPI_Iallgather(sendbuf, sendcount, call->send.type, call->recvbuf, call->counts[0],
                       call->recv.type, MPI_COMM_WORLD, request);
    }
}

static void check_consumed(const call_t *call)
{
    MPI_Count all = 0;

    for (int rank = 0; rank < world_size; rank++) {
        all += call->recv.size > 0 ? call->counts[rank] : 0;
    }
    check(!(call->form & COMPUTE) || call->consumed == all, "callbacks for %lld elements of %lld",
          (long long) call->consumed, (long long) all);
}

static void run_call(call_t *call, const char *what)
{
    size_t send_bytes, recv_bytes, wrong = 0;
    size_t send_elements = (size_t) call->units[world_rank] * (size_t) call->send.per_unit;
    unsigned char *send = make_buffer(&call->send, send_elements, &send_bytes);
    unsigned char *recv = make_buffer(&call->recv, call->elements, &recv_bytes);
    unsigned char *wanted = make_buffer(&call->recv, call->elements, &recv_bytes);
    MPI_Request request;

    typed_write(&call->send, send + typed_margin(&call->send), send_elements, world_rank,
                call->salt);
    for (int rank = 0; rank < world_size; rank++) {
        write_block(call, wanted, rank);
    }
    if (call->form & IN_PLACE) {
        write_block(call, recv, world_rank);
    }
    call->recvbuf = recv + typed_margin(&call->recv);
    start(call, call->form & IN_PLACE ? MPI_IN_PLACE : send + typed_margin(&call->send), &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_consumed(call);
    if (memcmp(recv, wanted, recv_bytes) == 0) {
        wrong = recv_bytes;
    }
    while (wrong < recv_bytes && recv[wrong] == wanted[wrong]) {
        wrong++;
    }
    check(wrong == recv_bytes,
          "%s, form %d, own units %d, salt %u: byte %zu of %zu is %#x, not %#x", what, call->form,
          call->units[world_rank], call->salt, wrong, recv_bytes,
          wrong < recv_bytes ? recv[wrong] : 0, wrong < recv_bytes ? wanted[wrong] : 0);
    free(send);
    free(recv);
    free(wanted);
}

/* ------------------------------------------------------------------ the cases */

static unsigned next_salt(void)
{
    static unsigned salt;

    return ++salt; /* alike on all ranks, which run the same calls */
}

static void equal_blocks(int signature, int send_way, int recv_way, int units)
{
    int *all = get_memory(sizeof(int) * (size_t) world_size);
    call_t call;

    for (int rank = 0; rank < world_size; rank++) {
        all[rank] = units;
    }
    for (int form = 0; form < FORMS; form++) {
        make_call(&call, signature, send_way, recv_way, form, all, next_salt());
        run_call(&call, "equal blocks");
        free_call(&call);
    }
    free(all);
}

static void unequal_blocks(int signature, int send_way, int recv_way, int scale)
{
    int *all = get_memory(sizeof(int) * (size_t) world_size);
    call_t call;

    for (int round = 0; round < 2; round++) {
        for (int rank = 0; rank < world_size; rank++) {
            all[rank] = (rank + round) % 3 == 0 ? 0 : 1 + (rank * 7 + round) % 5 * scale;
        }
        for (int form = UNEQUAL; form < FORMS; form += IN_PLACE) {
            make_call(&call, signature, send_way, recv_way, form, all, next_salt());
            run_call(&call, "unequal blocks");
            free_call(&call);
        }
    }
    free(all);
}

static void counts(void)
{
    static const int units[] = {0, 1, 2, 3, 17, 513};

    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (size_t k = 0; k < LENGTH(units); k++) {
            if (is_turn(k + (size_t) signature)) {
                equal_blocks(signature, WAY_PREDEFINED, WAY_PREDEFINED, units[k]);
            }
        }
        if (!is_turn((size_t) signature)) {
            continue;
        }
        unequal_blocks(signature, WAY_PREDEFINED, WAY_PREDEFINED, 1);
        unequal_blocks(signature, WAY_PREDEFINED, WAY_PREDEFINED, 301);
    }
}

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int way = 1; way < WAYS; way++) {
            if (!is_turn((size_t) (signature + way))) {
                continue;
            }
            equal_blocks(signature, way, way, 3);
            equal_blocks(signature, WAY_PREDEFINED, way, 1);
            equal_blocks(signature, way, WAY_PREDEFINED, 41);
            unequal_blocks(signature, way, (way + 2) % WAYS, 11);
        }
    }
}

/* Each rank describes the data in its own way. */
static void signatures(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int units = 1, k = 0; units <= 1000; units *= 10, k++) {
            if (!is_turn((size_t) (signature + k))) {
                continue;
            }
            equal_blocks(signature, NO_WAY, NO_WAY, units);
            equal_blocks(signature, WAY_PREDEFINED, NO_WAY, units);
            unequal_blocks(signature, NO_WAY, NO_WAY, units);
        }
    }
}

/*
 * A block in several segments of the default length, and not a whole number of them; in fewer where
 * there are more ranks, of which each makes and compares all blocks.
 */
static void big(void)
{
    const int bytes = world_size <= 2 ? 1500000 : 300000;
    const int units = bytes / (TYPED_BASICS * 8) + 1;

    equal_blocks(SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED, units);
    equal_blocks(SIGNATURE_INT64, NO_WAY, NO_WAY, units);
    unequal_blocks(SIGNATURE_DOUBLE, NO_WAY, WAY_DISPLACED, units / 5);
}

TEST_PROGRAM(test_allgather, MPI_THREAD_SINGLE, {"counts", counts}, {"types", types},
             {"signatures", signatures}, {"big", big});
