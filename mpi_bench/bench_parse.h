/*
 * bench_parse.h: numbers on a command line.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_PARSE_H
#define BENCH_PARSE_H

#include <stdbool.h>

/*
 * A number from `low` to `high`. If `unit` is greater than 1 it may end in K, M or G: that power of
 * the unit. False if it is none.
 */
bool bench_parse_number(const char *text, double unit, double low, double high, double *value);

/* A whole number, perhaps with K, M or G: powers of 1024. */
bool bench_parse_int(const char *text, int low, int high, int *value);

#endif /* BENCH_PARSE_H */
