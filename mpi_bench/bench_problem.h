/*
 * bench_problem.h: the matrices of one operation, and the computation on their rows.
 *
 *   AG+GEMM  A (m x k) lies in row blocks on the ranks and is gathered; C = A B on each rank,
 *            with its own columns of B.
 *   GEMM+RS  each rank has its own columns of A and rows of B; C = sum of the ranks' A B is
 *            scattered in row blocks.
 *
 * A computation turns rows of `in_width` elements into as many rows of `out_width`:
 *
 *              gemm                    offload (a time that stands for an accelerator)
 *   AG         k -> n / N: a product   k -> 1: a few elements of the row, as a proof of arrival
 *   RS         k / N -> n: a product   n -> n: copies a contribution that was made before
 *
 * All values are small whole numbers that any rank can work out for any element, and all sums of
 * them are exact, so that results are compared for equality (bench_check.h).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_PROBLEM_H
#define BENCH_PROBLEM_H

#include <mpix_flash.h>

#include "bench_blocks.h"
#include "bench_options.h"

/* Data slicing into `count` slices: the collectives, and for RS its input in slice order. */
typedef struct bench_slicing {
    int count;
    bench_blocks_t *slices;
    void *input;
} bench_slicing_t;

/* A contribution that an accelerator was asked for. */
typedef struct bench_queued {
    const void *in;
    void *out;
    int rows;
    double end; /* of its computation */
    MPIX_Flash_handle handle;
} bench_queued_t;

/* As many as the extension leaves pending at most. */
enum { BENCH_MAX_QUEUED = 64 };

typedef struct bench_problem {
    const bench_options_t *options;
    bool allgather; /* else reduce-scatter */
    int rank, nranks;
    int m, n, k; /* of the whole product */
    int k_first; /* RS: the first of this rank's columns of A; AG: 0 */
    int n_first; /* AG: the first of this rank's columns of B; RS: 0 */
    int row;     /* elements of a row that travels: k for AG, n for RS */
    int in_width, out_width;
    MPI_Datatype type;
    size_t size;        /* of an element */
    double row_seconds; /* offload: the computation of a row */
    double device_idle; /* offload: when the accelerator has done all that it was given */
    bench_queued_t queued[BENCH_MAX_QUEUED]; /* offload: pending pieces; a ring buffer */
    unsigned queue_head, queue_tail;
    bool may_pend;         /* else the extension waits inside its call, without a ring */
    bench_blocks_t blocks; /* unsliced */
    bench_slicing_t *slicings;
    int nslicings;
    void *block;   /* AG: this rank's rows of A */
    void *moved;   /* AG: what the allgather receives (m rows); RS: what is sent (m rows) */
    void *ready;   /* RS: a valid contribution, for when communication is measured alone */
    void *input;   /* what computations without communication and RS read: m rows */
    void *b;       /* gemm */
    void *output;  /* AG: computed rows (m); RS: computed by computations without communication */
    void *result;  /* RS: this rank's block of the sum */
    int rows_seen; /* by the callbacks of the extension in their last run */
} bench_problem_t;

/* The matrices that values are taken from. */
typedef enum bench_matrix { BENCH_A = 1, BENCH_B, BENCH_CONTRIBUTION, BENCH_PROBE } bench_matrix_t;

/* A whole number from -2 to 2 (A, B), 1 to 7 (a contribution), odd to 2001 (a probe). */
double bench_element(bench_matrix_t matrix, int row, int column);

/* What a rank's contribution is multiplied by, so that one rank cannot stand in for another. */
int bench_weight(int rank);

/* Sets the shape. Returns what is wrong with it (the same on all ranks), or NULL. */
const char *bench_problem_shape(bench_problem_t *problem, const bench_options_t *options,
                                bool allgather, MPI_Comm comm);

/* Allocates and fills all buffers of a problem that has a shape. */
void bench_problem_init(bench_problem_t *problem);
void bench_problem_free(bench_problem_t *problem);

/* Makes whatever an earlier run left in the output buffers unusable. */
void bench_problem_poison(bench_problem_t *problem);

/* Row `row` of a buffer with rows of `width` elements. */
void *bench_row(const bench_problem_t *problem, const void *buffer, int row, int width);

/*
 * Computes `rows` rows, or has an accelerator compute them: in order, and without the host. Then
 * bench_launch() returns at once, and `in` must stay as it is. bench_compute() keeps the host: a
 * product that is to be reduced is there on return; of an allgather's rows one computation at most
 * is left waiting behind the one that runs. bench_compute_finish() waits for all of them.
 */
void bench_launch(bench_problem_t *problem, const void *in, void *out, int rows);
void bench_compute(bench_problem_t *problem, const void *in, void *out, int rows);
void bench_compute_finish(const bench_problem_t *problem);

/*
 * What flash's callbacks do, and return: a product is computed, an accelerator is asked for it. A
 * reduce-scatter produces, an allgather consumes.
 */
int bench_produce(bench_problem_t *problem, const void *in, const MPIX_Flash_block *block,
                  int rows);
int bench_consume(bench_problem_t *problem, const MPIX_Flash_block *block, void *out, int rows);
/* Waits for the oldest piece that the accelerator was asked for, and says that it is done. */
void bench_finish_queued(bench_problem_t *problem);
/* Until when that has nothing to do for it but wait. */
double bench_queued_due(const bench_problem_t *problem);

/* Sets the threads of the BLAS library. False if this library has no such setting. */
bool bench_compute_threads(int threads);

/* How many pieces flash cuts a block into. */
static inline int bench_pieces(const bench_problem_t *problem)
{
    return problem->allgather ? problem->options->gather_pieces : problem->options->reduce_pieces;
}

#endif /* BENCH_PROBLEM_H */
