/*
 * bench_check.h: whether results are right, by values that no communication has touched.
 *
 * Each row of the result, times a fixed probe vector, must equal the same row of the product
 * (A B) worked out as A (B probe) from the definition of the elements (Freivalds' check). All
 * numbers are whole and small enough for the sums to be exact: equal means equal.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "bench_problem.h"

typedef struct bench_check {
    const bench_problem_t *problem;
    double *probe;    /* one for each column of the result */
    double *expected; /* AG: one for each of m rows; RS: one for each row of this rank's block */
} bench_check_t;

void bench_check_init(bench_check_t *check, const bench_problem_t *problem);
void bench_check_free(bench_check_t *check);

/*
 * AG: compares the rows that were gathered, and the rows that were computed. Their order is that
 * of `blocks`. RS: compares this rank's block of the sum. Each reports the first wrong row under
 * the name of `variant`, and returns whether all are right.
 */
bool bench_check_moved(const bench_check_t *check, const bench_blocks_t *blocks,
                       const char *variant);
bool bench_check_output(const bench_check_t *check, const bench_blocks_t *blocks,
                        const char *variant);
bool bench_check_result(const bench_check_t *check, const char *variant);

/* Whether the callbacks of the extension have seen each of m rows once. */
bool bench_check_callbacks(const bench_check_t *check, const char *variant);

#endif /* BENCH_CHECK_H */
