/*
 * layer.h: parallel layers as workloads: written once, by what they compute on rows, and run in
 * each of the ways to communicate that are compared.
 *
 * A layer has nranks x `rows` rows of something, `rows` on each rank. Between its products, rows of
 * all ranks are gathered or exchanged, or contributions to rows of all ranks are added and
 * scattered. Who computes is told the *position* of rows: where they stand in the buffers of all
 * rows. Data slicing has them in slice order (the first slice of each rank's rows, then the
 * second), everything else in the order of the ranks; a layer need not know, as long as it keeps
 * each row at its position.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_H
#define LAYER_H

#include <mpi.h>

#include "layer_device.h"

typedef enum layer_kind {
    LAYER_COMPUTATION, /* without any communication */
    LAYER_BLOCKING,    /* no overlap */
    LAYER_WAITING,     /* nor here: non-blocking calls that are waited for at once */
    LAYER_NONBLOCKING, /* as far as the order of the layer allows */
    LAYER_SLICED,
    LAYER_FLASH
} layer_kind_t;

/* A way to communicate. */
typedef struct layer_way {
    layer_kind_t kind;
    int slices;  /* of each rank's rows; 1 if it is not sliced */
    int variant; /* of flash's, where a layer has several */
    MPI_Comm comm;
} layer_way_t;

/* What travels, see layer_wire.h. */
typedef struct layer_wire {
    bool half;
    MPI_Datatype type;
    MPI_Op sum;  /* of plain calls: MPI has none for 16 bits */
    size_t size; /* of an element */
    /* LAYER_IN's and LAYER_OUT's, of the device and of the host; and for what is on its way between
       the two. */
    void *room[2][2], *between;
    size_t room_size[2][2], between_size;
} layer_wire_t;

typedef struct layer {
    layer_device_t *device; /* one for all copies, as the next */
    layer_wire_t *wire;
    int rank, nranks;
    int rows;   /* of each rank, in a block */
    int pieces; /* to a block, by flash */
} layer_t;

/* Until the device has done what the latest mark says, in a way that lets go on what it has begun.
 */
void layer_wait(const layer_t *layer, const layer_way_t *way);

/* Computes on `rows` rows from `position` on: reads `data`, or writes it. */
typedef void layer_rows_fn(void *arg, int position, int rows, float *data);

/*
 * Gathers rows of `width` elements, `own` of each rank, into `all`, and has them consumed: each
 * once all of it is there. `all` is filled beforehand where nothing communicates.
 */
void layer_gather(layer_t *layer, const layer_way_t *way, int width, const float *own, float *all,
                  layer_rows_fn *consume, void *arg);
/*
 * Has contributions to all rows produced, and adds those of all ranks: `own` are the sums of this
 * rank's rows. `all` is room for the contributions, where they are not sent as they are made, and
 * just as they are.
 * `meanwhile` computes what nothing here depends on; or NULL.
 */
void layer_scatter(layer_t *layer, const layer_way_t *way, int width, float *all, float *own,
                   layer_rows_fn *produce, void (*meanwhile)(void *arg), void *arg);
/*
 * Has rows produced for all ranks, `rows` for each, exchanges them, and has those consumed that
 * come from all ranks; one of both may be NULL. The position says which rank's it is; a call has
 * rows of one rank alone.
 */
void layer_exchange(layer_t *layer, const layer_way_t *way, int width, float *out, float *in,
                    layer_rows_fn *produce, layer_rows_fn *consume, void *arg);
/* Where row `row` of rank `rank` stands; and which row of all ranks' stands there. */
int layer_position(const layer_t *layer, const layer_way_t *way, int rank, int row);
int layer_row(const layer_t *layer, const layer_way_t *way, int position);

#endif /* LAYER_H */
