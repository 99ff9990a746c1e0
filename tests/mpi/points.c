/*
 * points.c: main() of the test programs: runs one program in a job of its own, or the points of a
 * script one after another in one job.
 *
 *   EXECUTABLE [PROGRAM] [CASE]...   the cases of that program; none: all of them. Prints nothing
 *                                    unless something fails, and ends with 1 then.
 *   EXECUTABLE --points FILE RESULTS
 *                                    Each line of FILE is a point: NUMBER, a tab, SETTING=VALUE|...
 *                                    (settings.h), a tab, PROGRAM [CASE]... Rank 0 adds to RESULTS
 *                                    "begin NUMBER", and "ok NUMBER MILLISECONDS" or "not ok NUMBER
 *                                    MILLISECONDS". A job has one thread level, that of its first
 *                                    point; it leaves out points of other levels.
 *
 * A rank that hangs (see expect_end()) says in which case, and ends the job. Whoever runs the job
 * then starts another one, for the points that are left.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "programs.h"
#include "settings.h"

enum { MOST_WORDS = 64, MOST_LENGTH = 4096 };

/* ------------------------------------------------------------------------ points */

typedef struct point {
    char text[MOST_LENGTH];
    const char *number;
    char *settings[MOST_WORDS], *words[MOST_WORDS]; /* parts of the text; NULL behind the last */
    const test_program_t *program;
} point_t;

static const test_program_t *find_program(const char *name)
{
    for (const test_program_t *const *program = test_programs; *program != NULL; program++) {
        if (strcmp((*program)->name, name) == 0) {
            return *program;
        }
    }
    return NULL;
}

static void split(char *text, const char *at, char *words[MOST_WORDS])
{
    size_t count = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, at, &rest); word != NULL && count < MOST_WORDS - 1;
         word = strtok_r(NULL, at, &rest)) {
        words[count++] = word;
    }
    words[count] = NULL;
}

/* False: there is no more. Ends the process if the line is no point. */
static bool read_point(FILE *file, point_t *point)
{
    char *settings, *words;

    if (fgets(point->text, sizeof(point->text), file) == NULL) {
        return false;
    }
    point->text[strcspn(point->text, "\n")] = '\0';
    settings = strchr(point->text, '\t');
    words = settings == NULL ? NULL : strchr(settings + 1, '\t');
    if (words == NULL) {
        fprintf(stderr, "no point: %s\n", point->text);
        exit(2);
    }
    *settings++ = *words++ = '\0';
    point->number = point->text;
    split(settings, "|", point->settings);
    split(words, " ", point->words);
    point->program = find_program(point->words[0]);
    if (point->program == NULL) {
        fprintf(stderr, "no program: %s\n", point->words[0]);
        exit(2);
    }
    return true;
}

static FILE *results; /* rank 0's */

__attribute__((format(printf, 1, 2))) static void note(const char *text, ...)
{
    va_list args;

    if (world_rank == 0) {
        va_start(args, text);
        vfprintf(results, text, args);
        va_end(args);
        fflush(results);
    }
}

static long milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void run_point(const point_t *point, MPI_Comm own)
{
    unsigned before = failed_checks(), failed;
    long begin = milliseconds();

    note("begin %s\n", point->number);
    enter(point->number, "its settings");
    settings_apply(point->settings);
    run_cases(point->program, point->number, (char **) point->words + 1);
    settings_take_back(point->settings);
    failed = failed_checks() - before;
    enter(point->number, "what follows it");
    PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_UNSIGNED, MPI_SUM, own);
    note("%s %s %ld\n", failed == 0 ? "ok" : "not ok", point->number, milliseconds() - begin);
}

static int level_of_point(const point_t *point)
{
    int level;

    settings_export(point->settings, true);
    level = level_of(point->program);
    settings_export(point->settings, false);
    return level;
}

static int run_points(const char *path, const char *results_path)
{
    FILE *file = fopen(path, "r");
    const test_program_t *first;
    point_t point;
    MPI_Comm own;
    bool well;
    int level;

    if (file == NULL || !read_point(file, &point)) {
        fprintf(stderr, "%s: no points\n", path);
        return 2;
    }
    first = point.program;
    level = level_of_point(&point);
    expect_end();
    if (first->open != NULL) {
        first->open();
    }
    begin_job(level);
    well = failed_checks() == 0;
    results = fopen(results_path, "a");
    if (results == NULL) {
        fprintf(stderr, "%s: cannot be written\n", results_path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    PMPI_Comm_dup(MPI_COMM_WORLD, &own);
    settings_begin();
    do {
        if (level_of_point(&point) == level) {
            run_point(&point, own);
        }
    } while (read_point(file, &point));
    fclose(file);
    fclose(results);
    enter(NULL, "end");
    settings_end();
    MPI_Comm_free(&own);
    return end_job(first) && well ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const test_program_t *program = argc > 1 ? find_program(argv[1]) : NULL;

    if (argc == 4 && strcmp(argv[1], "--points") == 0) {
        return run_points(argv[2], argv[3]);
    }
    if (program == NULL && test_programs[1] != NULL) {
        fprintf(stderr, "usage: %s PROGRAM [CASE]...\n", argv[0]);
        return 2;
    }
    return program == NULL ? run_program(test_programs[0], argv + 1)
                           : run_program(program, argv + 2);
}
