/*
 * bench_problem.c: the matrices of one operation: shape, values, memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_problem.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SIDE = 2048, DEFAULT_ROW = 1024, WEIGHTS = 64 };

double bench_element(bench_matrix_t matrix, int row, int column)
{
    uint64_t x = (uint64_t) (uint32_t) row << 32 | (uint32_t) column;

    x = (x ^ (uint64_t) matrix * 0xA0761D6478BD642Fu) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
    x = (x ^ (x >> 29)) >> 33;
    switch (matrix) {
    case BENCH_CONTRIBUTION:
        return (double) (x % 7 + 1);
    case BENCH_PROBE:
        return (double) (2 * (x % 1001) + 1);
    default:
        return (double) (x % 5) - 2;
    }
}

int bench_weight(int rank)
{
    return rank % WEIGHTS + 1;
}

void *bench_row(const bench_problem_t *problem, const void *buffer, int row, int width)
{
    return (char *) buffer + (size_t) row * (size_t) width * problem->size;
}

/* --bytes sets the rows of a block; the options that are not given get their defaults. */
static void choose_shape(bench_problem_t *problem, const bench_options_t *options)
{
    size_t elements = options->block_bytes / problem->size;
    int side = DEFAULT_SIDE;
    size_t rows;

    if (options->block_bytes != 0) {
        side = elements > DEFAULT_ROW ? DEFAULT_ROW : (int) elements;
    }
    problem->m = options->m != 0 ? options->m : DEFAULT_SIDE;
    problem->n = options->n != 0 ? options->n : side;
    problem->k = options->k != 0 ? options->k : side;
    problem->row = problem->allgather ? problem->k : problem->n;
    if (options->block_bytes != 0 && problem->row > 0) {
        rows = elements / (size_t) problem->row * (size_t) problem->nranks;
        problem->m = rows > INT_MAX ? INT_MAX : (int) rows;
    }
}

static const char *find_misfit(const bench_problem_t *problem)
{
    long m = problem->m;

    if (problem->m == 0 || problem->row == 0) {
        return "--bytes is less than one row of the matrix that travels (-k for allgather, -n for "
               "reduce-scatter): give more bytes, or shorter rows";
    }
    if (m * problem->n > INT_MAX || m * problem->k > INT_MAX) {
        return "m x n or m x k exceeds the 2147483647 elements that MPI's counts can express: "
               "give smaller -m, -n, -k or --bytes";
    }
    if (problem->options->check && problem->k > 1 << 22 && !problem->options->is_double) {
        return "the check needs exact sums, which float has for -k up to 4194304 only: give "
               "--type=double or --no-check";
    }
    return NULL;
}

static void set_widths(bench_problem_t *problem)
{
    int n_end = bench_share_first(problem->n, problem->nranks, problem->rank + 1);
    int k_end = bench_share_first(problem->k, problem->nranks, problem->rank + 1);

    /* The product is cut along n for AG, along k for RS. */
    if (problem->allgather) {
        problem->n_first = bench_share_first(problem->n, problem->nranks, problem->rank);
    } else {
        problem->k_first = bench_share_first(problem->k, problem->nranks, problem->rank);
    }
    if (problem->options->offload) {
        problem->in_width = problem->row;
        problem->out_width = problem->allgather ? 1 : problem->n;
    } else {
        problem->in_width = problem->allgather ? problem->k : k_end - problem->k_first;
        problem->out_width = problem->allgather ? n_end - problem->n_first : problem->n;
    }
}

const char *bench_problem_shape(bench_problem_t *problem, const bench_options_t *options,
                                bool allgather, MPI_Comm comm)
{
    const char *misfit;

    *problem = (bench_problem_t){.options = options, .allgather = allgather};
    MPI_Comm_rank(comm, &problem->rank);
    MPI_Comm_size(comm, &problem->nranks);
    problem->type = options->is_double ? MPI_DOUBLE : MPI_FLOAT;
    problem->size = options->is_double ? sizeof(double) : sizeof(float);
    choose_shape(problem, options);
    misfit = find_misfit(problem);
    if (misfit == NULL) {
        set_widths(problem);
        bench_blocks_init(&problem->blocks, problem->m, problem->row, problem->nranks, 1, 0);
    }
    return misfit;
}

static void store(const bench_problem_t *problem, void *buffer, size_t index, double value)
{
    if (problem->options->is_double) {
        ((double *) buffer)[index] = value;
    } else {
        ((float *) buffer)[index] = (float) value;
    }
}

/* Fills `rows` rows of `width` elements from element (row, column) of a matrix on. */
static void fill(const bench_problem_t *problem, void *buffer, bench_matrix_t matrix, int row,
                 int column, int rows, int width)
{
    double weight = matrix == BENCH_CONTRIBUTION ? bench_weight(problem->rank) : 1;
    size_t index = 0;
    int i, j;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < width; j++) {
            store(problem, buffer, index++, weight * bench_element(matrix, row + i, column + j));
        }
    }
}

