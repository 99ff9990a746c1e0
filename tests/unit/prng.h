/*
 * prng.h: splitmix64, so that a seed gives the same run on each machine.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PRNG_H
#define PRNG_H

#include <stdbool.h>
#include <stdint.h>

/* Spreads the bits of x: a bijection, so that different inputs stay different. */
static inline uint64_t prng_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t prng_next(uint64_t *state)
{
    return prng_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 <= result < n. The bias is of no importance to a test. */
static inline uint32_t prng_below(uint64_t *state, uint32_t n)
{
    return (uint32_t) ((prng_next(state) >> 32) * n >> 32);
}

static inline bool prng_percent(uint64_t *state, uint32_t percent)
{
    return percent > 0 && (percent >= 100 || prng_below(state, 100) < percent);
}

#endif /* PRNG_H */
