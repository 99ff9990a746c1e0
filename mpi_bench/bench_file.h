/*
 * bench_file.h: the file that a benchmark's figures go to.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_FILE_H
#define BENCH_FILE_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Opens the file that `option` names: *file is NULL for "", the standard output for "-". False,
 * with a complaint, if it cannot be written.
 */
bool bench_file_open(const char *program, const char *option, const char *name, FILE **file);
/* Closes it, unless it is NULL or the standard output. False, with a complaint, if a write failed.
 */
bool bench_file_close(const char *program, const char *name, FILE *file);

#endif /* BENCH_FILE_H */
