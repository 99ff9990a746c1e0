/*
 * mpitest.h: what the MPI test programs share: named cases, checks, and bytes to send. points.c
 * runs the programs.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MPITEST_H
#define MPITEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* For a function that looks at memory where another thread may write: ThreadSanitizer is not to. */
#define LOOKS_AHEAD __attribute__((no_sanitize("thread")))

typedef struct test_case {
    const char *name;
    void (*run)(void);
} test_case_t;

extern int world_rank, world_size;
extern int short_tier; /* FLASH_TEST_TIER of rank 0 */

/* Says on stderr what went wrong unless `good`, with the rank and the case. Any thread. */
__attribute__((format(printf, 2, 3))) bool check(bool good, const char *text, ...);

/* check() that an MPI call returned, or a request ended with, an error of that class. */
bool check_class(int error, int class, const char *what);
/*
 * Whether plain calls go through shared memory: shm.sh.
 */
bool uses_shm(void);
/*
 * Whether plain calls are served by an algorithm that has allgathers and reduce-scatters alone: that
 * script, and recdbl.sh. Open MPI's own serve all others, and persistent requests.
 */
bool passes_others_on(void);

/*
 * A test program: cases that run one after another on all ranks, with a barrier after each. Several
 * programs are linked into one executable, which runs the points of a script in one job.
 */
typedef struct test_program {
    const char *name;
    int thread_level;    /* MPI_THREAD_* that the cases ask for; FLASH_TEST_LEVEL overrides it */
    void (*open)(void);  /* before MPI_Init; or NULL */
    bool (*close)(void); /* after MPI_Finalize: false, and said, if something is left; or NULL */
    const test_case_t *cases;
    size_t count;
} test_program_t;

#define TEST_PROGRAM_WITH(program, level, opens, closes, ...)   \
    static const test_case_t program##_cases[] = {__VA_ARGS__}; \
    const test_program_t program = {.name = #program,           \
                                    .thread_level = (level),    \
                                    .open = (opens),            \
                                    .close = (closes),          \
                                    .cases = program##_cases,   \
                                    .count = LENGTH(program##_cases)}
#define TEST_PROGRAM(program, level, ...) TEST_PROGRAM_WITH(program, level, NULL, NULL, __VA_ARGS__)

/* The programs of an executable; NULL behind the last. */
extern const test_program_t *const test_programs[];
/* Of an executable of one program. */
#define TEST_MAIN(program) const test_program_t *const test_programs[] = {&(program), NULL};

/*
 * Runs cases of one program in a job of their own, from MPI_Init to MPI_Finalize. `names` are those
 * of the cases, up to NULL; none: all. Returns what main() returns.
 */
int run_program(const test_program_t *program, char **names);

/* Checks that have failed on this rank. */
unsigned failed_checks(void);
/* What failures name as the place where they happened; NULL: the start or the end of the job. */
void set_place(const char *point, const char *name);

/*
 * Whether case `k` of many alike is to be tried. The short tier has a third of them with three and
 * four ranks, a ninth with more, and others with the next number of ranks. Alike on all ranks.
 */
bool is_turn(size_t k);

/* malloc() that cannot fail. */
void *get_memory(size_t bytes);

/* Uninteresting but reproducible numbers. */
static inline uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t x =
        a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu ^ (c + 0x165667b1u) * 0xc2b2ae35u;

    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Byte `index` of what rank `owner` contributes to an allgather. */
static inline unsigned char pattern(int owner, size_t index, unsigned salt)
{
    uint32_t x =
        (uint32_t) owner * 0x9e3779b1u + (uint32_t) index * 0x85ebca6bu + salt * 0xc2b2ae35u;

    return (unsigned char) ((x ^ x >> 15) * 0x2c1b3c6du >> 24);
}

void fill_pattern(void *to, size_t bytes, int owner, unsigned salt);
/* Likewise, from byte `first` of that block on. */
void fill_pattern_from(void *to, size_t first, size_t bytes, int owner, unsigned salt);
/* Whether `bytes` from byte `first` on of that block are there. */
bool is_pattern(const void *data, size_t first, size_t bytes, int owner, unsigned salt);

/*
 * After MPI_Wait() of a persistent request that another thread may have completed: the order that
 * Open MPI makes, for ThreadSanitizer (coll_flash_compat.h), which sees it of other requests where
 * flash frees them.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define see_request(request) __tsan_acquire(request)
#else
#define see_request(request) ((void) (request))
#endif

/* An error handler for communicators that only counts. Returned errors are what calls return. */
MPI_Errhandler counting_handler(void);
extern int handler_calls, handler_error; /* how often, and the latest error code */
extern MPI_Comm handler_comm;            /* where */

#endif /* MPITEST_H */
