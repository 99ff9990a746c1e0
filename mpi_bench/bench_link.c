/*
 * bench_link.c: how long a block takes on the wire.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "bench_link.h"
#include "bench_wire.h"

enum { ROUNDS = 7 };

/* The median time in which every rank sends a block to the right and has one from the left. */
static double measure_block(const bench_problem_t *problem, MPI_Comm comm)
{
    int count = problem->blocks.max_rows * problem->row;
    size_t bytes = (size_t) count * problem->size;
    int right = (problem->rank + 1) % problem->nranks;
    int left = (problem->rank + problem->nranks - 1) % problem->nranks;
    void *out = bench_alloc((size_t) count, problem->size);
    void *in = bench_alloc((size_t) count, problem->size);
    double samples[ROUNDS], start;
    int i;

    memset(out, 0, bytes);
    memset(in, 0, bytes);
    for (i = -1; i < ROUNDS; i++) { /* the first one connects */
        MPI_Barrier(comm);
        start = bench_now();
        MPI_Sendrecv(out, count, problem->type, right, 0, in, count, problem->type, left, 0, comm,
                     MPI_STATUS_IGNORE);
        if (i >= 0) {
            samples[i] = bench_now() - start;
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, samples, ROUNDS, MPI_DOUBLE, MPI_MAX, comm);
    free(out);
    free(in);
    return bench_stats(samples, ROUNDS).median;
}

bench_link_t bench_link_find(const bench_problem_t *problem, MPI_Comm comm)
{
    const bench_options_t *options = problem->options;
    double bytes = (double) problem->blocks.max_rows * problem->row * (double) problem->size;
    bench_link_t link = {
        .source = "measured", .rate = options->link_rate, .mtu = options->link_mtu};

    if (link.rate > 0) {
        link.source = options->link_from_environment ? "FLASH_LINK_RATE" : "--link-rate";
        link.payload = bench_payload_rate(link.rate, link.mtu);
        link.block_seconds = bytes / link.payload;
    } else {
        link.block_seconds = measure_block(problem, comm);
    }
    return link;
}
