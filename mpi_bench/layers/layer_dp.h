/*
 * layer_dp.h: data parallel training with sharded parameters: what layer_dp.c, which computes and
 * communicates, shares with layer_dp_state.c, which has the matrices, and with layer_dp_check.c,
 * which checks the results.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_DP_H
#define LAYER_DP_H

#include "layer_bench.h"

/* What travels of a layer by Open MPI's own calls: its matrices, or bfloat16. */
typedef struct layer_dp_travel {
    void *own, *all;      /* of the weights */
    void *sent, *reduced; /* of the gradients */
} layer_dp_travel_t;

typedef struct layer_dp {
    layer_t *layer;
    const layer_way_t *way; /* of the run */
    int tokens;             /* of this rank */
    int width, layers;
    int current;  /* the layer whose weights are gathered, or reduced */
    float **own;  /* layers x (rows x width): this rank's rows of the weights */
    float **w;    /* layers x (width x width): gathered, at their positions */
    float **dw;   /* layers x (rows x width): this rank's rows of the gradients */
    float **a;    /* layers + 1 x (tokens x width): what goes into a layer, and what comes out */
    float **z;    /* layers x (tokens x width) */
    float *slope; /* tokens x width: the gradient by the last output */
    float *da;    /* tokens x width */
    float *dz;    /* tokens x width */
    float *sent;  /* layers x (width x width): contributions to gradients */
    layer_dp_travel_t *travels;
    MPI_Request *requests;
} layer_dp_t;

/* Elements of `rows` rows. */
size_t layer_dp_size(const layer_dp_t *dp, int rows);
/* An element of a layer's weights; and room for this rank's contributions to their gradients. */
double layer_dp_weight(const layer_dp_t *dp, int layer, int row, int column);
float *layer_dp_sent(const layer_dp_t *dp, int l);
/* The number, among those of all ranks, of a rank's token. */
size_t layer_dp_token(const layer_dp_t *dp, int rank, int token);
/* An element of what goes into the first layer, and of the gradient by the last output. */
float layer_dp_input(size_t token, size_t column);
float layer_dp_slope(size_t token, size_t column);
/* Where the host reads or writes a row of a matrix. */
float *layer_dp_value_at(const layer_dp_t *dp, const float *matrix, int row);
/* Whether Open MPI's own calls get something else than the matrices: not a device's memory. */
bool layer_dp_is_apart(const layer_dp_t *dp);

/* layer_workload_t's. */
void *layer_dp_make(layer_t *layer, const layer_options_t *options);
void layer_dp_free(void *state);
void layer_dp_prepare(void *state, const layer_way_t *way);
double layer_dp_error(void *state, const layer_way_t *way);

#endif /* LAYER_DP_H */
