/*
 * bench_report.c: results as a table.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_report.h"

#include <math.h>
#include <string.h>

static const double ms = 1e3; /* in a second */

/* "-" for what is not a number, such as a share of nothing. */
static void print_cell(FILE *file, int width, int digits, double value)
{
    if (isfinite(value)) {
        fprintf(file, " %*.*f", width, digits, value);
    } else {
        fprintf(file, " %*s", width, "-");
    }
}

static double median(const bench_result_t *result, const char *name)
{
    return bench_result_find(result, name)->time.median;
}

static void print_link(FILE *file, const bench_result_t *result)
{
    const bench_link_t *link = &result->link;

    if (link->rate > 0) {
        fprintf(file,
                "  t_c from %s: %.6g MB/s x (%d - 52) / (%d + 14) = %.6g MB/s payload (TCP/IP "
                "headers with timestamps, Ethernet)\n",
                link->source, link->rate * 1e-6, link->mtu, link->mtu, link->payload * 1e-6);
    } else {
        fprintf(file, "  t_c measured: median time of a ring of MPI_Sendrecv of a block\n");
    }
}

static void print_computation(FILE *file, const bench_environment_t *environment,
                              const bench_result_t *result)
{
    const bench_problem_t *problem = &result->problem;

    if (environment->options->offload) {
        fprintf(file, "  computation: offload, %.3f ms a block of a stand-in for an accelerator\n",
                ms * problem->row_seconds * problem->blocks.max_rows);
    } else if (environment->threads_set) {
        fprintf(file, "  computation: gemm by BLAS, %d thread%s on each rank\n",
                environment->options->threads, environment->options->threads == 1 ? "" : "s");
    } else {
        fprintf(file, "  computation: gemm by BLAS, its own number of threads (not OpenBLAS)\n");
    }
}

/* A row marked flash or Open MPI that is not what its name says would deceive. */
static void print_warnings(FILE *file, const bench_environment_t *environment)
{
    if (!environment->flash_active) {
        fprintf(file,
                "  NOTE: flash does not serve MPI_COMM_WORLD: rows named flash show the "
                "fallback%s\n",
                environment->nranks == 1 ? " (one rank)" : " (add --mca coll flash)");
    }
    if (environment->own_is_flash) {
        fprintf(file, "  NOTE: flash serves the duplicate that should be without it: rows of Open "
                      "MPI's own calls show flash\n");
    }
}

static void print_header(FILE *file, const bench_environment_t *environment,
                         const bench_result_t *result)
{
    const bench_problem_t *problem = &result->problem;
    const bench_options_t *options = environment->options;

    fprintf(file, "%s: %d host%s, %d rank%s, %s, m x n x k = %d x %d x %d\n",
            problem->allgather ? "AllGather + GEMM" : "GEMM + ReduceScatter", environment->hosts,
            environment->hosts == 1 ? "" : "s", environment->nranks,
            environment->nranks == 1 ? "" : "s", options->is_double ? "double" : "float",
            problem->m, problem->n, problem->k);
    fprintf(file, "  block %zu bytes%s, %d piece%s to a block, median of %d iteration%s\n",
            result->block_bytes, problem->blocks.equal ? "" : " (the largest; unequal)",
            bench_pieces(problem), bench_pieces(problem) == 1 ? "" : "s", options->iterations,
            options->iterations == 1 ? "" : "s");
    print_computation(file, environment, result);
    fprintf(file, "  T_comp %.3f ms, T_split %.3f ms, T_comm %.3f ms (Open MPI, ",
            ms * median(result, "T_comp"), ms * median(result, "T_split"),
            ms * median(result, "T_comm"));
    if (!options->no_others) {
        fprintf(file, "non-blocking %.3f, ", ms * median(result, "T_comm nonblocking"));
    }
    fprintf(file, "flash %.3f)\n", ms * median(result, "T_comm flash"));
    fprintf(file, "  T_ring %.3f ms = t_g %.3f + %d x max(t_g, t_c %.3f)", ms * result->ring,
            ms * result->block_compute, problem->nranks - 1, ms * result->link.block_seconds);
    if (!problem->allgather) {
        fprintf(file, " + t_add %.3f", ms * result->addition);
    }
    fputc('\n', file);
    print_link(file, result);
    print_warnings(file, environment);
}

