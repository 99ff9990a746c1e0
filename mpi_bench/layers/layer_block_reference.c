/*
 * layer_block_reference.c: see layer_block_reference.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_block_reference.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer_math.h"

/* Of layer_value(); weights have the numbers from the last on. */
enum { X = 1, DY, WEIGHTS };

float layer_block_input(int token, int column)
{
    return layer_value(X, (size_t) token, (size_t) column);
}

float layer_block_slope(int token, int column)
{
    return layer_value(DY, (size_t) token, (size_t) column);
}

static int rows_of(int hidden, int inner, layer_weights_t which)
{
    return which == LAYER_W2 ? inner : hidden;
}

static int columns_of(int hidden, int inner, layer_weights_t which)
{
    return which == LAYER_W1 ? inner : hidden;
}

float layer_block_weight(const layer_options_t *options, int layer, layer_weights_t which, int from,
                         int to)
{
    unsigned number = WEIGHTS + (unsigned) (layer * LAYER_WEIGHTS) + (unsigned) which;
    double value = (double) layer_value(number, (size_t) from, (size_t) to);

    return (float) (value / sqrt(rows_of(options->hidden, options->inner, which)));
}

/* One layer's matrices. */
typedef struct stage {
    double *w[LAYER_WEIGHTS], *dw[LAYER_WEIGHTS];
    double *x;       /* tokens x hidden: what goes in */
    double *made[3]; /* queries, keys, values */
    double *heads;   /* what the heads make of them */
    double *between; /* the input and the attention */
    double *z, *a;   /* tokens x inner */
} stage_t;

typedef struct work {
    const layer_options_t *options;
    int tokens, hidden, inner;
    double *weights, *slopes; /* tokens x tokens, of one head */
    double *dheads, *dmade[3], *da;
} work_t;

static double *matrix(int rows, int columns)
{
    return layer_alloc((size_t) rows * (size_t) columns + 1, sizeof(double));
}

/* C = A B + beta C of row-major matrices without gaps but for the rows' distances. */
static void product(bool transpose_a, bool transpose_b, int m, int n, int k, const double *a,
                    int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    cblas_dgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, m, n, k, 1.0, a, lda, b, ldb, beta, c,
                ldc);
}

/* ----------------------------------------------------------------------- heads */

/* The weights of one head's queries, from element `first` on. */
static void weigh(const work_t *work, const stage_t *stage, int first, int dimension)
{
    product(false, true, work->tokens, work->tokens, dimension, stage->made[LAYER_WQ] + first,
            work->hidden, stage->made[LAYER_WK] + first, work->hidden, 0, work->weights,
            work->tokens);
    for (int query = 0; query < work->tokens; query++) {
        double *row = work->weights + (size_t) query * (size_t) work->tokens, sum = 0;
        int seen = work->options->causal ? query + 1 : work->tokens;
        double most = -INFINITY;

        for (int k = 0; k < seen; k++) {
            row[k] /= sqrt(dimension);
            most = row[k] > most ? row[k] : most;
        }
        for (int k = 0; k < work->tokens; k++) {
            row[k] = k < seen ? exp(row[k] - most) : 0;
            sum += row[k];
        }
        for (int k = 0; k < seen; k++) {
            row[k] /= sum;
        }
    }
}

static void attend(const work_t *work, stage_t *stage)
{
    int dimension = work->hidden / work->options->heads;

    for (int first = 0; first < work->hidden; first += dimension) {
        weigh(work, stage, first, dimension);
        product(false, false, work->tokens, dimension, work->tokens, work->weights, work->tokens,
                stage->made[LAYER_WV] + first, work->hidden, 0, stage->heads + first, work->hidden);
    }
}

