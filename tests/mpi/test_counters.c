/*
 * test_counters.c: flash's performance variables, as a tool reads them (MPI 3.1, section 14.3).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <time.h>

#include "mpitest.h"
#include "pvars.h"

/* For the ring, and not. */
enum { LARGE = 2 << 20, SMALL = 16 };

/* Leaves the moving of data to the progress thread for a moment. */
static void gather(int bytes)
{
    char *recv = get_memory((size_t) bytes * (size_t) world_size);
    char *send = get_memory((size_t) bytes);
    struct timespec pause = {.tv_nsec = 5000000};
    MPI_Request request;

    memset(send, world_rank, (size_t) bytes);
    MPI_Iallgather(send, bytes, MPI_CHAR, recv, bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
    nanosleep(&pause, NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(send);
    free(recv);
}

static void count_calls(void)
{
    MPI_T_pvar_handle rings =
        pvar_of("coll_flash_ring_calls", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    MPI_T_pvar_handle passed =
        pvar_of("coll_flash_fallback_calls", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    unsigned long long served = world_size > 1;

    for (int i = 0; i < 3; i++) {
        gather(LARGE);
    }
    check(pvar_count(rings) == 3 * served, "%llu rings", pvar_count(rings));
    check(pvar_count(passed) == 0, "%llu calls passed on", pvar_count(passed));
    gather(SMALL);
    check(pvar_count(rings) == 3 * served, "%llu rings after a small call", pvar_count(rings));
    check(pvar_count(passed) == served, "%llu small calls passed on", pvar_count(passed));
    pvar_free(&rings);
    pvar_free(&passed);
}

static void reduce(MPI_Op op)
{
    double *send = get_memory(LARGE), *recv = get_memory(LARGE);
    int count = LARGE / (int) sizeof(double) / world_size;
    MPI_Request request;

    memset(send, 0, LARGE);
    MPI_Ireduce_scatter_block(send, recv, count, MPI_DOUBLE, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(send);
    free(recv);
}

static void take_second(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    memcpy(inout, in, (size_t) *count * sizeof(double));
}

/* Two served, and three passed on. */
static void call_in_all_ways(void)
{
    MPI_Op op;

    gather(LARGE);
    gather(SMALL);
    gather(SMALL);
    MPI_Op_create(take_second, 0, &op);
    reduce(op);
    MPI_Op_free(&op);
    reduce(MPI_SUM);
}

static void count_reasons(void)
{
    unsigned long long served = world_size > 1, ranks = (unsigned long long) world_size;
    unsigned long long block = LARGE / sizeof(double) / ranks * sizeof(double);
    struct {
        const char *name;
        unsigned long long expected;
        MPI_T_pvar_handle handle; /* its counter is 0 when this is made */
    } counts[] = {{"coll_flash_ring_calls", 2, NULL},
                  {"coll_flash_ring_bytes", ranks * (LARGE + block), NULL},
                  {"coll_flash_shm_calls", 0, NULL},
                  {"coll_flash_shm_bytes", 0, NULL},
                  {"coll_flash_callbacks", 0, NULL},
                  {"coll_flash_fallback_calls", 3, NULL},
                  {"coll_flash_fallback_bytes", ranks * (2 * SMALL + block), NULL},
                  {"coll_flash_plain_calls", 0, NULL},
                  {"coll_flash_plain_bytes", 0, NULL},
                  {"coll_flash_fallbacks_cost", 2, NULL},
                  {"coll_flash_fallbacks_algorithm", 0, NULL},
                  {"coll_flash_fallbacks_on_node", 0, NULL},
                  {"coll_flash_fallbacks_operation", 1, NULL},
                  {"coll_flash_fallbacks_persistent", 0, NULL},
                  {"coll_flash_fallbacks_ranks", 0, NULL},
                  {"coll_flash_fallbacks_merged", 0, NULL},
                  {"coll_flash_fallbacks_large", 0, NULL},
                  {"coll_flash_fallbacks_communicator", 0, NULL}};

    for (size_t k = 0; k < LENGTH(counts); k++) {
        counts[k].handle =
            pvar_of(counts[k].name, MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    }
    call_in_all_ways();
    for (size_t k = 0; k < LENGTH(counts); k++) {
        unsigned long long count = pvar_count(counts[k].handle);

        check(count == served * counts[k].expected, "%s is %llu, not %llu", counts[k].name, count,
              served * counts[k].expected);
        pvar_free(&counts[k].handle);
    }
}

/* How long it takes is nobody's business here, but that it does. */
static void measure_times(void)
{
    MPI_T_pvar_handle under_way =
        pvar_of("coll_flash_in_flight_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    MPI_T_pvar_handle exposed =
        pvar_of("coll_flash_exposed_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    bool served = world_size > 1;
    double waited, busy;

    check(pvar_seconds(under_way) == 0 && pvar_seconds(exposed) == 0, "time before any call");
    for (int i = 0; i < 3; i++) {
        gather(LARGE);
    }
    waited = pvar_seconds(exposed);
    busy = pvar_seconds(under_way);
    check((busy > 0) == served, "%g s under way", busy);
    check(waited >= 0 && waited <= busy, "%g s of %g s exposed", waited, busy);
    check(pvar_seconds(under_way) == busy, "time goes on with nothing under way");
    pvar_free(&under_way);
    pvar_free(&exposed);
}

static void watch_thread(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    MPI_T_pvar_handle wakeups =
        pvar_of("coll_flash_wakeups", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    MPI_T_pvar_handle time =
        pvar_of("coll_flash_thread_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    const char *off = getenv("OMPI_MCA_coll_flash_progress");
    bool expected = world_size > 1 && (off == NULL || strcmp(off, "off") != 0);
    char *send = get_memory(LARGE), *recv = get_memory((size_t) LARGE * (size_t) world_size);
    MPI_Request request;
    double seconds;

    memset(send, world_rank, LARGE);
    MPI_Iallgather(send, LARGE, MPI_CHAR, recv, LARGE, MPI_CHAR, MPI_COMM_WORLD, &request);
    while (expected && pvar_count(wakeups) == 0) {
        nanosleep(&pause,
                  NULL); /* out of MPI: without end, if the thread is not woken or not counted */
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    seconds = pvar_seconds(time);
    check(expected || pvar_count(wakeups) == 0, "%llu wake-ups", pvar_count(wakeups));
    check((seconds > 0) == expected && seconds >= 0, "%g seconds", seconds);
    free(send);
    free(recv);
    pvar_free(&wakeups);
    pvar_free(&time);
}

/*
 * How often the thread looks meanwhile is the other ranks' affair, too: test_progress has that none
 * calls it.
 */
static void count_pairwise_calls(void)
{
    enum { ROUNDS = 50, BYTES = 64 << 10 };
    MPI_T_pvar_handle pairwise =
        pvar_of("coll_flash_pairwise_calls", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    double *send = get_memory(BYTES), *recv = get_memory(BYTES);
    int count = BYTES / (int) sizeof(double) / world_size;
    struct timespec pause = {.tv_nsec = 1000000};
    MPI_Request request;

    memset(send, 0, BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Ireduce_scatter_block(send, recv, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        nanosleep(&pause, NULL);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check(pvar_count(pairwise) == (world_size > 1 ? ROUNDS : 0), "%llu calls pairwise",
          pvar_count(pairwise));
    pvar_free(&pairwise);
    free(send);
    free(recv);
}

static void calls(void)
{
    pvars_with(count_calls);
}

static void reasons(void)
{
    pvars_with(count_reasons);
}

static void times(void)
{
    pvars_with(measure_times);
}

static void pairwise(void)
{
    pvars_with(count_pairwise_calls);
}

static void thread(void)
{
    pvars_with(watch_thread);
}

TEST_PROGRAM(test_counters, MPI_THREAD_SINGLE, {"calls", calls}, {"reasons", reasons},
             {"times", times}, {"thread", thread}, {"pairwise", pairwise});
TEST_MAIN(test_counters)
