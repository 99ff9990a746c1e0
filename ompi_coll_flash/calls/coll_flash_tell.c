/*
 * coll_flash_tell.c: which algorithm serves a call, and why: counted, and said in verbose lines.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_path.h"
#include "job/coll_flash_counters.h"

/* What counts the calls of an algorithm; the counter behind it, their bytes. */
static const mca_coll_flash_counter_t counters[FLASH_PATHS] = {
    [FLASH_FALLBACK] = FLASH_COUNT_FALLBACKS,
    [FLASH_RING] = FLASH_COUNT_RINGS,
    [FLASH_PAIRWISE] = FLASH_COUNT_PAIRWISE,
    [FLASH_RECDBL] = FLASH_COUNT_RECDBL,
    [FLASH_SHM] = FLASH_COUNT_SHM};

_Static_assert(FLASH_COUNT_RING_BYTES == FLASH_COUNT_RINGS + 1 &&
                   FLASH_COUNT_PAIRWISE_BYTES == FLASH_COUNT_PAIRWISE + 1 &&
                   FLASH_COUNT_SHM_BYTES == FLASH_COUNT_SHM + 1 &&
                   FLASH_COUNT_RECDBL_BYTES == FLASH_COUNT_RECDBL + 1 &&
                   FLASH_COUNT_FALLBACK_BYTES == FLASH_COUNT_FALLBACKS + 1 &&
                   FLASH_COUNT_PLAIN_BYTES == FLASH_COUNT_PLAIN + 1,
               "bytes are counted behind calls");

/* What a verbose line says of a reason, and what it counts as. */
static const struct {
    const char *text;
    mca_coll_flash_counter_t counter;
} reasons[FLASH_REASONS] = {
    [FLASH_COSTS_MORE] = {"the ring costs more", FLASH_COUNT_COST},
    [FLASH_COST_UNKNOWN] = {"the ring has no cost", FLASH_COUNT_COST},
    [FLASH_ON_ONE_NODE] = {"on one node, see on_node", FLASH_COUNT_ON_NODE},
    [FLASH_NOT_WANTED] = {"see algorithm", FLASH_COUNT_ALGORITHM},
    [FLASH_NOT_BLOCKING] = {"see blocking", FLASH_COUNT_ALGORITHM},
    [FLASH_NOT_COMMUTATIVE] = {"not a commutative operation", FLASH_COUNT_OPERATION},
    [FLASH_NOT_OF_REDUCTIONS] = {"not an operation for reductions", FLASH_COUNT_OPERATION},
    [FLASH_NOT_PREDEFINED] = {"not a predefined type", FLASH_COUNT_OPERATION},
    [FLASH_TYPE_WITH_GAPS] = {"a non-contiguous type", FLASH_COUNT_OPERATION},
    [FLASH_PERSISTENT_OP_IDS] = {"the communicator has too many persistent requests",
                                 FLASH_COUNT_PERSISTENT},
    [FLASH_TOO_MANY_RANKS] = {"too many ranks to exchange with", FLASH_COUNT_RANKS},
    [FLASH_MERGED] = {"merged", FLASH_COUNT_MERGED},
    [FLASH_IN_PLACE] = {"in place, where short blocks fall back", FLASH_COUNT_COST},
    [FLASH_NOT_SET_UP] = {"the set-up has ended without UCX", FLASH_COUNT_COMMUNICATOR},
    [FLASH_NOT_HELD] = {"UCX is opened by calls, and threads or components keep calls from waiting",
                        FLASH_COUNT_COMMUNICATOR},
    [FLASH_NOT_SERVED] = {"flash does not serve it", FLASH_COUNT_COMMUNICATOR},
    [FLASH_COUNTS_TOO_LARGE] = {"a block of 2 GiB, or an array of large counts",
                                FLASH_COUNT_LARGE}};

/* The paths, in verbose lines. */
static const char *const told[FLASH_PATHS] = {[FLASH_FALLBACK] = "falls back",
                                              [FLASH_RING] = "ring",
                                              [FLASH_SHM] = "shm",
                                              [FLASH_RECDBL] = "recdbl",
                                              [FLASH_PAIRWISE] = "pairwise"};

static void tell(const char *name, size_t bytes, ompi_communicator_t *comm, const char *path,
                 mca_coll_flash_counter_t calls, mca_coll_flash_reason_t reason)
{
    bool why = reason != FLASH_NO_REASON;

    mca_coll_flash_count(calls, 1);
    mca_coll_flash_count(calls + 1, bytes);
    if (calls == FLASH_COUNT_FALLBACKS || calls == FLASH_COUNT_PLAIN) {
        mca_coll_flash_count(reasons[reason].counter, 1);
    }
    FLASH_VERBOSE(2, "coll:flash: %s of %zu bytes on communicator %u: %s%s%s%s", name, bytes,
                  flash_compat_comm_id(comm), path, why ? " (" : "",
                  why ? reasons[reason].text : "", why ? ")" : "");
}

void mca_coll_flash_tell_path(const char *name, size_t bytes, ompi_communicator_t *comm,
                              mca_coll_flash_reason_t reason)
{
    bool ring = reason == FLASH_NO_REASON;

    tell(name, bytes, comm, ring ? told[FLASH_RING] : "plain collective",
         ring ? FLASH_COUNT_RINGS : FLASH_COUNT_PLAIN, reason);
}

void mca_coll_flash_tell_call(const mca_coll_flash_call_t *call, ompi_communicator_t *comm,
                              mca_coll_flash_path_t path, mca_coll_flash_reason_t reason)
{
    tell(call->name, call->bytes, comm, told[path], counters[path], reason);
}

void mca_coll_flash_tell_shared(const char *name, size_t by_ring, size_t rest,
                                ompi_communicator_t *comm)
{
    mca_coll_flash_count(FLASH_COUNT_RINGS, 1);
    mca_coll_flash_count(FLASH_COUNT_RING_BYTES, by_ring);
    mca_coll_flash_count(FLASH_COUNT_FALLBACK_BYTES, rest);
    FLASH_VERBOSE(2,
                  "coll:flash: %s of %zu bytes on communicator %u: %s (%zu bytes of short blocks "
                  "fall back)",
                  name, by_ring + rest, flash_compat_comm_id(comm), told[FLASH_RING], rest);
}

void mca_coll_flash_print_path(FILE *text, mca_coll_flash_path_t path,
                               mca_coll_flash_reason_t reason)
{
    bool why = reason != FLASH_NO_REASON;

    fprintf(text, "%s%s%s%s\n", told[path], why ? " (" : "", why ? reasons[reason].text : "",
            why ? ")" : "");
}
