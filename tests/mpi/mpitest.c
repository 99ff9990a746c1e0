/*
 * mpitest.c: see mpitest.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

enum { MOST_LINES = 10 }; /* of one rank and case: the first failures tell most */

int world_rank, world_size, short_tier;
int handler_calls, handler_error;
MPI_Comm handler_comm;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* orders the failures of threads */
static unsigned failures, lines;
/* Written by the main thread between cases, read by threads that the cases start and end. */
static const char *point_name, *case_name = "start";

unsigned failed_checks(void)
{
    return failures;
}

void set_place(const char *point, const char *name)
{
    point_name = point;
    case_name = name;
    lines = 0;
}

bool check(bool good, const char *text, ...)
{
    char line[512];
    va_list args;

    if (good) {
        return true;
    }
    va_start(args, text);
    vsnprintf(line, sizeof(line), text, args);
    va_end(args);
    pthread_mutex_lock(&mutex);
    failures++;
    if (lines++ < MOST_LINES) {
        fprintf(stderr, "%s%srank %d of %d, case %s: %s\n", point_name == NULL ? "" : point_name,
                point_name == NULL ? "" : ": ", world_rank, world_size, case_name, line);
    }
    pthread_mutex_unlock(&mutex);
    return false;
}

bool check_class(int error, int class, const char *what)
{
    char found[MPI_MAX_ERROR_STRING], wanted[MPI_MAX_ERROR_STRING];
    int found_class, length;

    MPI_Error_class(error, &found_class);
    if (found_class == class) {
        return true;
    }
    MPI_Error_string(error, found, &length);
    MPI_Error_string(class, wanted, &length);
    return check(false, "%s: %s, not %s", what, found, wanted);
}

bool uses_shm(void)
{
    const char *shm = getenv("OMPI_MCA_coll_flash_shm");

    return shm != NULL && strcmp(shm, "no") != 0;
}

bool passes_others_on(void)
{
    const char *algorithm = getenv("OMPI_MCA_coll_flash_algorithm");

    return uses_shm() || (algorithm != NULL && strcmp(algorithm, "recdbl") == 0);
}

bool is_turn(size_t k)
{
    size_t turns = world_size <= 4 ? 3 : 9;

    return !short_tier || world_size <= 2 || (k + (size_t) world_size) % turns == 0;
}

void *get_memory(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);

    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

/* Sixteen at a time, which gcc -O2 makes vectors of. */
void fill_pattern_from(void *to, size_t first, size_t bytes, int owner, unsigned salt)
{
    enum { AT_A_TIME = 16 };
    unsigned char *byte = to;
    size_t k = 0;

    for (; k + AT_A_TIME <= bytes; k += AT_A_TIME) {
        for (size_t j = 0; j < AT_A_TIME; j++) {
            byte[k + j] = pattern(owner, first + k + j, salt);
        }
    }
    for (; k < bytes; k++) {
        byte[k] = pattern(owner, first + k, salt);
    }
}

void fill_pattern(void *to, size_t bytes, int owner, unsigned salt)
{
    fill_pattern_from(to, 0, bytes, owner, salt);
}

bool is_pattern(const void *data, size_t first, size_t bytes, int owner, unsigned salt)
{
    enum { AT_A_TIME = 256 };
    const unsigned char *byte = data;
    unsigned char wanted[AT_A_TIME];

    for (size_t k = 0; k < bytes; k += AT_A_TIME) {
        size_t length = bytes - k < AT_A_TIME ? bytes - k : AT_A_TIME;

        fill_pattern_from(wanted, first + k, length, owner, salt);
        if (memcmp(wanted, byte + k, length) != 0) {
            return false;
        }
    }
    return true;
}

static void count_error(MPI_Comm *comm, int *error, ...)
{
    handler_calls++;
    handler_error = *error;
    handler_comm = *comm;
}

MPI_Errhandler counting_handler(void)
{
    static MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

    if (handler == MPI_ERRHANDLER_NULL) {
        MPI_Comm_create_errhandler(count_error, &handler);
    }
    return handler;
}
