/*
 * mpitest.h: what the MPI test programs share: named cases, checks, and bytes to send.
 *
 * A program prints nothing unless something fails, and exits with 1 then. Its arguments name the
 * cases to run; none: all of them.
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

/* Says on stderr what went wrong unless `good`, with the rank and the case. Any thread. */
__attribute__((format(printf, 2, 3))) bool check(bool good, const char *text, ...);

/* check() that an MPI call returned, or a request ended with, an error of that class. */
bool check_class(int error, int class, const char *what);
/* Whether plain calls go over boards, and persistent requests to Open MPI's own: board.sh. */
bool uses_boards(void);
/* Whether persistent requests go there: that script, and doubling.sh. */
bool passes_persistent_on(void);

/*
 * MPI_Init_thread, the cases with a barrier after each, MPI_Finalize. Returns what main() returns.
 * FLASH_TEST_LEVEL=funneled, serialized or multiple in the environment: at that level instead.
 */
int run_cases(int argc, char **argv, int thread_level, const test_case_t cases[], size_t count);

/* malloc() that cannot fail. */
void *get_memory(size_t bytes);

/* Uninteresting but reproducible numbers. */
uint32_t mix(uint32_t a, uint32_t b, uint32_t c);

/* Byte `index` of what rank `owner` contributes to an allgather. */
static inline unsigned char pattern(int owner, size_t index, unsigned salt)
{
    uint32_t x =
        (uint32_t) owner * 0x9e3779b1u + (uint32_t) index * 0x85ebca6bu + salt * 0xc2b2ae35u;

    return (unsigned char) ((x ^ x >> 15) * 0x2c1b3c6du >> 24);
}

void fill_pattern(void *to, size_t bytes, int owner, unsigned salt);
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