static void print_variants(FILE *file, const bench_result_t *result)
{
    const bench_measured_t *measured;
    int i;

    fprintf(file, "\n%-22s %11s %11s %10s %9s %10s %9s %10s\n", "variant", "T_total ms",
            "exposed ms", "exposed %", "of wire %", "E_overlap", "T/T_ring", "CPU ms");
    for (i = 0; i < result->ncases; i++) {
        measured = &result->cases[i];
        if (measured->what.kind != BENCH_VARIANT) {
            continue;
        }
        fprintf(file, "%-22s", measured->what.name);
        print_cell(file, 11, 3, ms * measured->time.median);
        print_cell(file, 11, 3, ms * measured->exposed);
        print_cell(file, 10, 2, measured->exposed_percent);
        print_cell(file, 9, 2, measured->wire_percent);
        print_cell(file, 10, 4, measured->e_overlap);
        print_cell(file, 9, 4, measured->over_ring);
        print_cell(file, 10, 3, ms * measured->cpu.median);
        fputc('\n', file);
    }
}

/* "host in MPI": the host waits there while an accelerator computes; else it makes no MPI call. */
static void print_plain(FILE *file, const bench_result_t *result)
{
    const bench_measured_t *measured;
    int i;

    fprintf(file, "\n%-22s %11s %11s %10s %9s %10s %20s\n", "independent compute", "T_total ms",
            "exposed ms", "exposed %", "of wire %", "OSU ovl %", "CPU ms");
    for (i = 0; i < result->ncases; i++) {
        measured = &result->cases[i];
        if (measured->what.kind != BENCH_PLAIN) {
            continue;
        }
        fprintf(file, "%-22s", measured->what.name);
        print_cell(file, 11, 3, ms * measured->time.median);
        print_cell(file, 11, 3, ms * measured->exposed);
        print_cell(file, 10, 2, measured->exposed_percent);
        print_cell(file, 9, 2, measured->wire_percent);
        print_cell(file, 10, 1, measured->osu_overlap);
        print_cell(file, 20, 3, ms * measured->cpu.median);
        fputc('\n', file);
    }
}

static const bench_measured_t *best_sliced(const bench_result_t *result)
{
    const bench_measured_t *best = NULL;
    int i;

    for (i = 0; i < result->ncases; i++) {
        if (result->cases[i].what.slicing != NULL &&
            (best == NULL || result->cases[i].exposed < best->exposed)) {
            best = &result->cases[i];
        }
    }
    return best;
}

static double hidden(const bench_measured_t *measured)
{
    return 100 - measured->exposed_percent;
}

static const char *plain_call(const bench_problem_t *problem)
{
    if (problem->allgather) {
        return problem->blocks.equal ? "MPI_Iallgather" : "MPI_Iallgatherv";
    }
    return problem->blocks.equal ? "MPI_Ireduce_scatter_block" : "MPI_Ireduce_scatter";
}

static void print_sentence(FILE *file, const bench_environment_t *environment,
                           const bench_result_t *result)
{
    const bench_measured_t *sliced = best_sliced(result);
    bool allgather = result->problem.allgather;

    if (environment->options->no_others) {
        fprintf(file, "\n");
        return;
    }
    if (environment->nranks == 1) {
        fprintf(file, "\n%s: one rank has nothing to communicate, hence nothing to hide.\n\n",
                allgather ? "AllGather" : "ReduceScatter");
        return;
    }
    fprintf(file,
            "\n%s: flash%s hid %.1f %% of %.1f ms of communication; Open MPI's own non-blocking "
            "call hid %.1f %%, slicing %.1f %% at best (%s). ",
            allgather ? "AllGather" : "ReduceScatter",
            environment->flash_active ? "" : " (its fallback)",
            hidden(bench_result_find(result, "flash")), ms * median(result, "T_comm"),
            hidden(bench_result_find(result, "nonblocking")), hidden(sliced), sliced->what.name);
    fprintf(file,
            "Under independent computation, a plain %s hid %.1f %% on flash, %.1f %% on "
            "Open MPI's own.\n\n",
            plain_call(&result->problem), hidden(bench_result_find(result, "plain call, flash")),
            hidden(bench_result_find(result, "plain call, Open MPI")));
}

void bench_report_result(FILE *file, const bench_environment_t *environment,
                         const bench_result_t *result)
{
    print_header(file, environment, result);
    print_variants(file, result);
    print_plain(file, result);
    print_sentence(file, environment, result);
    fflush(file);
}

void bench_report_end(FILE *file, const bench_environment_t *environment,
                      const bench_result_t *results, int count)
{
    long wrong = 0;
    int i;

    for (i = 0; i < count; i++) {
        wrong += results[i].wrong;
    }
    fprintf(file, "idle after use: %.3f ms CPU per second\n", ms * environment->idle_cpu_seconds);
    if (!environment->options->check) {
        fprintf(file, "results: not checked\n");
    } else if (wrong == 0) {
        fprintf(file, "results: all right, checked on all ranks\n");
    } else {
        fprintf(file, "results: WRONG in %ld checks, see the messages\n", wrong);
    }
    fflush(file);
}
