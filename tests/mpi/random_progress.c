/*
 * random_progress.c: how far a run is, and its memory: after a while it is to stay as it is.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/*
 * Between the first quarter of a run and its end, apart from what the operations under way hold.
 * Until then there has been about everything: free lists, pools of UCX's, communicators. Runs of
 * 5,000 to 160,000 operations grew by less than two thirds of it, the longest ones least.
 */
enum { MOST_GROWTH = 8 * 1024 /* kB */ };

static struct timespec began;

void begin_progress(void)
{
    clock_gettime(CLOCK_MONOTONIC, &began);
}

static long kilobytes(const char *name)
{
    FILE *status = fopen("/proc/self/status", "r");
    size_t length = strlen(name);
    char line[256];
    long value = -1;

    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            value = atol(line + length + 1);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return value;
}

/* The largest of all ranks' values; all are at the same operation. */
static void say_progress(const sequence_t *sequence, uint64_t done, long resident, long grown)
{
    long mine[] = {resident, kilobytes("VmHWM"), grown}, most[LENGTH(mine)];
    struct timespec now;

    must(MPI_Reduce(mine, most, LENGTH(mine), MPI_LONG, MPI_MAX, 0, sequence->home), sequence,
         sequence->number, "MPI_Reduce");
    if (world_rank != 0) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("seed %" PRIu64 ": %3d %%, %" PRIu64 " operations on each of %d threads of %d ranks, "
           "%ld s; on any rank at most VmRSS %ld kB, VmHWM %ld kB, grown by %ld kB\n",
           options.seed, (int) (100 * done / options.operations), done, options.threads, world_size,
           (long) (now.tv_sec - began.tv_sec), most[0], most[1], most[2]);
    fflush(stdout);
}

static void watch_memory(const sequence_t *sequence, uint64_t done)
{
    static long settled; /* VmRSS, after a quarter */
    uint64_t all = options.operations;
    long under_way = (long) (options.most / 1024) * RANDOM_DEPTH * options.threads;
    long resident = kilobytes("VmRSS"), grown;

    if (done == all / 4) {
        settled = resident;
    }
    grown = done > all / 4 ? resident - settled : 0;
    say_progress(sequence, done, resident, grown);
    if (done == all && grown > MOST_GROWTH + under_way) {
        fail(sequence, sequence->number, "memory has grown by %ld kB since the first quarter",
             grown);
    }
}

void show_progress(const sequence_t *sequence, uint64_t done)
{
    uint64_t all = options.operations;

    if (options.patience > 0) {
        alarm(options.patience);
    }
    if (options.watch_memory &&
        (done == all / 10 || done == all / 4 || done == all / 2 || done == all)) {
        watch_memory(sequence, done);
    }
}
