/*
 * programs.h: the steps of running a test program, for points.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "mpitest.h"

/*
 * From now on the process may use FLASH_TEST_TIMEOUT seconds, less ten, of CPU time; then it says
 * where it is, and ends. A rank that waits in MPI polls, so that a hang uses the time up. A rank
 * that a loaded machine does not run uses none.
 */
void expect_end(void);
/* What a failure, or a hang, names as its place; `point` may be NULL. The time begins anew. */
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
