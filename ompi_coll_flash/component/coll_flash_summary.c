/*
 * coll_flash_summary.c: in MPI_Finalize, on request (coll_flash_summary), a table of what the job's
 * processes have hidden and exposed, and of why calls did not use the ring.
 *
 * Before anything of MPI is taken down: by a function that Open MPI calls when MPI_Finalize begins.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"
#include "job/coll_flash_counters.h"

#include <stdio.h>
#include <stdlib.h>

/* What is told beside the counters. */
enum { UNDER_WAY = FLASH_COUNTERS, HIDDEN, EXPOSED, WAKEUPS, THREAD_TIME, VALUES };

static const struct {
    int value;
    const char *title;
    double unit;
    int digits;
    bool always; /* also where no rank has any */
} rows[] = {{FLASH_COUNT_RINGS, "calls by the ring", 1, 0, true},
            {FLASH_COUNT_RING_BYTES, "  their blocks, MiB", 0x1p20, 1, true},
            {FLASH_COUNT_CALLBACKS, "  their callbacks", 1, 0, false},
            {FLASH_COUNT_PAIRWISE, "calls pairwise", 1, 0, true},
            {FLASH_COUNT_PAIRWISE_BYTES, "  their blocks, MiB", 0x1p20, 1, false},
            {UNDER_WAY, "these in flight, s", 1, 3, true},
            {HIDDEN, "  of that hidden, s", 1, 3, true},
            {EXPOSED, "  of that exposed, s", 1, 3, true},
            {WAKEUPS, "progress thread: wake-ups", 1, 0, true},
            {THREAD_TIME, "progress thread: CPU time, s", 1, 3, true},
            {FLASH_COUNT_SHM, "calls by shared memory", 1, 0, true},
            {FLASH_COUNT_SHM_BYTES, "  their blocks, MiB", 0x1p20, 1, false},
            {FLASH_COUNT_RECDBL, "calls by recursive doubling", 1, 0, true},
            {FLASH_COUNT_RECDBL_BYTES, "  their blocks, MiB", 0x1p20, 1, false},
            {FLASH_COUNT_FALLBACKS, "calls by the fallback", 1, 0, true},
            {FLASH_COUNT_FALLBACK_BYTES, "  their blocks, MiB", 0x1p20, 1, false},
            {FLASH_COUNT_PLAIN, "extension's calls not overlapped", 1, 0, true},
            {FLASH_COUNT_PLAIN_BYTES, "  their blocks, MiB", 0x1p20, 1, false},
            {FLASH_COUNT_COST, "  why: the ring costs more", 1, 0, false},
            {FLASH_COUNT_ALGORITHM, "  why: algorithm names another", 1, 0, false},
            {FLASH_COUNT_ON_NODE, "  why: on one node (on_node)", 1, 0, false},
            {FLASH_COUNT_OPERATION, "  why: operation or type", 1, 0, false},
            {FLASH_COUNT_PERSISTENT, "  why: persistent requests", 1, 0, false},
            {FLASH_COUNT_RANKS, "  why: too many ranks", 1, 0, false},
            {FLASH_COUNT_MERGED, "  why: merged", 1, 0, false},
            {FLASH_COUNT_LARGE, "  why: large counts", 1, 0, false},
            {FLASH_COUNT_COMMUNICATOR, "  why: communicator not served", 1, 0, false}};

static void set_mine(double mine[VALUES])
{
    const flash_progress_t *progress = mca_coll_flash_job_progress();
    flash_times_t times = mca_coll_flash_job_times();

    for (int k = 0; k < FLASH_COUNTERS; k++) {
        mine[k] = (double) mca_coll_flash_counted((mca_coll_flash_counter_t) k);
    }
    mine[UNDER_WAY] = times.under_way;
    mine[EXPOSED] = times.exposed;
    mine[HIDDEN] = times.under_way - times.exposed;
    mine[WAKEUPS] = progress == NULL ? 0 : (double) flash_progress_wakeups(progress);
    mine[THREAD_TIME] = progress == NULL ? 0 : flash_progress_cpu_time(progress);
}

/* One write, so that nothing comes in between. */
static void print(const double least[VALUES], const double sum[VALUES], const double most[VALUES],
                  int ranks)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return;
    }
    fprintf(file, "coll/flash, %d ranks in MPI_COMM_WORLD %9s %12s %12s\n", ranks, "least", "mean",
            "most");
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        int value = rows[k].value, digits = rows[k].digits;
        double unit = rows[k].unit;

        if (rows[k].always || most[value] > 0) {
            fprintf(file, "  %-32s %12.*f %12.*f %12.*f\n", rows[k].title, digits,
                    least[value] / unit, digits > 0 ? digits : 1, sum[value] / ranks / unit, digits,
                    most[value] / unit);
        }
    }
    if (sum[UNDER_WAY] > 0) {
        fprintf(file, "  hidden: %.1f %%\n", 100 * sum[HIDDEN] / sum[UNDER_WAY]);
    } else {
        fprintf(file, "  nothing went by the ring or pairwise: nothing for flash to hide\n");
    }
    if (fclose(file) == 0) {
        fputs(text, stderr);
    }
    free(text);
}

/* All processes of the job are here, or will be. */
static void summarize(void)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;
    double mine[VALUES], least[VALUES], sum[VALUES], most[VALUES];

    set_mine(mine);
    if (flash_compat_allreduce(mine, least, VALUES, MPI_DOUBLE, MPI_MIN, world) == MPI_SUCCESS &&
        flash_compat_allreduce(mine, sum, VALUES, MPI_DOUBLE, MPI_SUM, world) == MPI_SUCCESS &&
        flash_compat_allreduce(mine, most, VALUES, MPI_DOUBLE, MPI_MAX, world) == MPI_SUCCESS &&
        ompi_comm_rank(world) == 0) {
        print(least, sum, most, ompi_comm_size(world));
    }
}

static ompi_hook_base_component_t hooks = {.hookm_mpi_finalize_top = summarize};

void mca_coll_flash_summary_open(void)
{
    flash_compat_hook(&hooks);
}

void mca_coll_flash_summary_close(void)
{
    flash_compat_unhook(&hooks);
}
