/*
 * choice.c: see choice.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpix_flash.h>

#include "mpitest.h"

enum { TEXT = 1024 };

/* The line of that algorithm, in `text`. */
static const char *line_of(const char *algorithm, const char *call, size_t bytes, int ranks,
                           char text[TEXT])
{
    char begin[32];
    const char *line;

    check_class(MPIX_Flash_explain(call, (MPI_Count) bytes, ranks, 1, text, TEXT), MPI_SUCCESS,
                "MPIX_Flash_explain");
    snprintf(begin, sizeof(begin), "%-10s ", algorithm);
    line = strstr(text, begin);
    if (line == NULL) {
        check(false, "no line for %s in: %s", algorithm, text);
        return "";
    }
    return line;
}

bool choice_is(const char *algorithm, const char *call, size_t bytes, int ranks)
{
    char text[TEXT];
    const char *line = line_of(algorithm, call, bytes, ranks, text);

    return strstr(line, "<- chosen") != NULL &&
           strstr(line, "<- chosen") < line + strcspn(line, "\n");
}

/* Microseconds; -1: there is no cost. */
static double cost_of(const char *algorithm, const char *call, size_t bytes, int ranks)
{
    char text[TEXT], *end;
    const char *number = line_of(algorithm, call, bytes, ranks, text) + strlen(algorithm);
    double cost = strtod(number, &end);

    return end == number ? -1 : cost;
}

bool choice_ring_pays(const char *call, size_t bytes, int ranks)
{
    double ring = cost_of("ring", call, bytes, ranks);

    return ring >= 0 && ring < cost_of("fallback", call, bytes, ranks);
}

bool choice_ring_leads(const char *call, size_t bytes, int ranks)
{
    double ring = cost_of("ring", call, bytes, ranks),
           recdbl = cost_of("recdbl", call, bytes, ranks),
           pairwise = cost_of("pairwise", call, bytes, ranks);

    return choice_ring_pays(call, bytes, ranks) && (recdbl < 0 || ring < recdbl) &&
           (pairwise < 0 || ring < pairwise);
}
