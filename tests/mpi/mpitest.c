/*
 * mpitest.c: see mpitest.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "keep_libraries.h"

enum { MOST_LINES = 10 }; /* of one rank: the first failures tell most */

int world_rank, world_size;
int handler_calls, handler_error;
MPI_Comm handler_comm;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* orders the failures of threads */
static unsigned failures;
static const char *volatile current = "start";

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
    if (failures++ < MOST_LINES) {
        fprintf(stderr, "rank %d of %d, case %s: %s\n", world_rank, world_size, current, line);
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

/* Says where it hangs, shortly before the script that runs this would only end it. */
static void report_hang(int signal)
{
    char line[128];
    int length = snprintf(line, sizeof(line), "rank %d of %d hangs in case %s\n", world_rank,
                          world_size, current);

    (void) signal;
    if (write(STDERR_FILENO, line, (size_t) length) == length) {
        sleep(2); /* the other ranks say the same before this one's end ends them */
    }
    _exit(1);
}

static void expect_end(void)
{
    const char *limit = getenv("FLASH_TEST_TIMEOUT");

    if (limit != NULL && atoi(limit) > 10) {
        signal(SIGALRM, report_hang);
        alarm((unsigned) atoi(limit) - 10);
    }
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int arg = 1; arg < argc; arg++) {
        if (strcmp(argv[arg], name) == 0) {
            return true;
        }
    }
    return argc < 2;
}

bool uses_boards(void)
{
    const char *board = getenv("OMPI_MCA_coll_flash_board");

    return board != NULL && strcmp(board, "yes") == 0;
}

bool passes_persistent_on(void)
{
    const char *rounds = getenv("OMPI_MCA_coll_flash_doubling_bytes");

    return uses_boards() || (rounds != NULL && strcmp(rounds, "0") != 0);
}

/* The level that a program asks for, or FLASH_TEST_LEVEL's if that is in the environment. */
static int level_for(int thread_level)
{
    const char *level = getenv("FLASH_TEST_LEVEL");

    if (level != NULL) {
        thread_level = strcmp(level, "funneled") == 0     ? MPI_THREAD_FUNNELED
                       : strcmp(level, "serialized") == 0 ? MPI_THREAD_SERIALIZED
                                                          : MPI_THREAD_MULTIPLE;
    }
    return thread_level;
}

int run_cases(int argc, char **argv, int thread_level, const test_case_t cases[], size_t count)
{
    int provided, ran = 0;

    expect_end();
    thread_level = level_for(thread_level);
    MPI_Init_thread(&argc, &argv, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    check(provided >= thread_level, "thread level %d instead of %d", provided, thread_level);
    for (size_t k = 0; k < count; k++) {
        if (is_wanted(cases[k].name, argc, argv)) {
            current = cases[k].name;
            cases[k].run();
            MPI_Barrier(MPI_COMM_WORLD);
            ran++;
        }
    }
    current = "end";
    check(ran == (argc > 1 ? argc - 1 : (int) count), "an argument names no case");
    MPI_Finalize();
    if (failures > MOST_LINES) {
        fprintf(stderr, "rank %d: %u failures in all\n", world_rank, failures);
    }
    return failures > 0;
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

uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t x =
        a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu ^ (c + 0x165667b1u) * 0xc2b2ae35u;

    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

void fill_pattern(void *to, size_t bytes, int owner, unsigned salt)
{
    unsigned char *byte = to;

    for (size_t k = 0; k < bytes; k++) {
        byte[k] = pattern(owner, k, salt);
    }
}

bool is_pattern(const void *data, size_t first, size_t bytes, int owner, unsigned salt)
{
    const unsigned char *byte = data;
    unsigned wrong = 0;

    for (size_t k = 0; k < bytes; k++) {
        wrong |= byte[k] ^ pattern(owner, first + k, salt);
    }
    return wrong == 0;
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
