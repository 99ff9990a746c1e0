/*
 * coll_flash_costs.h: what a call costs by each algorithm: the time that an application loses to
 * it.
 *
 * A cost has four parts: a fixed time, a time for each other rank, one for each doubling of the
 * ranks, and one for each byte that a rank sends at least. mpi_bench/flash_tune measures non-blocking
 * calls while the application computes, on the CPU between nodes, off the CPU within a node, and
 * blocking calls alone, and fits the parts.
 *
 * All values are integers, so that all ranks make the same choice. The table is written when
 * parameters are registered, and by the agreement, both in MPI_Init.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_COSTS_H
#define COLL_FLASH_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/flash_schedule.h"

/* What serves a call. Of equal costs, the choice is the first one here. */
typedef enum mca_coll_flash_path {
    FLASH_FALLBACK, /* Open MPI's next component */
    FLASH_RING,
    FLASH_SHM,
    FLASH_RECDBL,
    FLASH_PAIRWISE, /* of reduce-scatters */
    FLASH_PATHS
} mca_coll_flash_path_t;

/* Not a path: the least cost decides. */
#define FLASH_AUTO FLASH_PATHS

/* "fallback", "ring", ...; of FLASH_AUTO "auto". */
extern const char *const mca_coll_flash_path_names[FLASH_PATHS + 1];

/* The kinds of calls that have costs: up to FLASH_SCATTER. */
#define FLASH_COST_KINDS (FLASH_SCATTER + 1)

/*
 * The calls that have rows of their own: those of each kind, and the same kinds' blocking calls. A
 * blocking call costs its time alone: the application computes nothing meanwhile.
 */
#define FLASH_COST_CALLS (2 * FLASH_COST_KINDS)

static inline size_t mca_coll_flash_cost_call(flash_kind_t kind, bool blocking)
{
    return (size_t) kind + (blocking ? FLASH_COST_KINDS : 0);
}

/* "allgather", ..., "blocking_allgather", ..., by mca_coll_flash_cost_call(). */
extern const char *const mca_coll_flash_call_names[FLASH_COST_CALLS];

/* The most ranks of a call. */
#define FLASH_COST_RANKS (1 << 21)

/* More than any cost: the table has no row for it, or leaves the call out. */
#define FLASH_NO_COST UINT64_MAX

/*
 * In nanoseconds; `call`: of mca_coll_flash_cost_call(); `bytes`: of all ranks' blocks together, or
 * of an allreduce's vector, a broadcast's or a reduce's block; `node`: all ranks share one.
 */
uint64_t mca_coll_flash_cost(bool node, size_t call, mca_coll_flash_path_t path, size_t bytes,
                             uint32_t ranks);
/* Whether some algorithm besides the fallback has a row for the call. */
bool mca_coll_flash_has_costs(bool node, size_t call);

/*
 * Reads the file that coll_flash_costs names. If it names none, the table is the built-in one;
 * likewise if the file cannot be read or has a line that is no row, and a message says why.
 */
void mca_coll_flash_costs_open(void);
/* The name of the file that the table in use was read from, or "built in". */
const char *mca_coll_flash_costs_source(void);
/*
 * Equal for equal tables: of the table in use, and of the built-in one, which differs between
 * builds.
 */
int64_t mca_coll_flash_costs_hash(void);
int64_t mca_coll_flash_costs_built_in(void);
/* Makes the built-in table the one in use: the ranks have found that theirs differ. */
void mca_coll_flash_costs_reset(void);

#endif /* COLL_FLASH_COSTS_H */
