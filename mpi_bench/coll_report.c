/*
 * coll_report.c: see coll_report.h. First the columns of the OSU benchmarks, then flash's own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_report.h"

#include <math.h>

#include "bench_wire.h"

static const double us = 1e6; /* in a second */

/* Where a number is to stand: in the table always, with -f, with --floor, or where Open MPI's calls ran, too. */
typedef enum column_when { ALWAYS, FULL, FLOOR, OWN, OWN_FULL } column_when_t;

typedef struct column {
    const char *title;
    column_when_t when;
    double (*value)(const coll_job_t *job, const coll_row_t *row);
} column_t;

#define COLUMN(name, expression)                                                           \
    static double name(const coll_job_t *job, const coll_row_t *row)                       \
    {                                                                                      \
        const coll_times_t *flash = &row->times[COLL_FLASH], *own = &row->times[COLL_OWN]; \
                                                                                           \
        (void) job, (void) flash, (void) own;                                              \
        return expression;                                                                 \
    }

/*
 * The least that links take of which each sends at that rate: into some host come the blocks of all
 * ranks that are elsewhere, or what is broadcast; out of it go their sums; both of an allreduce. Of a
 * gather each host sends its own blocks alone, at the same time as all others: where links bound what
 * is sent alone (FLASH_LINK_BOTH is not set), the root receives at any rate.
 */
static double wire(const coll_job_t *job, const coll_row_t *row)
{
    double here = (double) job->least_ranks / job->nranks;
    double part = coll_operation.rooted                                 ? 1
                  : coll_operation.collects && !job->options->link_both ? here
                                                                        : 1 - here;
    bool twice = coll_operation.reduces && coll_operation.everywhere && !coll_operation.rooted;
    double bytes = (twice ? 2 : 1) * part * (double) row->total_bytes;

    if (job->hosts < 2 || job->options->link_rate <= 0) {
        return NAN;
    }
    return us * bytes / bench_payload_rate(job->options->link_rate, job->options->link_mtu);
}

/* Calls under computation. */
static double calls(const coll_job_t *job, const coll_row_t *row)
{
    (void) job;
    return row->iterations;
}

COLUMN(overall, us * flash->overall.median)
COLUMN(computation, us * flash->compute.median)
COLUMN(starting, us * flash->start.median)
COLUMN(testing, us * flash->test.median)
COLUMN(waiting, us * flash->wait.median)
COLUMN(alone, us * flash->alone.median)
COLUMN(alone_min, us * flash->alone.min)
COLUMN(alone_max, us * flash->alone.max)
COLUMN(overlap, coll_overlap(flash))
COLUMN(exposed, us *(flash->overall.median - flash->compute.median))
COLUMN(floor_exposed, us *(flash->floor.median - flash->compute.median))
COLUMN(wakeups, (double) row->flash.wakeups / calls(job, row))
COLUMN(switches,
       job->options->compute != COLL_SLEEP ? NAN : (double) row->flash.switches / calls(job, row))
COLUMN(thread_time, us * row->flash.thread_seconds / calls(job, row))
COLUMN(own_overall, us * own->overall.median)
COLUMN(own_compute, us * own->compute.median)
COLUMN(own_alone, us * own->alone.median)
COLUMN(own_overlap, coll_overlap(own))
COLUMN(own_blocking, us * row->times[COLL_BLOCKING].alone.median)
COLUMN(ratio, flash->alone.median / fmin(own->alone.median, row->times[COLL_BLOCKING].alone.median))

