/*
 * layer_block_check.c: how far a transformer's training step is from the one on one rank, and what
 * of earlier runs is made unusable; see layer_block.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_block.h"

#include "layer_math.h"

/* Without communication, some numbers stand for what would come. */
static void fill_gathered(const layer_block_t *block, float *all)
{
    for (int token = 0; token < block->options.tokens; token++) {
        for (int column = 0; column < block->options.hidden; column++) {
            layer_at(layer_block_value_at(block, all), token, block->options.hidden)[column] =
                layer_block_input(token, column);
        }
    }
}

void layer_block_prepare(void *state, const layer_way_t *way)
{
    layer_block_t *block = state;
    int whole = block->groups * block->share;

    layer_spoil(block->job->device, block->y, block->tp.rows, block->options.hidden);
    layer_spoil(block->job->device, block->dx, block->tp.rows, block->options.hidden);
    for (int l = 0; l < block->options.layers; l++) {
        layer_block_stage_t *stage = &block->stages[l];

        layer_tp_attention_spoil(&stage->attention);
        layer_tp_mlp_spoil(&stage->mlp);
        layer_spoil(block->job->device, stage->down, 1, block->share);
        layer_spoil(block->job->device, stage->whole, 1, whole);
        if (way->kind == LAYER_COMPUTATION) {
            layer_block_fill_parameters(block, l, 0, (size_t) whole,
                                        layer_block_value_at(block, stage->whole));
            fill_gathered(block, stage->attention.all_x);
            fill_gathered(block, stage->attention.all_dy);
            fill_gathered(block, stage->mlp.all_x);
            fill_gathered(block, stage->mlp.all_dy);
        }
    }
}

static void compare_tokens(const layer_block_t *block, float *got, const double *expected,
                           layer_compared_t *compared)
{
    int hidden = block->options.hidden;
    size_t first = (size_t) (block->tp.rank * block->tp.rows) * (size_t) hidden;
    const float *values = layer_block_value_at(block, got);

    for (size_t k = 0; k < (size_t) block->tp.rows * (size_t) hidden; k++) {
        layer_compare(compared, (double) values[k], expected[first + k]);
    }
}

/* All results: those of the tokens, and each kind of gradient. */
double layer_block_error(void *state, const layer_way_t *way)
{
    const layer_block_t *block = state;
    layer_compared_t kinds[LAYER_WEIGHTS + 2] = {{0, 0}};

    (void) way; /* what is compared does not depend on positions */
    compare_tokens(block, block->y, block->reference->y, &kinds[LAYER_WEIGHTS]);
    compare_tokens(block, block->dx, block->reference->dx, &kinds[LAYER_WEIGHTS + 1]);
    for (int l = 0; l < block->options.layers; l++) {
        const float *down = layer_block_value_at(block, block->stages[l].down);

        for (int k = 0; k < block->share; k++) {
            layer_block_weight_t weight =
                layer_block_weight_at(block, (size_t) (block->group * block->share + k));

            if (weight.which != LAYER_WEIGHTS) {
                layer_compare(&kinds[weight.which], (double) down[k],
                              layer_block_reference_slope(block->reference, l, weight.which,
                                                          weight.from, weight.to));
            }
        }
    }
    return layer_error(kinds, LAYER_WEIGHTS + 2);
}
