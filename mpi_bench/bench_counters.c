/*
 * bench_counters.c: what flash says it did, through the MPI tool interface (MPI 3.1, 14.3), and what the kernel says of
 * its progress thread.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_counters.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include <mpi.h>

enum { RING, PAIRWISE, SHM, RECDBL, FALLBACK, WAKEUPS, THREAD_SECONDS, COUNTERS };

static const char *const names[COUNTERS] = {
    "coll_flash_ring_calls",    "coll_flash_pairwise_calls", "coll_flash_shm_calls",
    "coll_flash_recdbl_calls",  "coll_flash_fallback_calls", "coll_flash_wakeups",
    "coll_flash_thread_seconds"};

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS];
static char thread_status[64]; /* the kernel's file of the progress thread; "": none was found */

/* The counter that a variable of the library is, or COUNTERS. */
static int which(int index)
{
    int length, none = 0, level, class, bind, readonly, continuous, atomic, i;
    MPI_Datatype type;
    MPI_T_enum values;
    char name[64];

    length = (int) sizeof(name);
    if (MPI_T_pvar_get_info(index, name, &length, &level, &class, &type, &values, NULL, &none,
                            &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS) {
        return COUNTERS;
    }
    for (i = 0; i < COUNTERS && strcmp(name, names[i]) != 0; i++) {
    }
    return i;
}

void bench_counters_open(void)
{
    int level, count = 0, values, index, counter;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    for (counter = 0; counter < COUNTERS; counter++) {
        handles[counter] = MPI_T_PVAR_HANDLE_NULL;
    }
    MPI_T_pvar_get_num(&count);
    for (index = 0; index < count; index++) {
        counter = which(index);
        if (counter < COUNTERS) {
            MPI_T_pvar_handle_alloc(session, index, NULL, &handles[counter], &values);
        }
    }
}

void bench_counters_close(void)
{
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

static void read_one(int counter, void *value)
{
    if (handles[counter] != MPI_T_PVAR_HANDLE_NULL) {
        MPI_T_pvar_read(session, handles[counter], value);
    }
}

static bool is_progress_thread(const char *number)
{
    char path[64], name[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", number);
    file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    if (fgets(name, sizeof(name), file) == NULL) {
        name[0] = '\0';
    }
    fclose(file);
    return strcmp(name, "flash-progress\n") == 0;
}

/* The first operation starts the thread, which stays to the end. */
static void find_thread(void)
{
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;

    while (threads != NULL && thread_status[0] == '\0' && (entry = readdir(threads)) != NULL) {
        if (is_progress_thread(entry->d_name)) {
            snprintf(thread_status, sizeof(thread_status), "/proc/self/task/%.16s/status",
                     entry->d_name);
        }
    }
    if (threads != NULL) {
        closedir(threads);
    }
}

/* Those in which the thread slept, and those in which another one took its core. */
static unsigned long long count_switches(void)
{
    unsigned long long sum = 0, one;
    char line[128];
    FILE *file;

    if (thread_status[0] == '\0') {
        find_thread();
    }
    file = fopen(thread_status, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "voluntary_ctxt_switches: %llu", &one) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %llu", &one) == 1) {
            sum += one;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return sum;
}

bench_counters_t bench_counters_read(bool switches)
{
    bench_counters_t counters = {0};

    read_one(RING, &counters.ring);
    read_one(PAIRWISE, &counters.pairwise);
    read_one(SHM, &counters.shm);
    read_one(RECDBL, &counters.recdbl);
    read_one(FALLBACK, &counters.fallback);
    read_one(WAKEUPS, &counters.wakeups);
    read_one(THREAD_SECONDS, &counters.thread_seconds);
    if (switches) {
        counters.switches = count_switches();
    }
    return counters;
}