static const column_t columns[] = {
    {"Overall(us)", ALWAYS, overall},
    {"Compute(us)", ALWAYS, computation},
    {"Coll. Init(us)", FULL, starting},
    {"MPI_Test(us)", FULL, testing},
    {"MPI_Wait(us)", FULL, waiting},
    {"Pure Comm.(us)", ALWAYS, alone},
    {"Least Comm.(us)", FULL, alone_min},
    {"Most Comm.(us)", FULL, alone_max},
    {"Overlap(%)", ALWAYS, overlap},
    {"Exposed(us)", ALWAYS, exposed},
    {"Floor(us)", FLOOR, floor_exposed},
    {"Wire(us)", ALWAYS, wire},
    {"Wake-ups", FULL, wakeups},
    {"Switches", FULL, switches},
    {"Thread(us)", FULL, thread_time},
    {"Own overall", OWN, own_overall},
    {"Own compute", OWN_FULL, own_compute},
    {"Own overlap", OWN, own_overlap},
    {"Own comm.", OWN, own_alone},
    {"Own blocking", OWN, own_blocking},
    {"Comm./own", OWN, ratio},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static bool shown(const coll_job_t *job, const column_t *column, bool full)
{
    if (column->when == FLOOR) {
        return job->options->floor;
    }
    return (column->when == ALWAYS || column->when == OWN || full) &&
           (column->when < OWN || job->options->own);
}

/* Blocking calls that flash does not serve are not counted. */
static const char *path_of(const coll_job_t *job, const coll_row_t *row)
{
    return row->flash.ring > 0                                                        ? "ring"
           : row->flash.pairwise > 0                                                  ? "pairwise"
           : row->flash.shm > 0                                                       ? "shm"
           : row->flash.recdbl > 0                                                    ? "recdbl"
           : row->flash.fallback > 0 || (job->options->blocking && job->flash_serves) ? "fallback"
                                                                                      : "-";
}

static const char *const compute_texts[] = {[COLL_WORK] = "is work for the core",
                                            [COLL_CLOCK] = "keeps the core for a time",
                                            [COLL_SLEEP] = "sleeps"};

static void head_table(FILE *table, const coll_job_t *job)
{
    int i;

    fprintf(table, "# %s%s, %d rank%s on %d host%s, ", coll_operation.call,
            job->options->device ? " on CUDA devices" : "", job->nranks,
            job->nranks == 1 ? "" : "s", job->hosts, job->hosts == 1 ? "" : "s");
    if (job->options->alone) {
        fprintf(table, job->options->blocking ? "flash's blocking calls, alone\n" : "alone\n");
    } else {
        fprintf(table, "computation %s, %d calls of MPI_Test\n",
                compute_texts[job->options->compute], job->options->tests);
    }
    if (!job->flash_serves) {
        fprintf(table, "# NOTE: flash does not serve MPI_COMM_WORLD (add --mca coll flash)\n");
    }
    if (job->own_is_flash) {
        fprintf(table, "# NOTE: flash serves what should be Open MPI's own calls, too\n");
    }
    fprintf(table, "%-10s", "# Size");
    for (i = 0; i < COLUMNS; i++) {
        if (shown(job, &columns[i], job->options->full)) {
            fprintf(table, " %14s", columns[i].title);
        }
    }
    fprintf(table, "  Path\n");
}

void coll_report_head(FILE *table, FILE *csv, const coll_job_t *job)
{
    int i;

    if (table != NULL) {
        head_table(table, job);
        fflush(table);
    }
    if (csv != NULL) {
        fprintf(csv, "Call,Ranks,Hosts,Size,Iterations");
        for (i = 0; i < COLUMNS; i++) {
            if (shown(job, &columns[i], true)) {
                fprintf(csv, ",%s", columns[i].title);
            }
        }
        fprintf(csv, ",Path,Wrong%s\n", job->options->nsegments > 0 ? ",Segment" : "");
    }
}

static void print_cell(FILE *table, double value)
{
    if (isfinite(value)) {
        fprintf(table, " %14.2f", value);
    } else {
        fprintf(table, " %14s", "-");
    }
}

void coll_report_segment(FILE *table, const coll_job_t *job)
{
    if (table != NULL) {
        fprintf(table,
                job->segment == 0 ? "# segments as flash chooses\n" : "# segments of %d bytes\n",
                job->segment);
        fflush(table);
    }
}

void coll_report_row(FILE *table, FILE *csv, const coll_job_t *job, const coll_row_t *row)
{
    double value;
    int i;

    if (table != NULL) {
        fprintf(table, "%-10zu", row->bytes);
    }
    if (csv != NULL) {
        fprintf(csv, "%s,%d,%d,%zu,%d", coll_operation.call, job->nranks, job->hosts, row->bytes,
                row->iterations);
    }
    for (i = 0; i < COLUMNS; i++) {
        value = columns[i].value(job, row);
        if (table != NULL && shown(job, &columns[i], job->options->full)) {
            print_cell(table, value);
        }
        if (csv != NULL && shown(job, &columns[i], true)) {
            fprintf(csv, isfinite(value) ? ",%.3f" : ",", value);
        }
    }
    if (table != NULL) {
        fprintf(table, "  %s%s\n", path_of(job, row), row->wrong == 0 ? "" : "  WRONG");
        fflush(table);
    }
    if (csv != NULL) {
        fprintf(csv, ",%s,%ld", path_of(job, row), row->wrong);
        if (job->options->nsegments > 0) {
            fprintf(csv, ",%d", job->segment);
        }
        fprintf(csv, "\n");
        fflush(csv);
    }
}

void coll_report_end(FILE *table, const coll_job_t *job, long wrong)
{
    if (!job->options->check) {
        fprintf(table, "# results: not checked\n");
    } else if (wrong == 0) {
        fprintf(table, "# results: all right, checked on all ranks\n");
    } else {
        fprintf(table, "# results: %ld WRONG\n", wrong);
    }
}
