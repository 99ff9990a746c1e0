/*
 * failing.h: what the files of test_faults share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>

#include "extension.h"

enum { COUNT = 100 };

/* failing_calls.c */
/* Duplicates MPI_COMM_WORLD, or reverses its ring; errors are counted. */
MPI_Comm failing_make_comm(bool reversed);
/* check()s that the next operations give right results, and no error. */
void failing_next_works(MPI_Comm comm, const char *what);
extern bool failing_gives_up; /* from now on: what fails does so for good */
/* Keeps the memory of an operation that has failed, until MPI_Finalize. */
void failing_keep(const watch_t *watch);
/* An operation that is to end with an error, at once or later. */
void failing_call(watch_kind_t kind, MPI_Comm comm, const watch_options_t *options, int class,
                  const char *what);
/* Likewise, of COUNT elements. */
void failing_one(watch_kind_t kind, MPI_Comm comm, int class, const char *what);

/* failing_lasting.c: cases. */
void failing_no_receives(void);
void failing_no_receives_small(void);
void failing_no_memory_for_receives(void);
void failing_poor_receive(void);
void failing_no_sends(void);
void failing_no_memory_for_sends(void);
void failing_told_later(void);
void failing_not_connected(void);

/* failing_blocks.c: cases. */
void failing_gathers(void);
void failing_unreadable_at_first(void);
void failing_unreadable(void);
void failing_no_memory_for_recdbl(void);

#endif /* FAILING_H */
