/*
 * layer_math.c: see layer_math.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_math.h"

#include <math.h>

float *layer_at(float *matrix, int row, int width)
{
    return matrix + (size_t) row * (size_t) width;
}

double layer_gelu(double z)
{
    return 0.5 * z * (1 + erf(z * M_SQRT1_2));
}

double layer_gelu_slope(double z)
{
    return 0.5 * (1 + erf(z * M_SQRT1_2)) + z * exp(-0.5 * z * z) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
}

/* A NAN stays. */
void layer_compare(layer_compared_t *compared, double got, double expected)
{
    double difference = fabs(got - expected);

    if (isnan(difference) || difference > compared->difference) {
        compared->difference = difference;
    }
    if (fabs(expected) > compared->largest) {
        compared->largest = fabs(expected);
    }
}

double layer_error(const layer_compared_t *kinds, int count)
{
    double worst = 0;

    for (int k = 0; k < count; k++) {
        double relative =
            kinds[k].largest > 0 ? kinds[k].difference / kinds[k].largest : kinds[k].difference;

        if (isnan(relative)) {
            return NAN;
        }
        worst = relative > worst ? relative : worst;
    }
    return worst;
}
