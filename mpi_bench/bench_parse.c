/*
 * bench_parse.c: numbers on a command line.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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
