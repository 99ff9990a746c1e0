/*
 * layer_attention.c: a transformer's attention, tensor and sequence parallel
 * (layer_tp_attention.h), by itself. All but flash's ways are row-parallel.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "layer_math.h"
#include "layer_tp_attention.h"

enum { FORWARD, BACKWARD };

static void *make(layer_t *layer, const layer_options_t *options)
{
    layer_tp_attention_t *a = layer_alloc(1, sizeof(*a));

    layer_tp_attention_make(a, layer, options);
    layer_attention_fill(&a->base, options);
    return a;
}

static void free_all(void *state)
{
    layer_tp_attention_t *a = state;

    layer_tp_attention_free(a);
    free(a);
}

static void run(void *state, const layer_way_t *way, int phase)
{
    (phase == FORWARD ? layer_tp_attention_forward : layer_tp_attention_backward)(state, way);
}

static void prepare(void *state, const layer_way_t *way)
{
    layer_tp_attention_t *a = state;
    layer_attention_t *base = &a->base;

    layer_tp_attention_spoil(a);
    for (int token = 0; token < base->tokens && way->kind == LAYER_COMPUTATION; token++) {
        for (int column = 0; column < base->hidden; column++) {
            layer_value_at(base->layer->device, a->all_x, token, base->hidden)[column] =
                layer_attention_input(token, column);
            layer_value_at(base->layer->device, a->all_dy, token, base->hidden)[column] =
                layer_attention_slope(token, column);
        }
    }
}

/* What is compared does not depend on positions. */
static double error(void *state, const layer_way_t *way)
{
    const layer_tp_attention_t *a = state;

    (void) way;
    return layer_attention_error(&a->base);
}

const layer_workload_t layer_workload = {
    .program = "flash_attention",
    .title = "attention, tensor and sequence parallel",
    .phases = 2,
    .phase_names = {[FORWARD] = "forward", [BACKWARD] = "backward"},
    .flash_variants = {[LAYER_ROW_PARALLEL] = "flash rows", [LAYER_QUERY_SPLIT] = "flash queries"},
    .has_heads = true,
    .block_rows = layer_attention_rows,
    .make = make,
    .free = free_all,
    .run = run,
    .prepare = prepare,
    .error = error};
