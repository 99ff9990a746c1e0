/*
 * coll_options.h: what the user asked a collective's benchmark for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_OPTIONS_H
#define COLL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_parse.h"
#include "coll_compute.h"

#define COLL_PAGE 4096 /* bytes */

enum { COLL_SEGMENTS = 8 };

/* No pointers: rank 0 parses and broadcasts the bytes. */
typedef struct coll_options {
    size_t min_bytes, max_bytes;
    int times;      /* from one size to the next */
    int iterations; /* 0: as many as fit in `seconds`, within bounds */
    int warmup;
    double ratio;   /* of a computation's time to that of the call alone */
    double seconds; /* for a measurement of one size on one side, about */
    int tests;      /* calls of MPI_Test in the computation */
    bool full;
    bool check;
    coll_compute_kind_t compute;
    bool alone;    /* measures no calls under computation */
    bool blocking; /* flash's calls are blocking ones; then `alone`, too */
    bool device;   /* buffers in the memory of a CUDA device, where Open MPI's own calls are not */
    int segments[COLL_SEGMENTS]; /* bytes of flash's, each of which is measured */
    int nsegments;               /* 0: flash's own choice alone */
    int offset;                  /* bytes into a page: there the receive buffer begins */
    bool own;                    /* measures Open MPI's own calls, too */
    bool floor;                  /* measures what is exposed of a call that moves nothing */
    bool same_work;              /* under the computation that flash's are measured under */
    double link_rate;            /* bytes per second, headers included; 0: not known */
    bool link_both;              /* a host receives no faster than it sends */
    int link_mtu;
    char csv[4096]; /* "" for none, "-" for the standard output */
} coll_options_t;

/* Reads the command line; says what is wrong with it, or prints the help. */
bench_parsed_t coll_options_parse(int argc, char **argv, coll_options_t *options);

#endif /* COLL_OPTIONS_H */
