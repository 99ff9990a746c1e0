/*
 * test_alltoallv.c: MPI_Ialltoallv and its persistent form: blocks of any length, from none to those
 * that flash takes, on ranks that have no such block among others that do.
 *
 * Each rank works out what its receive buffer must hold in the end, gaps and guards included, and
 * compares all of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include <mpix_flash.h>

#include "blocking.h"
#include "chain.h"
#include "choice.h"
#include "pairs.h"
#include "pvars.h"

static unsigned salts; /* alike on all ranks, which run the same calls */

/*
 * Open MPI's in-place call may send wrong bytes where some blocks are empty and others not: it copies
 * a block to where the one before it is sent from. Such blocks are for flash's alone.
 */
static bool may_be_in_place(shape_t shape)
{
    const char *algorithm = getenv("OMPI_MCA_coll_flash_algorithm"),
               *components = getenv("OMPI_MCA_coll");
    bool by_flash = algorithm != NULL && strcmp(algorithm, "ring") == 0 && components != NULL &&
                    strcmp(components, "flash") == 0;

    return by_flash || shape == EQUAL || shape == NEIGHBOR;
}

static void run_forms(int signature, int send_way, int recv_way, shape_t shape, int units)
{
    for (int form = 0; form < (may_be_in_place(shape) ? 4 : 2); form++) {
        call_t call = {.shape = shape,
                       .units = units,
                       .persistent = form % 2 == 1,
                       .in_place = form > 1,
                       .salt = ++salts};

        pairs_run(&call, signature, send_way, recv_way);
    }
}

static void counts(void)
{
    static const int units[] = {0, 1, 3, 17, 700};

    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (size_t k = 0; k < LENGTH(units) * SHAPES; k++) {
            if (is_turn(k + (size_t) signature)) {
                run_forms(signature, WAY_PREDEFINED, WAY_PREDEFINED, (shape_t) (k % SHAPES),
                          units[k / SHAPES]);
            }
        }
    }
}

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int way = 1; way < WAYS; way++) {
            if (is_turn((size_t) (signature + way))) {
                run_forms(signature, way, way, MIXED, 3);
                run_forms(signature, WAY_PREDEFINED, way, MIXED, 500);
                run_forms(signature, way, WAY_PREDEFINED, NEIGHBOR, 500);
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
                run_forms(signature, OWN_WAY, OWN_WAY, MIXED, units);
                run_forms(signature, WAY_PREDEFINED, OWN_WAY, LONE, units);
            }
        }
    }
}

/* Blocks in several segments. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 1500000 : 400000;
    const int units = bytes / (TYPED_BASICS * 8) + 1;

    run_forms(SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED, MIXED, units);
    run_forms(SIGNATURE_DOUBLE, WAY_PREDEFINED, WAY_BACKWARDS, NEIGHBOR, units / 5);
}

/*
 * Calls in flight together, with others of the fallback between them: an operation that ranks count
 * differently, or a call that the fallback has not had on each rank, gives another one's data.
 */
static void many(void)
{
    enum { CALLS = 30, PATTERN = 1000 };
    static const shape_t shapes[] = {LONE, NEIGHBOR, MIXED, OWN, PAIR, EQUAL};
    call_t calls[CALLS];
    side_t from[CALLS], to[CALLS];
    unsigned char *send[CALLS], *recv[CALLS], *wanted[CALLS];
    size_t send_bytes, bytes[CALLS];
    MPI_Request requests[2 * CALLS];
    int gathered[CALLS][MOST_RANKS], mine[CALLS], ones[MOST_RANKS], places[MOST_RANKS];

    for (int rank = 0; rank < world_size; rank++) {
        ones[rank] = 1;
        places[rank] = rank;
    }
    for (int k = 0; k < CALLS; k++) {
        call_t *call = &calls[k];

        *call = (call_t){
            .shape = shapes[k % (int) LENGTH(shapes)], .units = 90 + 10 * k, .salt = ++salts};
        pairs_types(call, SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED);
        from[k] = pairs_side(call, &call->send, true);
        to[k] = pairs_side(call, &call->recv, false);
        send[k] = pairs_buffer(&call->send, &from[k], &send_bytes);
        recv[k] = pairs_buffer(&call->recv, &to[k], &bytes[k]);
        wanted[k] = pairs_buffer(&call->recv, &to[k], &bytes[k]);
        pairs_write(&call->send, &from[k], send[k], true, call->salt);
        pairs_write(&call->recv, &to[k], wanted[k], false, call->salt);
        requests[2 * k] = MPI_REQUEST_NULL;
        pairs_start(call, &from[k], send[k] + typed_margin(&call->send), &to[k],
                    recv[k] + typed_margin(&call->recv), MPI_COMM_WORLD, &requests[2 * k]);
        mine[k] = PATTERN * k + world_rank;
        MPI_Igatherv(&mine[k], 1, MPI_INT, gathered[k], ones, places, MPI_INT, 0, MPI_COMM_WORLD,
                     &requests[2 * k + 1]);
    }
    MPI_Waitall(2 * CALLS, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < CALLS; k++) {
        bool right = memcmp(recv[k], wanted[k], bytes[k]) == 0;

        for (int rank = 0; rank < world_size && world_rank == 0; rank++) {
            right &= gathered[k][rank] == PATTERN * k + rank;
        }
        check(right, "call %d of many is wrong", k);
        typed_free(&calls[k].send);
        typed_free(&calls[k].recv);
        free(send[k]);
        free(recv[k]);
        free(wanted[k]);
    }
}

