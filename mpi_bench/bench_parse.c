/*
 * bench_parse.c: see bench_parse.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bench_parsed_t bench_complain(const char *program, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", program);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (%s --help lists the options)\n", program);
    return BENCH_BAD;
}

bool bench_parse_number(const char *text, double unit, double low, double high, double *value)
{
    static const char suffixes[] = "KMG";
    const char *suffix;
    char *end;
    long power;

    *value = strtod(text, &end);
    if (end == text) {
        return false;
    }
    if (unit > 1 && *end != '\0') {
        suffix = strchr(suffixes, toupper((unsigned char) *end));
        if (suffix == NULL) {
            return false;
        }
        for (power = suffix - suffixes; power >= 0; power--) {
            *value *= unit;
        }
        end++;
    }
    return *end == '\0' && *value >= low && *value <= high;
}

bool bench_parse_int(const char *text, int low, int high, int *value)
{
    double number;

    if (!bench_parse_number(text, 1024, low, high, &number) || number != (int) number) {
        return false;
    }
    *value = (int) number;
    return true;
}

bench_parsed_t bench_read_number(const char *program, const char *name, const char *text,
                                 double unit, double low, double high, double *value)
{
    return bench_parse_number(text, unit, low, high, value)
               ? BENCH_RUN
               : bench_complain(program, "%s %s: give a number from %g to %g%s", name, text, low,
                                high, unit > 1 ? ", which may end in K, M or G" : "");
}

bench_parsed_t bench_read_int(const char *program, const char *name, const char *text, int low,
                              int high, int *value)
{
    return bench_parse_int(text, low, high, value)
               ? BENCH_RUN
               : bench_complain(program, "%s %s: give a whole number from %d to %d", name, text,
                                low, high);
}
