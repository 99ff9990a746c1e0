/*
 * bench_file.c: see bench_file.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_file.h"

#include <errno.h>
#include <string.h>

bool bench_file_open(const char *program, const char *option, const char *name, FILE **file)
{
    *file = NULL;
    if (name[0] == '\0') {
        return true;
    }
    *file = strcmp(name, "-") == 0 ? stdout : fopen(name, "w");
    if (*file == NULL) {
        fprintf(stderr,
                "%s: cannot write %s (%s): give %s a file in a folder that rank 0 may write to\n",
                program, name, strerror(errno), option);
    }
    return *file != NULL;
}

bool bench_file_close(const char *program, const char *name, FILE *file)
{
    if (file == NULL || file == stdout || fclose(file) == 0) {
        return true;
    }
    fprintf(stderr, "%s: cannot write all of %s (%s)\n", program, name, strerror(errno));
    return false;
}
