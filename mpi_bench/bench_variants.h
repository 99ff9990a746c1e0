/*
 * bench_variants.h: the ways to communicate and compute that are compared.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_VARIANTS_H
#define BENCH_VARIANTS_H

#include "bench_check.h"

typedef enum bench_kind {
    BENCH_ALONE,   /* computation or communication by itself */
    BENCH_VARIANT, /* both, where the computation needs or makes what is communicated */
    BENCH_PLAIN    /* both, independent of each other: an application that is not changed */
} bench_kind_t;

typedef struct bench_case bench_case_t;
typedef void bench_run_fn(bench_problem_t *problem, const bench_case_t *bench_case);

/* One thing that is measured. */
struct bench_case {
    bench_kind_t kind;
    char name[32];
    bench_run_fn *run;
    MPI_Comm comm;
    const bench_slicing_t *slicing; /* of a sliced variant */
    bool moves, computes;           /* what there is to check */
    bool calls_back;                /* a callback of the extension computes */
};

enum { BENCH_MAX_CASES = 14 + BENCH_MAX_SLICES };

/*
 * Lists the cases of a problem. `own` is a communicator that flash does not serve, `flash` one
 * that it does.
 */
int bench_variants_list(const bench_problem_t *problem, MPI_Comm own, MPI_Comm flash,
                        bench_case_t cases[BENCH_MAX_CASES]);

/* Checks what a case has left in the buffers, which were poisoned before it ran. */
bool bench_variants_check(const bench_check_t *check, const bench_case_t *bench_case);

#endif /* BENCH_VARIANTS_H */
