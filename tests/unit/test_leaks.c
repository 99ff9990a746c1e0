/*
 * test_leaks.c: operations that end well, fail, are refused or lose a peer leave no memory behind.
 *
 * A simulation frees what it has made itself, and the engines with it: then as many allocations are
 * left as were before it. With sanitizers, which have allocators of their own, none are counted.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <errno.h>
#include <stdlib.h>

#include "judge.h"
#include "prng.h"
#include "tap.h"

enum { CASES = 200, MOST_RANKS = 6 };

typedef enum { WELL, FAILS, REFUSES, IS_LOST, OUTCOMES } outcome_t;

static const char *const outcomes[OUTCOMES] = {[WELL] = "all is well",
                                               [FAILS] = "a callback, a sum or a copy fails",
                                               [REFUSES] = "a rank refuses",
                                               [IS_LOST] = "a rank is lost"};

/* ----------------------------------------------------------------- counting */

static long allocations; /* that have not been freed */

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static void *counted(void *memory)
{
    allocations += memory != NULL;
    return memory;
}

void *malloc(size_t size)
{
    return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return counted(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    void *moved = __libc_realloc(memory, size);

    return memory == NULL ? counted(moved) : moved; /* nobody here frees by it */
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = counted(__libc_memalign(alignment, size));
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory)
{
    allocations -= memory != NULL;
    __libc_free(memory);
}
#endif

/* -------------------------------------------------------------------- cases */

/* Every other one with device memory, and little scratch. */
static sim_spec_t random_spec(uint64_t *random, flash_kind_t kind)
{
    sim_spec_t spec = sim_random_spec(random, kind);

    if (prng_percent(random, 50)) {
        sim_bound(random, &spec);
    }
    return spec;
}

static void run(uint64_t seed, flash_kind_t kind, outcome_t outcome)
{
    uint64_t random = seed;
    uint32_t nranks = 2 + prng_below(&random, MOST_RANKS - 1), rank = prng_below(&random, nranks);
    sim_spec_t spec = random_spec(&random, kind);
    fake_options_t net = sim_random_net(&random);
    sim_t *sim;

    if (outcome == FAILS) {
        spec.fail_rank = rank;
        spec.fail_callback = spec.fail_combine = spec.fail_stage = 1 + prng_below(&random, 3);
    } else if (outcome == REFUSES) {
        spec.fail_rank = rank;
        spec.refuses = true;
    } else if (outcome == IS_LOST) {
        net.rendezvous = 0;
    }
    sim = sim_create(nranks, random, &net, &spec, 1);
    if (outcome == IS_LOST) {
        sim->loss.rank = rank;
        sim->loss.turn = prng_below(&random, 40 * nranks);
    }
    sim_run_random(sim);
    sim_destroy(sim);
}

static void test_kind(uint64_t seed, flash_kind_t kind, outcome_t outcome)
{
    long left = 0;

    for (uint32_t k = 0; k < CASES && left == 0; k += tap_stride()) {
        long before = allocations;

        run(seed + k, kind, outcome);
        left = allocations - before;
        if (left != 0) {
            diag("case %u: %ld", k, left);
        }
    }
    ok(left == 0, "%s: %s, and nothing is left behind", sim_kinds[kind], outcomes[outcome]);
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        for (outcome_t outcome = 0; outcome < OUTCOMES; outcome++) {
            test_kind(seed, kind, outcome);
        }
    }
    return tap_done();
}
