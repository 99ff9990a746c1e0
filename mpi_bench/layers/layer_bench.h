/*
 * layer_bench.h: measures a workload in all ways, side by side, and checks it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_BENCH_H
#define LAYER_BENCH_H

#include "layer.h"

enum { LAYER_MAX_PHASES = 4, LAYER_MAX_VARIANTS = 2 };

typedef struct layer_options {
    int tokens; /* of all ranks */
    int hidden, inner;
    int layers, heads, groups;
    bool causal;
    int pieces;
    int iterations, warmup;
    layer_compute_t compute;
    bool half;   /* bfloat16 travels */
    double rate; /* of an accelerator: floating-point operations a second */
} layer_options_t;

/* A program has one, by this name. */
typedef struct layer_workload {
    const char *program, *title;
    int phases;
    const char *phase_names[LAYER_MAX_PHASES];
    /* The names of flash's ways, if there are several: numbered as layer_way_t's `variant`. */
    const char *flash_variants[LAYER_MAX_VARIANTS];
    bool has_heads; /* its options say how many */
    bool has_groups;
    bool exchanges; /* it calls layer_exchange() */
    /* Of the blocks that travel: 0 if the shape does not divide. */
    int (*block_rows)(const layer_options_t *options, int nranks);
    void *(*make)(layer_t *layer, const layer_options_t *options);
    void (*free)(void *state);
    void (*run)(void *state, const layer_way_t *way, int phase);
    /* Whatever earlier runs have left is made unusable; without communication, what is gathered is
       put in its place instead. */
    void (*prepare)(void *state, const layer_way_t *way);
    /*
     * How far the results of all phases are from those of one rank in double precision, relative to
     * the largest of their kind; NAN counts as wrong.
     */
    double (*error)(void *state, const layer_way_t *way);
} layer_workload_t;
extern const layer_workload_t layer_workload;

/* From -1 to 1, the same on all ranks: of matrix number `matrix`. */
float layer_value(unsigned matrix, size_t row, size_t column);
/* Zeroed, or the program ends. */
void *layer_alloc(size_t count, size_t size);
/* The memory, or the program ends. */
void *layer_must_have(void *memory);

#endif /* LAYER_BENCH_H */
