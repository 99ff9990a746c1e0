/*
 * test_gatherv.c: MPI_Igatherv, MPI_Iscatterv and their persistent forms: blocks of any length, from none
 * to those that flash takes, each root, types that differ from rank to rank, in place, and ranks that lack
 * their buffer.
 *
 * Each rank works out what its buffers must hold in the end, gaps and guards included, and compares all
 * of it. What MPI says is significant at the root alone, or not in place, is nothing that could be used.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include <mpix_flash.h>

#include "chain.h"
#include "choice.h"
#include "pvars.h"
#include "unequal.h"

static unsigned salts; /* alike on all ranks, which run the same calls */

/* Both calls, plain or persistent, in place or not. */
static void run_forms(int signature, int all_way, int one_way, unequal_shape_t shape, int units,
                      int root)
{
    for (int form = 0; form < 8; form++) {
        unequal_t call = {.gathers = form % 2 == 0,
                          .shape = shape,
                          .units = units,
                          .root = root,
                          .persistent = form / 2 % 2 == 1,
                          .in_place = form >= 4,
                          .salt = ++salts};

        unequal_run(&call, signature, all_way, one_way);
    }
}

static void roots(void)
{
    static const int units[] = {0, 1, 3, 17, 700};

    for (int root = 0; root < world_size; root++) {
        for (size_t k = 0; k < LENGTH(units) * UNEQUAL_SHAPES; k++) {
            if (is_turn(k + (size_t) root)) {
                run_forms((int) (k + (size_t) root) % SIGNATURES, WAY_PREDEFINED, WAY_PREDEFINED,
                          (unequal_shape_t) (k % UNEQUAL_SHAPES), units[k / UNEQUAL_SHAPES], root);
            }
        }
    }
}

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int way = 1; way < WAYS; way++) {
            if (is_turn((size_t) (signature + way))) {
                run_forms(signature, way, WAY_PREDEFINED, UNEQUAL_MIXED, 3, way % world_size);
                run_forms(signature, WAY_PREDEFINED, way, UNEQUAL_MIXED, 500,
                          (way + 1) % world_size);
                run_forms(signature, way, way, UNEQUAL_SHORT, 500, (way + 2) % world_size);
            }
        }
    }
}

/* Each rank describes the data in its own way. */
static void signatures(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int units = 1, k = 0; units <= 1000; units *= 10, k++) {
            int root = (signature + k) % world_size;

            if (is_turn((size_t) (signature + k))) {
                run_forms(signature, UNEQUAL_OWN_WAY, UNEQUAL_OWN_WAY, UNEQUAL_MIXED, units, root);
                run_forms(signature, WAY_PREDEFINED, UNEQUAL_OWN_WAY, UNEQUAL_EMPTY, units, root);
            }
        }
    }
}

/* Blocks in several segments. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 1500000 : 400000;
    const int units = bytes / (TYPED_BASICS * 8) + 1;

    run_forms(SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED, UNEQUAL_MIXED, units, 0);
    run_forms(SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED, UNEQUAL_SHORT, units,
              world_size / 2);
    run_forms(SIGNATURE_DOUBLE, UNEQUAL_OWN_WAY, UNEQUAL_OWN_WAY, UNEQUAL_ALIKE, units / 5,
              world_size - 1);
}

/*
 * Calls in flight together, to and from all roots, with others of the fallback between them: an operation
 * that ranks count differently, or a call that the fallback has not had on each rank, gives another one's
 * data.
 */