/* The types and the communicator are freed as soon as the call has begun. */
static void lose_handles(call_t *call)
{
    size_t send_bytes, recv_bytes;
    unsigned char *send, *recv, *wanted;
    side_t from, to;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pairs_types(call, SIGNATURE_INT32, WAY_VECTOR, WAY_VECTOR);
    from = pairs_side(call, &call->send, true);
    to = pairs_side(call, &call->recv, false);
    send = pairs_buffer(&call->send, &from, &send_bytes);
    recv = pairs_buffer(&call->recv, &to, &recv_bytes);
    wanted = pairs_buffer(&call->recv, &to, &recv_bytes);
    pairs_write(&call->send, &from, send, true, call->salt);
    pairs_write(&call->recv, &to, wanted, false, call->salt);
    pairs_start(call, &from, send + typed_margin(&call->send), &to,
                recv + typed_margin(&call->recv), comm, &request);
    typed_free(&call->send);
    typed_free(&call->recv);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (call->persistent) {
        memset(recv, PAIRS_CANARY, recv_bytes);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        see_request(request);
        MPI_Request_free(&request);
    }
    check(memcmp(recv, wanted, recv_bytes) == 0,
          "shape %d%s, of a type and on a communicator that are gone: wrong", (int) call->shape,
          call->persistent ? ", persistent" : "");
    free(send);
    free(recv);
    free(wanted);
}

/* Open MPI 4.1's own persistent requests do not keep their types: of these, only calls in which each
   rank has a long block. */
static void handles_gone(void)
{
    const char *components = getenv("OMPI_MCA_coll");
    bool by_flash = components != NULL && strcmp(components, "flash") == 0 && world_size > 1;

    lose_handles(&(call_t){.shape = NEIGHBOR, .units = 700, .salt = ++salts});
    lose_handles(&(call_t){.shape = MIXED, .units = 700, .salt = ++salts});
    if (by_flash) {
        lose_handles(
            &(call_t){.shape = NEIGHBOR, .units = 700, .persistent = true, .salt = ++salts});
    }
}

/* Communicators that have the same number, one after another: in the only call on each, other ranks have
   a long block. Those that have none count the communicator, too. */
static void communicators(void)
{
    for (int k = 0; k < 4 * world_size; k++) {
        lose_handles(&(call_t){.shape = PAIR, .units = 700, .salt = ++salts});
    }
    for (int k = 0; k < 4 * world_size; k++) {
        call_t call = {
            .shape = PAIR, .units = 700, .persistent = true, .apart = true, .salt = ++salts};

        pairs_run(&call, SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED);
    }
}

/* ------------------------------------------------------------ which blocks go how */

typedef struct paths {
    unsigned long long ring_calls, ring_bytes, fallback_calls, fallback_bytes;
} paths_t;

static const char *name_of_costs(void)
{
    return calls_block() ? "blocking_alltoall" : "alltoall";
}

static bool goes_by_ring(size_t bytes)
{
    return bytes > 0 && choice_is("ring", name_of_costs(), bytes * (size_t) world_size, world_size);
}

/* What a call adds to the counters: each block goes by its own length. A blocking call that falls back is
   not counted. */
static void expect(const call_t *call, paths_t *paths)
{
    size_t unit = typed_unit_bytes(&call->recv), by_ring = 0, all = 0;
    bool any = false;

    for (int rank = 0; rank < world_size; rank++) {
        size_t arrives = (size_t) pairs_units(call, rank, world_rank) * unit;
        size_t leaves = (size_t) pairs_units(call, world_rank, rank) * unit;

        any |= rank != world_rank && (goes_by_ring(arrives) || goes_by_ring(leaves));
        by_ring += rank == world_rank || goes_by_ring(arrives) ? arrives : 0;
        all += arrives;
    }
    if (!any && calls_block()) {
        return;
    }
    by_ring = any ? by_ring : 0;
    paths->ring_calls += any;
    paths->ring_bytes += by_ring;
    paths->fallback_calls += !any;
    paths->fallback_bytes += all - by_ring;
}

