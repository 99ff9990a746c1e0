/*
 * bench_parse.h: numbers on a command line, and what to say of bad ones.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_PARSE_H
#define BENCH_PARSE_H

#include <stdbool.h>

/* What came of reading a command line, or a part of it: go on, stop well, stop with an error. */
typedef enum bench_parsed { BENCH_RUN, BENCH_HELP, BENCH_BAD } bench_parsed_t;

/* Says on stderr what is wrong and how to put it right, and where the options are listed. */
bench_parsed_t bench_complain(const char *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * A number from `low` to `high`. If `unit` is greater than 1 it may end in K, M or G: that power of
 * the unit. False if it is none.
 */
bool bench_parse_number(const char *text, double unit, double low, double high, double *value);

/* A whole number, perhaps with K, M or G: powers of 1024. */
bool bench_parse_int(const char *text, int low, int high, int *value);

/* The same for the value of an option or variable `name`, with a complaint if it is none. */
bench_parsed_t bench_read_number(const char *program, const char *name, const char *text,
                                 double unit, double low, double high, double *value);
bench_parsed_t bench_read_int(const char *program, const char *name, const char *text, int low,
                              int high, int *value);

#endif /* BENCH_PARSE_H */