static void *alloc_rows(const bench_problem_t *problem, int rows, int width)
{
    return bench_alloc((size_t) rows * (size_t) width, problem->size);
}

/* Copies the rows of the input into slice order. */
static void *sliced_input(const bench_problem_t *problem, const bench_slicing_t *slicing)
{
    void *input = alloc_rows(problem, problem->m, problem->in_width);
    const bench_blocks_t *slice;
    int s, i;

    for (s = 0; s < slicing->count; s++) {
        slice = &slicing->slices[s];
        for (i = 0; i < problem->nranks; i++) {
            memcpy(bench_row(problem, input, slice->stored[i], problem->in_width),
                   bench_row(problem, problem->input, slice->source[i], problem->in_width),
                   (size_t) slice->rank_rows[i] * (size_t) problem->in_width * problem->size);
        }
    }
    return input;
}

static void init_slicings(bench_problem_t *problem)
{
    const bench_options_t *options = problem->options;
    bench_slicing_t *slicing;
    int i, s;

    problem->nslicings = options->no_others ? 0 : options->nslices;
    problem->slicings = bench_alloc((size_t) problem->nslicings, sizeof(*problem->slicings));
    for (i = 0; i < problem->nslicings; i++) {
        slicing = &problem->slicings[i];
        *slicing = (bench_slicing_t){.count = options->slices[i]};
        slicing->slices = bench_alloc((size_t) slicing->count, sizeof(*slicing->slices));
        for (s = 0; s < slicing->count; s++) {
            bench_blocks_init(&slicing->slices[s], problem->m, problem->row, problem->nranks,
                              slicing->count, s);
        }
        if (!problem->allgather) {
            slicing->input = sliced_input(problem, slicing);
        }
    }
}

/* The input of all rows: A, this rank's columns of it, or its contribution; and its part of B. */
static void fill_input(bench_problem_t *problem)
{
    bool contribution = problem->options->offload && !problem->allgather;

    problem->input = alloc_rows(problem, problem->m, problem->in_width);
    fill(problem, problem->input, contribution ? BENCH_CONTRIBUTION : BENCH_A, 0,
         contribution ? 0 : problem->k_first, problem->m, problem->in_width);
    if (!problem->options->offload) {
        problem->b = alloc_rows(problem, problem->in_width, problem->out_width);
        fill(problem, problem->b, BENCH_B, problem->k_first, problem->n_first, problem->in_width,
             problem->out_width);
    }
}

void bench_problem_init(bench_problem_t *problem)
{
    int rows = problem->blocks.rank_rows[problem->rank];

    fill_input(problem);
    problem->moved = alloc_rows(problem, problem->m, problem->row);
    problem->output = alloc_rows(problem, problem->m, problem->out_width);
    if (problem->allgather) {
        problem->block = alloc_rows(problem, rows, problem->row);
        memcpy(
            problem->block,
            bench_row(problem, problem->input, problem->blocks.source[problem->rank], problem->row),
            (size_t) rows * (size_t) problem->row * problem->size);
    } else {
        problem->result = alloc_rows(problem, rows, problem->row);
        problem->ready = alloc_rows(problem, problem->m, problem->row);
        bench_compute(problem, problem->input, problem->ready, problem->m);
    }
    bench_problem_poison(problem); /* touches all pages, too */
    init_slicings(problem);
}

void bench_problem_free(bench_problem_t *problem)
{
    int i, s;

    for (i = 0; i < problem->nslicings; i++) {
        for (s = 0; s < problem->slicings[i].count; s++) {
            bench_blocks_free(&problem->slicings[i].slices[s]);
        }
        free(problem->slicings[i].slices);
        free(problem->slicings[i].input);
    }
    free(problem->slicings);
    bench_blocks_free(&problem->blocks);
    free(problem->block);
    free(problem->moved);
    free(problem->ready);
    free(problem->input);
    free(problem->b);
    free(problem->output);
    free(problem->result);
}

/* All bits set are a NaN in both types, which no comparison takes for a result. */
static void poison(const bench_problem_t *problem, void *buffer, int rows, int width)
{
    memset(buffer, 0xff, (size_t) rows * (size_t) width * problem->size);
}

void bench_problem_poison(bench_problem_t *problem)
{
    poison(problem, problem->moved, problem->m, problem->row);
    poison(problem, problem->output, problem->m, problem->out_width);
    if (!problem->allgather) {
        poison(problem, problem->result, problem->blocks.rank_rows[problem->rank], problem->row);
    }
    problem->rows_seen = 0;
}
