/*
 * judge.h: runs an operation that goes wrong and one after it, and says which ends are right.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "sim.h"

/* The operations that are tried have device memory, and little scratch. */
extern bool judge_bounded;
/* A random one, so bounded; and what its points' names end in. */
sim_spec_t judge_spec(uint64_t *random, flash_kind_t kind);
const char *judge_bound(void);

/* Which statuses are right; complains of the others. Operation 0 is the one that goes wrong. */
typedef void judge_fn(sim_t *sim);

/* False, and says what: something is wrong. */
bool judge_run(uint32_t nranks, uint64_t seed, const fake_options_t *net, const sim_spec_t *wrong,
               judge_fn *judge);

/* Of operation 0: ends with that status on that rank. */
void judge_status(sim_t *sim, uint32_t rank, int status);
/* Everyone but `rank` is well, or was told of another's failure. */
void judge_others_told(sim_t *sim, uint32_t rank);
/* Those that were told were told who, unless it was by an empty message. */
void judge_failed_rank(sim_t *sim, uint32_t rank);

#endif /* JUDGE_H */
