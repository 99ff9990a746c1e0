/*
 * layer_options.h: what the user asked a layer's benchmark for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_OPTIONS_H
#define LAYER_OPTIONS_H

#include "bench_parse.h"
#include "layer_bench.h"

enum { LAYER_MAX_SLICINGS = 8 };

/* No pointers: rank 0 parses and broadcasts the bytes. */
typedef struct layer_settings {
    layer_options_t options;
    int slicings[LAYER_MAX_SLICINGS];
    int nslicings;
    char csv[4096]; /* "" for none, "-" for the standard output */
} layer_settings_t;

/* Prints the help, or what is wrong and how to put it right. */
bench_parsed_t layer_options_parse(const char *program, int argc, char **argv, int nranks,
                                   layer_settings_t *settings);

#endif /* LAYER_OPTIONS_H */