static void count_calls(void)
{
    static const char *const names[] = {"coll_flash_ring_calls", "coll_flash_ring_bytes",
                                        "coll_flash_fallback_calls", "coll_flash_fallback_bytes"};
    MPI_T_pvar_handle handles[LENGTH(names)];
    paths_t wanted = {0}, found;
    unsigned long long *const values[] = {&found.ring_calls, &found.ring_bytes,
                                          &found.fallback_calls, &found.fallback_bytes};

    for (size_t k = 0; k < LENGTH(names); k++) {
        handles[k] = pvar_of(names[k], MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    }
    for (int k = 0; k < 2 * SHAPES; k++) {
        call_t call = {.shape = (shape_t) (k / 2),
                       .units = k % 2 == 0 ? 300 : 3,
                       .persistent = k % 4 == 1 && !calls_block(),
                       .salt = ++salts};

        pairs_run(&call, SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED);
        typed_make(&call.recv, SIGNATURE_INT64, WAY_PREDEFINED);
        expect(&call, &wanted);
        typed_free(&call.recv);
    }
    for (size_t k = 0; k < LENGTH(names); k++) {
        *values[k] = pvar_count(handles[k]);
        pvar_free(&handles[k]);
    }
    check(wanted.ring_calls > 0 && (wanted.fallback_calls > 0 || calls_block()) &&
              wanted.fallback_bytes > 0,
          "the costs do not have calls go both ways");
    check(memcmp(&wanted, &found, sizeof(found)) == 0,
          "%llu calls and %llu bytes by the ring, not %llu and %llu; %llu and %llu by the "
          "fallback, not %llu and %llu",
          found.ring_calls, found.ring_bytes, wanted.ring_calls, wanted.ring_bytes,
          found.fallback_calls, found.fallback_bytes, wanted.fallback_calls, wanted.fallback_bytes);
}

/* The length from which on blocks go by the ring, as it is told. */
static void check_explanation(void)
{
    char text[1024];
    const char *line, *call = calls_block() ? "of MPI_Alltoallv" : "of MPI_Ialltoallv";
    size_t bytes = 0;

    check_class(MPIX_Flash_explain(name_of_costs(), 1, world_size, 1, text, sizeof(text)),
                MPI_SUCCESS, "MPIX_Flash_explain");
    line = strstr(text, call);
    check(line != NULL &&
              sscanf(line + strlen(call), ": ring for blocks of %zu bytes", &bytes) == 1 &&
              goes_by_ring(bytes) && !goes_by_ring(bytes - 1),
          "blocks of %zu bytes go by the ring, and shorter ones not? %s", bytes, text);
}

/* By costs alone: of what info keys say, the choice that is asked for knows nothing. */
static void paths(void)
{
    pvars_with(count_calls);
    check_explanation();
}

/* ------------------------------------------------------------ a rank refuses */

enum { MOST = 70000 };
static int64_t sent[MOST], received[MOST];

/* Each rank sends to the one that stands so far on. */
static int distance_of(int root)
{
    return 1 + root % (world_size - 1);
}

static int start_lacking(int root, int count, bool lacks, MPI_Comm comm, MPI_Request *request)
{
    int from[MOST_RANKS] = {0}, to[MOST_RANKS] = {0}, nowhere[MOST_RANKS] = {0};

    for (int k = 0; k < count; k++) {
        sent[k] = 1000000 * (int64_t) world_rank + k;
        received[k] = -1;
    }
    to[(world_rank + distance_of(root)) % world_size] = count;
    from[(world_rank + world_size - distance_of(root)) % world_size] = count;
    return MPI_Ialltoallv(lacks ? NULL : sent, to, nowhere, MPI_INT64_T, received, from, nowhere,
                          MPI_INT64_T, comm, request);
}

static bool is_right(int root, int count)
{
    int from = (world_rank + world_size - distance_of(root)) % world_size;
    bool right = true;

    for (int k = 0; k < count; k++) {
        right &= received[k] == 1000000 * (int64_t) from + k;
    }
    return right;
}

/* One rank lacks what it would send: the one that it sends to hears of that, and nobody else. */
static void no_buffer(void)
{
    chain_refuse("Ialltoallv", 1000, start_lacking, is_right, world_size * world_size, false);
    chain_refuse("Ialltoallv", MOST, start_lacking, is_right, world_size * world_size, false);
}

TEST_PROGRAM(test_alltoallv, MPI_THREAD_SINGLE, {"counts", counts}, {"types", types},
             {"signatures", signatures}, {"big", big}, {"many", many},
             {"handles_gone", handles_gone}, {"communicators", communicators}, {"paths", paths},
             {"no_buffer", no_buffer});
