/*
 * layer_block.h: a transformer's training step, tensor and data parallel: what layer_block.c, which
 * computes and communicates, shares with layer_block_state.c, which has the parameters, and with
 * layer_block_check.c, which checks the results.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_BLOCK_H
#define LAYER_BLOCK_H

#include "layer_block_reference.h"
#include "layer_tp_attention.h"
#include "layer_tp_mlp.h"

/* What travels of parameters by Open MPI's own calls, which do not get a device's memory. */
typedef struct layer_block_travel {
    float *own, *down, *whole, *dwhole;
} layer_block_travel_t;

/* The parameters lie one after another: as layer_attention_t and layer_tp_mlp_t have them. */
typedef struct layer_block_stage {
    layer_tp_attention_t attention;
    layer_tp_mlp_t mlp;
    float *own, *down;     /* this rank's share of the parameters, and of the gradients */
    float *whole, *dwhole; /* all of them, with room for a share of each group */
    layer_block_travel_t travel;
    MPI_Request gathering, scattering;
} layer_block_stage_t;

typedef struct layer_block {
    layer_t *job;
    layer_t tp;
    layer_options_t options; /* of a group */
    layer_way_t way;         /* within the group */
    bool by_flash;           /* its calls, plain ones included */
    int group, groups;
    int share;                         /* elements */
    MPI_Comm tp_comms[2], dp_comms[2]; /* Open MPI's own, and flash's */
    layer_block_stage_t *stages;
    float *y, *dx; /* rows x hidden: what comes out of the last, and the gradient by the input */
    layer_block_reference_t *reference;
} layer_block_t;

typedef struct layer_block_weight {
    layer_weights_t which; /* LAYER_WEIGHTS: none, but room */
    int from, to;
} layer_block_weight_t;

/* Number `k` of this rank's parameters. */
layer_block_weight_t layer_block_weight_at(const layer_block_t *block, size_t k);
/* `count` parameters of a layer, from `first` on. */
void layer_block_fill_parameters(const layer_block_t *block, int layer, size_t first, size_t count,
                                 float *to);
/* Where the host reads or writes a matrix. */
float *layer_block_value_at(const layer_block_t *block, const float *matrix);

/* layer_workload_t's. */
void *layer_block_make(layer_t *layer, const layer_options_t *options);
void layer_block_free(void *state);
void layer_block_prepare(void *state, const layer_way_t *way);
double layer_block_error(void *state, const layer_way_t *way);

#endif /* LAYER_BLOCK_H */