static void attend_back(const work_t *work, const stage_t *stage)
{
    int dimension = work->hidden / work->options->heads, tokens = work->tokens;

    for (int first = 0; first < work->hidden; first += dimension) {
        weigh(work, stage, first, dimension);
        product(true, false, tokens, dimension, tokens, work->weights, tokens, work->dheads + first,
                work->hidden, 0, work->dmade[LAYER_WV] + first, work->hidden);
        product(false, true, tokens, tokens, dimension, work->dheads + first, work->hidden,
                stage->made[LAYER_WV] + first, work->hidden, 0, work->slopes, tokens);
        for (int query = 0; query < tokens; query++) {
            const double *weights = work->weights + (size_t) query * (size_t) tokens;
            double *row = work->slopes + (size_t) query * (size_t) tokens, sum = 0;

            for (int k = 0; k < tokens; k++) {
                sum += weights[k] * row[k];
            }
            for (int k = 0; k < tokens; k++) {
                row[k] = weights[k] * (row[k] - sum) / sqrt(dimension);
            }
        }
        product(false, false, tokens, dimension, tokens, work->slopes, tokens,
                stage->made[LAYER_WK] + first, work->hidden, 0, work->dmade[LAYER_WQ] + first,
                work->hidden);
        product(true, false, tokens, dimension, tokens, work->slopes, tokens,
                stage->made[LAYER_WQ] + first, work->hidden, 0, work->dmade[LAYER_WK] + first,
                work->hidden);
    }
}

/* ---------------------------------------------------------------------- passes */

static void forward(const work_t *work, stage_t *stage, double *y)
{
    int m = work->tokens, h = work->hidden, f = work->inner;

    for (int which = LAYER_WQ; which <= LAYER_WV; which++) {
        product(false, false, m, h, h, stage->x, h, stage->w[which], h, 0, stage->made[which], h);
    }
    attend(work, stage);
    memcpy(stage->between, stage->x, (size_t) m * (size_t) h * sizeof(double));
    product(false, false, m, h, h, stage->heads, h, stage->w[LAYER_WO], h, 1, stage->between, h);
    product(false, false, m, f, h, stage->between, h, stage->w[LAYER_W1], f, 0, stage->z, f);
    for (size_t k = 0; k < (size_t) m * (size_t) f; k++) {
        stage->a[k] = layer_gelu(stage->z[k]);
    }
    memcpy(y, stage->between, (size_t) m * (size_t) h * sizeof(double));
    product(false, false, m, h, f, stage->a, f, stage->w[LAYER_W2], h, 1, y, h);
}

/* `d`: the gradient by the output, which becomes that by the input. */
static void backward(const work_t *work, const stage_t *stage, double *d)
{
    int m = work->tokens, h = work->hidden, f = work->inner;

    product(true, false, f, h, m, stage->a, f, d, h, 0, stage->dw[LAYER_W2], h);
    product(false, true, m, f, h, d, h, stage->w[LAYER_W2], h, 0, work->da, f);
    for (size_t k = 0; k < (size_t) m * (size_t) f; k++) {
        work->da[k] *= layer_gelu_slope(stage->z[k]);
    }
    product(true, false, h, f, m, stage->between, h, work->da, f, 0, stage->dw[LAYER_W1], f);
    product(false, true, m, h, f, work->da, f, stage->w[LAYER_W1], f, 1, d, h);
    product(true, false, h, h, m, stage->heads, h, d, h, 0, stage->dw[LAYER_WO], h);
    product(false, true, m, h, h, d, h, stage->w[LAYER_WO], h, 0, work->dheads, h);
    attend_back(work, stage);
    for (int which = LAYER_WQ; which <= LAYER_WV; which++) {
        product(true, false, h, h, m, stage->x, h, work->dmade[which], h, 0, stage->dw[which], h);
        product(false, true, m, h, h, work->dmade[which], h, stage->w[which], h, 1, d, h);
    }
}

/* ------------------------------------------------------------------------- all */

static stage_t make_stage(const work_t *work, int layer)
{
    stage_t stage = {.x = matrix(work->tokens, work->hidden),
                     .heads = matrix(work->tokens, work->hidden),
                     .between = matrix(work->tokens, work->hidden),
                     .z = matrix(work->tokens, work->inner),
                     .a = matrix(work->tokens, work->inner)};

    for (int which = LAYER_WQ; which <= LAYER_WV; which++) {
        stage.made[which] = matrix(work->tokens, work->hidden);
    }
    for (int k = 0; k < LAYER_WEIGHTS; k++) {
        layer_weights_t which = (layer_weights_t) k;
        int rows = rows_of(work->hidden, work->inner, which);
        int columns = columns_of(work->hidden, work->inner, which);

        stage.w[which] = matrix(rows, columns);
        stage.dw[which] = matrix(rows, columns);
        for (int from = 0; from < rows; from++) {
            for (int to = 0; to < columns; to++) {
                stage.w[which][(size_t) from * (size_t) columns + (size_t) to] =
                    (double) layer_block_weight(work->options, layer, which, from, to);
            }
        }
    }
    return stage;
}

