/*
 * bench_compute.c: the computation on rows: a product by BLAS, or a stand-in for an accelerator.
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

/* Gives the accelerator the next rows to compute: it works them off in order. Returns its begin. */
static double enqueue(bench_problem_t *problem, int rows)
{
    double now = bench_now();
    double begin = now > problem->device_idle ? now : problem->device_idle;

    problem->device_idle = begin + rows * problem->row_seconds;
    return begin;
}

static void copy(const bench_problem_t *problem, const void *in, void *out, int rows)
{
    memcpy(out, in, (size_t) rows * (size_t) problem->out_width * problem->size);
}

void bench_launch(bench_problem_t *problem, const void *in, void *out, int rows)
{
    if (!problem->options->offload) {
        multiply(problem, in, out, rows);
        return;
    }
    enqueue(problem, rows);
    if (problem->allgather) {
        touch(problem, in, out, rows); /* the input must be there when it is enqueued */
    } else {
        copy(problem, in, out, rows);
    }
}

/*
 * The copy is the CPU's, which a real accelerator would leave alone: not at the beginning, where
 * several emulated hosts with a burst of work each would keep one another's threads from starting.
 */
static void contribute(bench_problem_t *problem, const void *in, void *out, int rows)
{
    double begin = enqueue(problem, rows);

    bench_sleep_until((begin + problem->device_idle) / 2);
    copy(problem, in, out, rows);
    bench_compute_finish(problem);
}

void bench_compute(bench_problem_t *problem, const void *in, void *out, int rows)
{
    double before = problem->device_idle;

    if (problem->options->offload && !problem->allgather) {
        contribute(problem, in, out, rows);
    } else {
        bench_launch(problem, in, out, rows);
        bench_sleep_until(before);
    }
}

static const bench_queued_t *oldest(const bench_problem_t *problem)
{
    return &problem->queued[problem->queue_head % BENCH_MAX_QUEUED];
}

double bench_queued_due(const bench_problem_t *problem)
{
    const bench_queued_t *queued = oldest(problem);

    return problem->allgather ? queued->end : queued->end - queued->rows * problem->row_seconds / 2;
}

void bench_finish_queued(bench_problem_t *problem)
{
    const bench_queued_t *queued = oldest(problem);

    bench_sleep_until(bench_queued_due(problem));
    problem->queue_head++;
    if (!problem->allgather) {
        copy(problem, queued->in, queued->out, queued->rows);
    }
    bench_sleep_until(queued->end);
    MPIX_Flash_complete(queued->handle, MPI_SUCCESS);
}

/* Pieces are the accelerator's until it has done with them. */
static int leave_pending(bench_problem_t *problem, const void *in, void *out, int rows,
                         MPIX_Flash_handle handle)
{
    problem->queued[problem->queue_tail++ % BENCH_MAX_QUEUED] = (bench_queued_t){
        .in = in, .out = out, .rows = rows, .end = problem->device_idle, .handle = handle};
    if (!problem->may_pend) {
        bench_finish_queued(problem);
    }
    return MPIX_FLASH_PENDING;
}

int bench_produce(bench_problem_t *problem, const void *in, const MPIX_Flash_block *block, int rows)
{
    if (!problem->options->offload) {
        multiply(problem, in, block->data, rows);
        return MPI_SUCCESS;
    }
    enqueue(problem, rows);
    return leave_pending(problem, in, block->data, rows, block->handle);
}

int bench_consume(bench_problem_t *problem, const MPIX_Flash_block *block, void *out, int rows)
{
    bench_launch(problem, block->data, out, rows);
    if (!problem->options->offload) {
        return MPI_SUCCESS;
    }
    return leave_pending(problem, block->data, out, rows, block->handle);
}

void bench_compute_finish(const bench_problem_t *problem)
{
    bench_sleep_until(problem->device_idle);
}
