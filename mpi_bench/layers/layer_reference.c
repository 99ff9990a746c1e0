/*
 * layer_reference.c: see layer_reference.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_reference.h"

#include <math.h>
#include <stdlib.h>

#include "bench_blocks.h"

/* Of layer_value(); weights have the numbers from the last on. */
enum { X = 1, DY, WEIGHTS };

float layer_attention_input(int token, int column)
{
    return layer_value(X, (size_t) token, (size_t) column);
}

float layer_attention_slope(int token, int column)
{
    return layer_value(DY, (size_t) token, (size_t) column);
}

float layer_attention_weight(layer_projection_t which, int from, int to, int hidden)
{
    double value = layer_value(WEIGHTS + (unsigned) which, (size_t) from, (size_t) to);

    return (float) (value / sqrt(hidden));
}

static size_t place(const layer_reference_t *reference, int token, int column)
{
    return (size_t) token * (size_t) reference->hidden + (size_t) column;
}

/* --------------------------------------------------------------------- tokens */

/* As much of it as does not depend on other tokens. */
static void project_token(layer_reference_t *reference, int token)
{
    for (int to = 0; to < reference->hidden; to++) {
        double sums[3] = {0}, back = 0;

        for (int from = 0; from < reference->hidden; from++) {
            for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
                sums[which] += (double) layer_attention_input(token, from) *
                               (double) layer_attention_weight((layer_projection_t) which, from, to,
                                                               reference->hidden);
            }
            back += (double) layer_attention_slope(token, from) *
                    (double) layer_attention_weight(LAYER_OUTPUT, to, from, reference->hidden);
        }
        for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
            reference->made[which][place(reference, token, to)] = sums[which];
        }
        reference->dinner[place(reference, token, to)] = back;
    }
}

/* Of a head's elements of two tokens. */
static double dot(const layer_reference_t *reference, const double *a, int one, const double *b,
                  int other, int first)
{
    double sum = 0;

    for (int d = first; d < first + reference->hidden / reference->heads; d++) {
        sum += a[place(reference, one, d)] * b[place(reference, other, d)];
    }
    return sum;
}

static void add(const layer_reference_t *reference, double *to, int token, double factor,
                const double *from, int other, int first)
{
    for (int d = first; d < first + reference->hidden / reference->heads; d++) {
        to[place(reference, token, d)] += factor * from[place(reference, other, d)];
    }
}

/* What a token's query attends to: `seen` weights. */
static void weigh(const layer_reference_t *reference, int token, int first, int seen,
                  double *weights)
{
    double most = -INFINITY, sum = 0;

    for (int k = 0; k < seen; k++) {
        weights[k] = dot(reference, reference->made[LAYER_QUERIES], token,
                         reference->made[LAYER_KEYS], k, first) /
                     sqrt((double) reference->hidden / reference->heads);
        most = weights[k] > most ? weights[k] : most;
    }
    for (int k = 0; k < seen; k++) {
        weights[k] = exp(weights[k] - most);
        sum += weights[k];
    }
    for (int k = 0; k < seen; k++) {
        weights[k] /= sum;
    }
}

/* One query of one head: its result, and what it adds to the gradients. */
static void attend(layer_reference_t *reference, int token, int first, double *weights,
                   double *slopes)
{
    int seen = reference->causal ? token + 1 : reference->tokens;
    double **made = reference->made, **back = reference->slopes, sum = 0;

    weigh(reference, token, first, seen, weights);
    for (int k = 0; k < seen; k++) {
        add(reference, reference->inner, token, weights[k], made[LAYER_VALUES], k, first);
        add(reference, back[LAYER_VALUES], k, weights[k], reference->dinner, token, first);
        slopes[k] = dot(reference, reference->dinner, token, made[LAYER_VALUES], k, first);
        sum += weights[k] * slopes[k];
    }
    for (int k = 0; k < seen; k++) {
        double slope =
            weights[k] * (slopes[k] - sum) / sqrt((double) reference->hidden / reference->heads);

        add(reference, back[LAYER_QUERIES], token, slope, made[LAYER_KEYS], k, first);
        add(reference, back[LAYER_KEYS], k, slope, made[LAYER_QUERIES], token, first);
    }
}

static void attend_all(layer_reference_t *reference, int first, int last)
{
    double *weights = layer_alloc((size_t) reference->tokens, sizeof(*weights));
    double *slopes = layer_alloc((size_t) reference->tokens, sizeof(*slopes));
    int dimension = reference->hidden / reference->heads;

    for (int token = first; token < last; token++) {
        for (int head = 0; head < reference->heads; head++) {
            attend(reference, token, head * dimension, weights, slopes);
        }
    }
    free(weights);
    free(slopes);
}

/* ------------------------------------------------------------------------ all */

/* Ranks have zeroes, where the others have something. */
static void add_ranks(const layer_reference_t *reference, double *matrix)
{
    for (int token = 0; token < reference->tokens; token++) {
        MPI_Allreduce(MPI_IN_PLACE, matrix + place(reference, token, 0), reference->hidden,
                      MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

layer_reference_t *layer_reference_make(const layer_options_t *options)
{
    layer_reference_t *reference = layer_alloc(1, sizeof(*reference));
    size_t count = (size_t) options->tokens * (size_t) options->hidden;
    int rank, nranks, first, last;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    first = bench_share_first(options->tokens, nranks, rank);
    last = bench_share_first(options->tokens, nranks, rank + 1);
    *reference = (layer_reference_t){.tokens = options->tokens,
                                     .hidden = options->hidden,
                                     .heads = options->heads,
                                     .causal = options->causal,
                                     .inner = layer_alloc(count, sizeof(double)),
                                     .dinner = layer_alloc(count, sizeof(double))};
    for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
        reference->made[which] = layer_alloc(count, sizeof(double));
        reference->slopes[which] = layer_alloc(count, sizeof(double));
    }
    for (int token = first; token < last; token++) {
        project_token(reference, token);
    }
    add_ranks(reference, reference->dinner);
    for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
        add_ranks(reference, reference->made[which]);
    }
    attend_all(reference, first, last);
    add_ranks(reference, reference->inner);
    for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
        add_ranks(reference, reference->slopes[which]);
    }
    return reference;
}

void layer_reference_free(layer_reference_t *reference)
{
    if (reference == NULL) {
        return;
    }
    for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
        free(reference->made[which]);
        free(reference->slopes[which]);
    }
    free(reference->inner);
    free(reference->dinner);
    free(reference);
}

double layer_reference_output(const layer_reference_t *reference, int token, int column)
{
    double sum = 0;

    for (int from = 0; from < reference->hidden; from++) {
        sum += reference->inner[place(reference, token, from)] *
               (double) layer_attention_weight(LAYER_OUTPUT, from, column, reference->hidden);
    }
    return sum;
}

double layer_reference_input_slope(const layer_reference_t *reference, int token, int column)
{
    double sum = 0;

    for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
        for (int to = 0; to < reference->hidden; to++) {
            sum += reference->slopes[which][place(reference, token, to)] *
                   (double) layer_attention_weight((layer_projection_t) which, column, to,
                                                   reference->hidden);
        }
    }
    return sum;
}

double layer_reference_weight_slope(const layer_reference_t *reference, layer_projection_t which,
                                    int from, int to, int first, int last)
{
    double sum = 0;

    for (int token = first; token < last; token++) {
        sum += which == LAYER_OUTPUT ? reference->inner[place(reference, token, from)] *
                                           (double) layer_attention_slope(token, to)
                                     : (double) layer_attention_input(token, from) *
                                           reference->slopes[which][place(reference, token, to)];
    }
    return sum;
}
