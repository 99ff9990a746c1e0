/*
 * bench_compute.c: the computation on rows: a product by BLAS, or a sleep.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include <cblas.h>

#include "bench_problem.h"
#include "bench_stats.h"

/* OpenBLAS has it, other implementations of <cblas.h> have not: hence weak. */
void openblas_set_num_threads(int threads) __attribute__((weak));

bool bench_compute_threads(int threads)
{
    if (openblas_set_num_threads == NULL) {
        return false;
    }
    openblas_set_num_threads(threads);
    return true;
}

/* CBLAS wants leading dimensions of 1 at least, and need not define an inner dimension of 0. */
static void multiply(const bench_problem_t *problem, const void *in, void *out, int rows)
{
    int inner = problem->in_width;
    int width = problem->out_width;

    if (rows == 0 || width == 0) {
        return;
    }
    if (inner == 0) {
        memset(out, 0, (size_t) rows * (size_t) width * problem->size);
    } else if (problem->options->is_double) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, width, inner, 1.0, in, inner,
                    problem->b, width, 0.0, out, width);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, width, inner, 1.0f, in, inner,
                    problem->b, width, 0.0f, out, width);
    }
}

static double load(const bench_problem_t *problem, const void *buffer, size_t index)
{
    return problem->options->is_double ? ((const double *) buffer)[index]
                                       : (double) ((const float *) buffer)[index];
}

/* The first, the middle and the last element of each row: little work, yet a proof of arrival. */
static void touch(const bench_problem_t *problem, const void *in, void *out, int rows)
{
    size_t width = (size_t) problem->in_width;
    double sum;
    int i;

    for (i = 0; i < rows; i++) {
        sum = load(problem, in, (size_t) i * width) +
              load(problem, in, (size_t) i * width + width / 2) +
              load(problem, in, (size_t) i * width + width - 1);
        if (problem->options->is_double) {
            ((double *) out)[i] = sum;
        } else {
            ((float *) out)[i] = (float) sum;
        }
    }
}

/*
 * Stands for an accelerator. An allgather's input must be there when it begins. The result of a
 * product that is to be reduced is copied halfway by the CPU, which a real accelerator would leave
 * alone: not at the beginning, where several emulated hosts with a burst of work each would keep
 * one another's threads from starting.
 */
static void offload(const bench_problem_t *problem, const void *in, void *out, int rows)
{
    double begin = bench_now(), seconds = rows * problem->row_seconds;

    if (problem->allgather) {
        touch(problem, in, out, rows);
    } else {
        bench_sleep_until(begin + seconds / 2);
        memcpy(out, in, (size_t) rows * (size_t) problem->out_width * problem->size);
    }
    bench_sleep_until(begin + seconds);
}

void bench_compute(const bench_problem_t *problem, const void *in, void *out, int rows)
{
    if (problem->options->offload) {
        offload(problem, in, out, rows);
    } else {
        multiply(problem, in, out, rows);
    }
}
