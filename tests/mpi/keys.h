/*
 * keys.h: what the files of test_keys share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef KEYS_H
#define KEYS_H

#include <stdbool.h>

#include <mpi.h>

enum { BLOCK = 4096 }; /* bytes */

typedef enum way { RING, PAIRWISE, SHM, RECDBL, PASSED_ON, WAYS } way_t;

typedef enum kind { GATHER, REDUCE } kind_t;

/* keys_calls.c */
extern const char *const keys_counter_names[WAYS];
void keys_open_counters(void);
void keys_close_counters(void);
/* How many calls have taken each way, by the counters that are open. */
void keys_count(unsigned long long counts[WAYS]);
/* Element `k` of what a rank contributes. */
int keys_element(int rank, int k);
/* An allgather of so many bytes a block, checked. */
void keys_gather(MPI_Comm comm, int bytes);
/* The way that a call of that many bytes a block takes; WAYS: not one. */
way_t keys_way_of(MPI_Comm comm, kind_t kind, int bytes);
void keys_set(MPI_Comm comm, const char *name, const char *value); /* its key mpix_flash_NAME */
/* All standard calls fall back; each key says nothing without others. */
MPI_Comm keys_dup_that_passes_on(void);

/* keys_reads.c */
/* Whether each rank's memory can be read by its left neighbour. */
bool keys_memory_is_readable(void);
/* Cases. */
void keys_read_blocks(void);
void keys_limits(void);

/* keys_algorithms.c: cases. */
void keys_pairwise(void);
void keys_persistent(void);

#endif /* KEYS_H */