static void many(void)
{
    enum { CALLS = 36, PATTERN = 1000 };
    unequal_t calls[CALLS];
    unequal_run_t runs[CALLS];
    MPI_Request requests[CALLS];
    int gathered[CALLS][UNEQUAL_RANKS], mine[CALLS];

    for (int k = 0; k < CALLS; k++) {
        calls[k] = (unequal_t){.gathers = k / UNEQUAL_SHAPES % 3 > 0,
                               .shape = (unequal_shape_t) (k % UNEQUAL_SHAPES),
                               .units = 90 + 10 * k,
                               .root = k % world_size,
                               .salt = ++salts};
        unequal_types(&calls[k], SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED);
        runs[k] = unequal_prepare(&calls[k], MPI_COMM_WORLD);
        unequal_start(&runs[k], 0);
        mine[k] = PATTERN * k + world_rank;
        MPI_Iallgather(&mine[k], 1, MPI_INT, gathered[k], 1, MPI_INT, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < CALLS; k++) {
        bool right = true;

        unequal_end(&runs[k], 0);
        for (int rank = 0; rank < world_size; rank++) {
            right &= gathered[k][rank] == PATTERN * k + rank;
        }
        check(right, "the allgather behind call %d of many is wrong", k);
        unequal_free(&runs[k]);
        typed_free(&calls[k].all);
        typed_free(&calls[k].one);
    }
}

/* The types and the communicator are freed as soon as the call has begun. */
static void lose_handles(unequal_t *call)
{
    unequal_run_t run;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    unequal_types(call, SIGNATURE_INT32, WAY_VECTOR, WAY_LONG_EXTENT);
    run = unequal_prepare(call, comm);
    unequal_start(&run, 0);
    typed_free(&call->all);
    typed_free(&call->one);
    MPI_Comm_free(&comm);
    unequal_end(&run, 0);
    if (call->persistent) {
        unequal_start(&run, 1);
        unequal_end(&run, 1);
    }
    unequal_free(&run);
}

/* Open MPI 4.1's own persistent requests do not keep their types: of these, only calls in which each
   rank has a long block. */
static void handles_gone(void)
{
    const char *components = getenv("OMPI_MCA_coll");
    bool by_flash = components != NULL && strcmp(components, "flash") == 0 && world_size > 1;

    for (int form = 0; form < (by_flash ? 4 : 2); form++) {
        lose_handles(&(unequal_t){.gathers = form % 2 == 0,
                                  .shape = form < 2 ? UNEQUAL_MIXED : UNEQUAL_ALIKE,
                                  .units = 3000,
                                  .root = world_size - 1,
                                  .persistent = form >= 2,
                                  .salt = ++salts});
    }
}

/* Communicators that have the same number, one after another: in the only call on each, other ranks have
   a long block. Those that have none count the communicator, too. */
static void communicators(void)
{
    for (int k = 0; k < 6 * world_size; k++) {
        unequal_t call = {.gathers = k % 2 == 0,
                          .shape = UNEQUAL_LONE,
                          .units = 700,
                          .root = k / 2 % world_size,
                          .persistent = k % 3 == 0,
                          .apart = true,
                          .salt = ++salts};

        unequal_run(&call, SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED);
    }
}

/* ------------------------------------------------------------ which blocks go how */

typedef struct paths {
    unsigned long long ring_calls, ring_bytes, fallback_calls, fallback_bytes;
} paths_t;

static bool goes_by_ring(bool gathers, size_t bytes)
{
    return bytes > 0 && choice_is("ring", gathers ? "gather" : "scatter",
                                  bytes * (size_t) world_size, world_size);
}

/* What a call adds to the counters: each block goes by its own length. */
static void expect(const unequal_t *call, paths_t *paths)
{
    size_t by_ring = 0, all = 0, unit = typed_unit_bytes(&call->all);
    bool any = false;

    for (int rank = 0; rank < world_size; rank++) {
        size_t bytes = (size_t) unequal_units(call, rank) * unit;
        bool flows = rank != call->root && goes_by_ring(call->gathers, bytes);

        if (world_rank == call->root || world_rank == rank) {
            any |= flows;
            by_ring += flows || rank == call->root ? bytes : 0;
            all += bytes;
        }
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
    for (int k = 0; k < 8 * UNEQUAL_SHAPES; k++) {
        unequal_t call = {.gathers = k % 2 == 0,
                          .shape = (unequal_shape_t) (k / 8),
                          .units = k % 4 < 2 ? 300 : 3,
                          .root = k / 3 % world_size,
                          .persistent = k % 8 == 1,
                          .in_place = k % 5 == 0,
                          .salt = ++salts};

        unequal_run(&call, SIGNATURE_INT64, WAY_PREDEFINED, WAY_PREDEFINED);
        typed_make(&call.all, SIGNATURE_INT64, WAY_PREDEFINED);
        expect(&call, &wanted);
        typed_free(&call.all);
    }
    for (size_t k = 0; k < LENGTH(names); k++) {
        *values[k] = pvar_count(handles[k]);
        pvar_free(&handles[k]);
    }
    check(wanted.ring_calls > 0 && wanted.fallback_calls > 0 && wanted.fallback_bytes > 0,
          "the costs do not have calls go both ways");
    check(memcmp(&wanted, &found, sizeof(found)) == 0,
          "%llu calls and %llu bytes by the ring, not %llu and %llu; %llu and %llu by the "
          "fallback, not %llu and %llu",
          found.ring_calls, found.ring_bytes, wanted.ring_calls, wanted.ring_bytes,
          found.fallback_calls, found.fallback_bytes, wanted.fallback_calls, wanted.fallback_bytes);
}

/* The length from which on blocks go by the ring, as it is told. */
static void check_explanation(bool gathers)
{
    const char *name = gathers ? "of MPI_Igatherv: " : "of MPI_Iscatterv: ";
    char text[1024];
    const char *line;
    size_t bytes = 0;

    check_class(
        MPIX_Flash_explain(gathers ? "gather" : "scatter", 1, world_size, 1, text, sizeof(text)),
        MPI_SUCCESS, "MPIX_Flash_explain");
    line = strstr(text, name);
    check(line != NULL &&
              sscanf(line + strlen(name), "ring for blocks of %zu bytes", &bytes) == 1 &&
              goes_by_ring(gathers, bytes) && !goes_by_ring(gathers, bytes - 1),
          "blocks of %zu bytes go by the ring, and shorter ones not? %s", bytes, text);
}

/* By costs alone: of what info keys say, the choice that is asked for knows nothing. */
static void paths(void)
{
    pvars_with(count_calls);
    check_explanation(true);
    check_explanation(false);
}

/* ------------------------------------------------------------ a rank refuses */

enum { MOST = 70000, MOST_RANKS = 8 };
static int64_t all_data[MOST_RANKS * MOST], one_data[MOST];
static bool gathering;

static int count_of(int rank, int count)
{
    return count - rank;
}

static int64_t element_of(int root, int rank, int k)
{
    return 1000000 * (int64_t) root + 100000 * rank + k;
}

static int start_lacking(int root, int count, bool lacks, MPI_Comm comm, MPI_Request *request)
{
    bool is_root = world_rank == root;
    int own = count_of(world_rank, count), counts[MOST_RANKS], displs[MOST_RANKS];
    int64_t *all = lacks && is_root ? NULL : all_data, *one = lacks && !is_root ? NULL : one_data;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = count_of(rank, count);
        displs[rank] = rank * MOST;
        for (int k = 0; k < counts[rank]; k++) {
            all_data[displs[rank] + k] = gathering ? -1 : element_of(root, rank, k);
        }
    }
    for (int k = 0; k < own; k++) {
        one_data[k] = gathering ? element_of(root, world_rank, k) : -1;
    }
    return gathering ? MPI_Igatherv(one, own, MPI_INT64_T, all, counts, displs, MPI_INT64_T, root,
                                    comm, request)
                     : MPI_Iscatterv(all, counts, displs, MPI_INT64_T, one, own, MPI_INT64_T, root,
                                     comm, request);
}

static bool is_right(int root, int count)
{
    bool right = true;

    for (int rank = 0; rank < world_size && gathering && world_rank == root; rank++) {
        for (int k = 0; k < count_of(rank, count); k++) {
            right &= all_data[rank * MOST + k] == element_of(root, rank, k);
        }
    }
    for (int k = 0; k < count_of(world_rank, count) && !gathering; k++) {
        right &= one_data[k] == element_of(root, world_rank, k);
    }
    return right;
}

/*
 * A root that gathers lacks the blocks of others alone, and a root that scatters is lacked by all
 * others.
 */
static void lack_buffers(int count)
{
    for (int form = 0; form < 2; form++) {
        gathering = form == 0;
        chain_refuse(gathering ? "Igatherv" : "Iscatterv", count, start_lacking, is_right,
                     world_size * (world_size - 1), false);
    }
}

static void no_buffer(void)
{
    lack_buffers(10);
    lack_buffers(MOST);
}

/* Where short blocks fall back: the call of the fallback's has nothing to move. */
static void no_long_buffer(void)
{
    lack_buffers(MOST);
}

TEST_PROGRAM(test_gatherv, MPI_THREAD_SINGLE, {"roots", roots}, {"types", types},
             {"signatures", signatures}, {"big", big}, {"many", many},
             {"handles_gone", handles_gone}, {"communicators", communicators}, {"paths", paths},
             {"no_buffer", no_buffer}, {"no_long_buffer", no_long_buffer});
