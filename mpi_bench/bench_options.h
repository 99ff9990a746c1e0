/*
 * bench_options.h: what the user asked flash_gemm for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_parse.h"

enum { BENCH_MAX_SLICES = 16 };

/* No pointers: rank 0 parses and broadcasts the bytes. A zero means "not given" where it can. */
typedef struct bench_options {
    int m, n, k;
    size_t block_bytes; /* --bytes */
    bool is_double;
    bool allgather, reduce_scatter;
    int slices[BENCH_MAX_SLICES]; /* one sliced variant for each */
    int nslices;
    int gather_pieces, reduce_pieces; /* of a block */
    int iterations, warmup;
    bool offload;
    double block_time;    /* seconds */
    double compute_ratio; /* of a block's computation to its transfer */
    double link_rate;     /* bytes per second on the wire, headers included */
    int link_mtu;
    bool link_from_environment;
    bool check;
    bool progress;
    bool no_others; /* flash and a blocking collective alone */
    int threads;
    char json[4096]; /* "" for none, "-" for the standard output */
} bench_options_t;

/*
 * Reads the command line and FLASH_LINK_RATE, FLASH_LINK_MTU. Prints the help, or what is wrong
 * and how to put it right.
 */
bench_parsed_t bench_options_parse(int argc, char **argv, bench_options_t *options);

#endif /* BENCH_OPTIONS_H */
