/*
 * bench_blocks.h: how rows are spread over the ranks, and the collective that moves them.
 *
 * Row-major matrices of m rows; rank i owns a contiguous block of rows. Data slicing cuts each
 * block into slices and stores the rows in *slice order*: the first slice of all ranks' blocks in
 * rank order, then the second slice of all, and so on. So each slice is contiguous, is one
 * collective, and is one matrix product.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_BLOCKS_H
#define BENCH_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

/* The part of `total` that comes before share `index` of `shares` nearly equal ones. */
int bench_share_first(int total, int shares, int index);

/*
 * The rows that one collective moves: for each rank `rows` of its block. They are stored from row
 * `stored` on, in rank order, and are the rows from `source` on of the matrix.
 */
typedef struct bench_blocks {
    int nranks;
    bool equal;      /* all ranks have the same number of rows */
    int first, rows; /* of all ranks together: where they are stored, how many */
    int max_rows;    /* of one rank */
    int *rank_rows, *stored, *source;
    int *counts, *displs; /* rank_rows in elements, and stored - first in elements */
} bench_blocks_t;

/* Slice `slice` of `slices`, of a matrix of m rows with `width` elements each. */
void bench_blocks_init(bench_blocks_t *blocks, int m, int width, int nranks, int slices, int slice);
void bench_blocks_free(bench_blocks_t *blocks);

/* One collective over blocks: an allgather or a reduce-scatter by addition. */
typedef struct bench_transfer {
    const bench_blocks_t *blocks;
    bool allgather;
    int rank;
    MPI_Datatype type;
    const void *send;
    void *recv;
} bench_transfer_t;

/*
 * Runs or starts the MPI library's own call for the transfer: the form for equal blocks where they
 * are equal, as an application would, else the one with counts.
 */
void bench_transfer_run(const bench_transfer_t *transfer, MPI_Comm comm);
void bench_transfer_start(const bench_transfer_t *transfer, MPI_Comm comm, MPI_Request *request);

/* Memory on a cache line. Ends the program with a message where there is none. */
void *bench_alloc(size_t count, size_t size);

#endif /* BENCH_BLOCKS_H */
