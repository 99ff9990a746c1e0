/*
 * bench_check.c: whether results are right.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a row of the operation's first matrix is multiplied by to give the expected number. */
static void make_weights(const bench_check_t *check, double *weights, int length)
{
    const bench_problem_t *problem = check->problem;
    int columns = problem->out_width;
    double total = 0;
    int i, j;

    if (problem->options->offload && problem->allgather) {
        memset(weights, 0, (size_t) length * sizeof(*weights));
        weights[0] += check->probe[0]; /* the three elements that the computation touches */
        weights[length / 2] += check->probe[0];
        weights[length - 1] += check->probe[0];
        return;
    }
    for (i = 0; i < problem->nranks; i++) {
        total += bench_weight(i);
    }
    for (i = 0; i < length; i++) {
        weights[i] = problem->options->offload ? total * check->probe[i] : 0;
        for (j = 0; j < columns && !problem->options->offload; j++) {
            weights[i] += check->probe[j] * bench_element(BENCH_B, i, problem->n_first + j);
        }
    }
}

void bench_check_init(bench_check_t *check, const bench_problem_t *problem)
{
    bool contribution = problem->options->offload && !problem->allgather;
    int length = contribution ? problem->n : problem->k;
    int first = problem->allgather ? 0 : problem->blocks.source[problem->rank];
    int rows = problem->allgather ? problem->m : problem->blocks.rank_rows[problem->rank];
    double *weights = bench_alloc((size_t) length, sizeof(*weights));
    int i, j;

    check->problem = problem;
    check->probe = bench_alloc((size_t) problem->out_width, sizeof(double));
    check->expected = bench_alloc((size_t) rows, sizeof(double));
    for (j = 0; j < problem->out_width; j++) {
        check->probe[j] = bench_element(BENCH_PROBE, 0, j);
    }
    make_weights(check, weights, length);
    for (i = 0; i < rows; i++) {
        check->expected[i] = 0;
        for (j = 0; j < length; j++) {
            check->expected[i] +=
                weights[j] *
                bench_element(contribution ? BENCH_CONTRIBUTION : BENCH_A, first + i, j);
        }
    }
    free(weights);
}

void bench_check_free(bench_check_t *check)
{
    free(check->probe);
    free(check->expected);
}

static double times_probe(const bench_check_t *check, const void *row)
{
    double sum = 0;
    int j;

    for (j = 0; j < check->problem->out_width; j++) {
        sum += check->probe[j] * (check->problem->options->is_double ? ((const double *) row)[j]
                                                                     : ((const float *) row)[j]);
    }
    return sum;
}

static void begin_report(const bench_check_t *check, const char *variant)
{
    fprintf(stderr, "flash_gemm: WRONG RESULT: %s, %s, rank %d: ",
            check->problem->allgather ? "AG+GEMM" : "GEMM+RS", variant, check->problem->rank);
}

/* `row` is the row of the whole matrix, `owner` the rank whose block it belongs to. */
static bool check_row(const bench_check_t *check, const void *data, double expected, int row,
                      int owner, const char *variant)
{
    double got = times_probe(check, data);

    if (got == expected) {
        return true;
    }
    begin_report(check, variant);
    fprintf(stderr, "row %d (of rank %d's block) of C times the probe is %.17g, should be %.17g\n",
            row, owner, got, expected);
    return false;
}

bool bench_check_moved(const bench_check_t *check, const bench_blocks_t *blocks,
                       const char *variant)
{
    const bench_problem_t *problem = check->problem;
    size_t bytes = (size_t) problem->row * problem->size;
    int i, j;

    for (i = 0; i < blocks->nranks; i++) {
        for (j = 0; j < blocks->rank_rows[i]; j++) {
            if (memcmp(bench_row(problem, problem->moved, blocks->stored[i] + j, problem->row),
                       bench_row(problem, problem->input, blocks->source[i] + j, problem->row),
                       bytes) != 0) {
                begin_report(check, variant);
                fprintf(stderr, "row %d (of rank %d's block) was not gathered right\n",
                        blocks->source[i] + j, i);
                return false;
            }
        }
    }
    return true;
}

bool bench_check_output(const bench_check_t *check, const bench_blocks_t *blocks,
                        const char *variant)
{
    const bench_problem_t *problem = check->problem;
    int i, j, row;

    for (i = 0; i < blocks->nranks; i++) {
        for (j = 0; j < blocks->rank_rows[i]; j++) {
            row = blocks->source[i] + j;
            if (!check_row(
                    check,
                    bench_row(problem, problem->output, blocks->stored[i] + j, problem->out_width),
                    check->expected[row], row, i, variant)) {
                return false;
            }
        }
    }
    return true;
}

bool bench_check_result(const bench_check_t *check, const char *variant)
{
    const bench_problem_t *problem = check->problem;
    int first = problem->blocks.source[problem->rank];
    int i;

    for (i = 0; i < problem->blocks.rank_rows[problem->rank]; i++) {
        if (!check_row(check, bench_row(problem, problem->result, i, problem->row),
                       check->expected[i], first + i, problem->rank, variant)) {
            return false;
        }
    }
    return true;
}

bool bench_check_callbacks(const bench_check_t *check, const char *variant)
{
    if (check->problem->rows_seen == check->problem->m) {
        return true;
    }
    begin_report(check, variant);
    fprintf(stderr, "the callbacks were given %d rows in all, should be %d\n",
            check->problem->rows_seen, check->problem->m);
    return false;
}
