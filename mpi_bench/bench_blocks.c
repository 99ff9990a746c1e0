/*
 * bench_blocks.c: how rows are spread over the ranks, and the collective that moves them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_blocks.h"

#include <stdio.h>
#include <stdlib.h>

void *bench_alloc(size_t count, size_t size)
{
    const size_t line = 64;
    size_t bytes = (count * size + line) / line * line; /* never 0 */
    void *memory = aligned_alloc(line, bytes);

    if (memory == NULL) {
        fprintf(stderr,
                "flash_gemm: no memory for a buffer of %zu bytes: give smaller -m, -n, -k or "
                "--bytes, or fewer ranks to a host\n",
                bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

int bench_share_first(int total, int shares, int index)
{
    return (int) ((long) total * index / shares);
}

void bench_blocks_init(bench_blocks_t *blocks, int m, int width, int nranks, int slices, int slice)
{
    size_t entries = (size_t) nranks;
    int i, block, block_rows, begin;

    *blocks = (bench_blocks_t){.nranks = nranks, .equal = true};
    blocks->rank_rows = bench_alloc(entries, sizeof(int));
    blocks->stored = bench_alloc(entries, sizeof(int));
    blocks->source = bench_alloc(entries, sizeof(int));
    blocks->counts = bench_alloc(entries, sizeof(int));
    blocks->displs = bench_alloc(entries, sizeof(int));
    for (i = 0; i < nranks; i++) {
        block = bench_share_first(m, nranks, i);
        block_rows = bench_share_first(m, nranks, i + 1) - block;
        begin = bench_share_first(block_rows, slices, slice);
        blocks->first += begin; /* what this rank has in earlier slices is stored before this one */
        blocks->source[i] = block + begin;
        blocks->rank_rows[i] = bench_share_first(block_rows, slices, slice + 1) - begin;
        blocks->counts[i] = blocks->rank_rows[i] * width;
        blocks->displs[i] = blocks->rows * width;
        blocks->stored[i] = blocks->rows;
        blocks->rows += blocks->rank_rows[i];
        blocks->equal = blocks->equal && blocks->rank_rows[i] == blocks->rank_rows[0];
        if (blocks->rank_rows[i] > blocks->max_rows) {
            blocks->max_rows = blocks->rank_rows[i];
        }
    }
    for (i = 0; i < nranks; i++) {
        blocks->stored[i] += blocks->first;
    }
}

void bench_blocks_free(bench_blocks_t *blocks)
{
    free(blocks->rank_rows);
    free(blocks->stored);
    free(blocks->source);
    free(blocks->counts);
    free(blocks->displs);
}

void bench_transfer_run(const bench_transfer_t *transfer, MPI_Comm comm)
{
    const bench_blocks_t *blocks = transfer->blocks;
    int count = blocks->counts[transfer->rank];

    if (transfer->allgather && blocks->equal) {
        MPI_Allgather(transfer->send, count, transfer->type, transfer->recv, count, transfer->type,
                      comm);
    } else if (transfer->allgather) {
        MPI_Allgatherv(transfer->send, count, transfer->type, transfer->recv, blocks->counts,
                       blocks->displs, transfer->type, comm);
    } else if (blocks->equal) {
        MPI_Reduce_scatter_block(transfer->send, transfer->recv, count, transfer->type, MPI_SUM,
                                 comm);
    } else {
        MPI_Reduce_scatter(transfer->send, transfer->recv, blocks->counts, transfer->type, MPI_SUM,
                           comm);
    }
}

void bench_transfer_start(const bench_transfer_t *transfer, MPI_Comm comm, MPI_Request *request)
{
    const bench_blocks_t *blocks = transfer->blocks;
    int count = blocks->counts[transfer->rank];

    if (transfer->allgather && blocks->equal) {
        MPI_Iallgather(transfer->send, count, transfer->type, transfer->recv, count, transfer->type,
                       comm, request);
    } else if (transfer->allgather) {
        MPI_Iallgatherv(transfer->send, count, transfer->type, transfer->recv, blocks->counts,
                        blocks->displs, transfer->type, comm, request);
    } else if (blocks->equal) {
        MPI_Ireduce_scatter_block(transfer->send, transfer->recv, count, transfer->type, MPI_SUM,
                                  comm, request);
    } else {
        MPI_Ireduce_scatter(transfer->send, transfer->recv, blocks->counts, transfer->type, MPI_SUM,
                            comm, request);
    }
}
