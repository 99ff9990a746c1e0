/*
 * programs.h: the steps of running a test program, for points.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "mpitest.h"

/* From now on FLASH_TEST_TIMEOUT seconds, less ten, may pass; then the process says where it is, and ends. */
void expect_end(void);
/* What a failure, or a hang, names as its place; `point` may be NULL. */
void enter(const char *point, const char *name);

/* The thread level of a program, with the environment as it is now. */
int level_of(const test_program_t *program);
/* MPI_Init_thread, and who this rank is. */
void begin_job(int level);
/* The cases of a program that have these names, up to NULL; none: all. A barrier behind each. */
void run_cases(const test_program_t *program, const char *point, char **names);
/* MPI_Finalize, and whether nothing of the program's is left. */
bool end_job(const test_program_t *program);

#endif /* PROGRAMS_H */