/* All but the gradients. */
static void free_stage(stage_t *stage)
{
    for (int which = LAYER_WQ; which <= LAYER_WV; which++) {
        free(stage->made[which]);
    }
    for (int which = 0; which < LAYER_WEIGHTS; which++) {
        free(stage->w[which]);
    }
    free(stage->x);
    free(stage->heads);
    free(stage->between);
    free(stage->z);
    free(stage->a);
}

static work_t make_work(const layer_options_t *options)
{
    work_t work = {.options = options,
                   .tokens = options->tokens,
                   .hidden = options->hidden,
                   .inner = options->inner,
                   .weights = matrix(options->tokens, options->tokens),
                   .slopes = matrix(options->tokens, options->tokens),
                   .dheads = matrix(options->tokens, options->hidden),
                   .da = matrix(options->tokens, options->inner)};

    for (int which = LAYER_WQ; which <= LAYER_WV; which++) {
        work.dmade[which] = matrix(options->tokens, options->hidden);
    }
    return work;
}

static void free_work(work_t *work)
{
    for (int which = LAYER_WQ; which <= LAYER_WV; which++) {
        free(work->dmade[which]);
    }
    free(work->weights);
    free(work->slopes);
    free(work->dheads);
    free(work->da);
}

/* What a group begins with. */
static void fill(double *to, const work_t *work, int first, float (*value)(int token, int column))
{
    for (int token = 0; token < work->tokens; token++) {
        for (int column = 0; column < work->hidden; column++) {
            to[(size_t) token * (size_t) work->hidden + (size_t) column] =
                (double) value(first + token, column);
        }
    }
}

/* A layer's, row by row: MPI counts no further than an int. */
static void add_groups(const layer_block_reference_t *reference, int layer, MPI_Comm groups)
{
    for (int k = 0; k < LAYER_WEIGHTS; k++) {
        layer_weights_t which = (layer_weights_t) k;
        int columns = columns_of(reference->hidden, reference->inner, which);

        for (int row = 0; row < rows_of(reference->hidden, reference->inner, which); row++) {
            MPI_Allreduce(MPI_IN_PLACE,
                          reference->slopes[layer][which] + (size_t) row * (size_t) columns,
                          columns, MPI_DOUBLE, MPI_SUM, groups);
        }
    }
}

layer_block_reference_t *layer_block_reference_make(const layer_options_t *options, int first,
                                                    MPI_Comm groups)
{
    layer_block_reference_t *reference = layer_alloc(1, sizeof(*reference));
    stage_t *stages = layer_alloc((size_t) options->layers, sizeof(*stages));
    work_t work = make_work(options);

    *reference = (layer_block_reference_t){
        .hidden = options->hidden,
        .inner = options->inner,
        .y = matrix(options->tokens, options->hidden),
        .dx = matrix(options->tokens, options->hidden),
        .slopes = layer_alloc((size_t) options->layers, sizeof(*reference->slopes)),
        .layers = options->layers};
    for (int l = 0; l < options->layers; l++) {
        stages[l] = make_stage(&work, l);
        memcpy(reference->slopes[l], stages[l].dw, sizeof(stages[l].dw));
    }
    fill(stages[0].x, &work, first, layer_block_input);
    fill(reference->dx, &work, first, layer_block_slope);
    for (int l = 0; l < options->layers; l++) {
        forward(&work, &stages[l], l + 1 < options->layers ? stages[l + 1].x : reference->y);
    }
    for (int l = options->layers - 1; l >= 0; l--) {
        backward(&work, &stages[l], reference->dx);
        add_groups(reference, l, groups);
        free_stage(&stages[l]);
    }
    free(stages);
    free_work(&work);
    return reference;
}

void layer_block_reference_free(layer_block_reference_t *reference)
{
    if (reference == NULL) {
        return;
    }
    for (int l = 0; l < reference->layers; l++) {
        for (int which = 0; which < LAYER_WEIGHTS; which++) {
            free(reference->slopes[l][which]);
        }
    }
    free(reference->slopes);
    free(reference->y);
    free(reference->dx);
    free(reference);
}

double layer_block_reference_slope(const layer_block_reference_t *reference, int layer,
                                   layer_weights_t which, int from, int to)
{
    int columns = columns_of(reference->hidden, reference->inner, which);

    return reference->slopes[layer][which][(size_t) from * (size_t) columns + (size_t) to];
}
