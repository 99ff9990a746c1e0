/*
 * programs.c: see programs.h, and run_program() of mpitest.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "programs.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "keep_libraries.h"

static const char *volatile hanging = "start"; /* for the signal handler */

/* ------------------------------------------------------------------------ hangs */

/* Says where it hangs. The script that runs this would only end it. */
static void report_hang(int signal)
{
    char line[160];
    int length = snprintf(line, sizeof(line), "rank %d of %d hangs in case %s\n", world_rank,
                          world_size, hanging);

    (void) signal;
    if (write(STDERR_FILENO, line, (size_t) length) == length) {
        sleep(2); /* the other ranks say the same before this one's end ends them */
    }
    _exit(1);
}

/*
 * A hang in which all threads sleep uses no CPU time: the other limit is for that alone, and far
 * away.
 */
void expect_end(void)
{
    enum { FAR = 4 };
    const char *value = getenv("FLASH_TEST_TIMEOUT");
    int limit = value == NULL ? 0 : atoi(value);
    const struct itimerval used = {.it_value = {.tv_sec = limit - 10}};

    if (limit > 10) {
        signal(SIGPROF, report_hang);
        setitimer(ITIMER_PROF, &used, NULL);
        signal(SIGALRM, report_hang);
        alarm(FAR * (unsigned) limit);
    }
}

void enter(const char *point, const char *name)
{
    hanging = name;
    set_place(point, name);
    expect_end();
}

/* ---------------------------------------------------------------------- programs */

/* The level that a program asks for, or FLASH_TEST_LEVEL's if that is in the environment. */
int level_of(const test_program_t *program)
{
    const char *level = getenv("FLASH_TEST_LEVEL");

    if (level == NULL) {
        return program->thread_level;
    }
    return strcmp(level, "funneled") == 0     ? MPI_THREAD_FUNNELED
           : strcmp(level, "serialized") == 0 ? MPI_THREAD_SERIALIZED
                                              : MPI_THREAD_MULTIPLE;
}

static bool is_wanted(const char *name, char **names)
{
    bool wanted = names[0] == NULL;

    for (char **other = names; *other != NULL; other++) {
        wanted |= strcmp(*other, name) == 0;
    }
    return wanted;
}

static long milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * FLASH_TEST_CASES names a file that is to hold how long each case took: to find what is worth
 * cutting.
 */
static void note_time(const char *program, const char *name, long begin)
{
    const char *path = getenv("FLASH_TEST_CASES");
    FILE *file = path != NULL && world_rank == 0 ? fopen(path, "a") : NULL;

    if (file != NULL) {
        fprintf(file, "%ld ms %d ranks %s %s\n", milliseconds() - begin, world_size, program, name);
        fclose(file);
    }
}

void run_cases(const test_program_t *program, const char *point, char **names)
{
    size_t ran = 0, named = 0;

    for (size_t k = 0; k < program->count; k++) {
        if (is_wanted(program->cases[k].name, names)) {
            long begin = milliseconds();

            enter(point, program->cases[k].name);
            program->cases[k].run();
            MPI_Barrier(MPI_COMM_WORLD);
            note_time(program->name, program->cases[k].name, begin);
            ran++;
        }
    }
    while (names[named] != NULL) {
        named++;
    }
    enter(point, "end");
    check(ran == (named > 0 ? named : program->count), "an argument names no case");
}

void begin_job(int level)
{
    const char *tier = getenv("FLASH_TEST_TIER");
    int provided;

    MPI_Init_thread(NULL, NULL, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    short_tier = tier == NULL || strcmp(tier, "short") == 0;
    MPI_Bcast(&short_tier, 1, MPI_INT, 0, MPI_COMM_WORLD);
    check(provided >= level, "thread level %d instead of %d", provided, level);
}

bool end_job(const test_program_t *program)
{
    MPI_Finalize();
    return program->close == NULL || program->close();
}

int run_program(const test_program_t *program, char **names)
{
    expect_end();
    if (program->open != NULL) {
        program->open();
    }
    begin_job(level_of(program));
    run_cases(program, NULL, names);
    return end_job(program) && failed_checks() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
