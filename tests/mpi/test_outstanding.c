/*
 * test_outstanding.c: many calls outstanding for a rank that makes its own later: what arrives
 * there meanwhile takes bounded memory, and all calls end; and for one whose callbacks wait for a
 * later call's end.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <time.h>

#include <mpix_flash.h>

#include "mpitest.h"

/* Without a bound, 2 MiB of each call are sent: 64 MiB in all. */
enum { CALLS = 32, BLOCK = 2 << 20, MOST_GROWTH_KIB = 24 << 10 };

static char *block, *blocks[CALLS], *others;
static MPI_Comm comm, other;

/* Of this process, resident, in KiB; 0 where sanitizers have memory of their own. */
static long memory_in_use(void)
{
    long resident = 0;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];

    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        (void) sscanf(line, "VmRSS: %ld", &resident);
    }
    if (status != NULL) {
        fclose(status);
    }
#endif
    return resident;
}

static char *make(size_t bytes, int value)
{
    char *memory = malloc(bytes);

    if (memory == NULL) {
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    }
    memset(memory, value, bytes);
    return memory;
}

static void gather_others(void)
{
    MPI_Request request;

    MPI_Iallgather(block, BLOCK, MPI_BYTE, others, BLOCK, MPI_BYTE, other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void call_all(MPI_Request *requests)
{
    for (int k = 0; k < CALLS; k++) {
        MPI_Iallgather(block, BLOCK, MPI_BYTE, blocks[k], BLOCK, MPI_BYTE, comm, &requests[k]);
    }
}

/*
 * Until all that can be sent is: the longer, the surer is what the test finds, and nothing else. On a
 * loaded machine a nap takes many times as long as it should.
 */
static void go_on(int count, MPI_Request *requests)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    double end = MPI_Wtime() + 1.5;
    int all;

    for (int k = 0; k < 200 || MPI_Wtime() < end; k++) {
        MPI_Testall(count, requests, &all, MPI_STATUSES_IGNORE);
        nanosleep(&moment, NULL);
    }
}

/* Whoever is late waits for this rank in the meantime, inside MPI. */
static void call_early(MPI_Request *requests)
{
    call_all(requests);
    go_on(CALLS, requests);
    gather_others();
}

static void call_late(MPI_Request *requests)
{
    long before = memory_in_use(), grown;

    gather_others();
    grown = memory_in_use() - before;
    check(grown <= MOST_GROWTH_KIB, "%ld KiB of others' messages are here", grown);
    call_all(requests);
}

static void late_receiver(void)
{
    MPI_Request requests[CALLS];

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    block = make(BLOCK, world_rank + 1);
    others = make((size_t) world_size * BLOCK, 0);
    for (int k = 0; k < CALLS; k++) {
        blocks[k] = make((size_t) world_size * BLOCK, 0);
    }
    gather_others(); /* connects */
    if (world_rank == world_size - 1) {
        call_late(requests);
    } else {
        call_early(requests);
    }
    MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < CALLS; k++) {
        for (int rank = 0; rank < world_size; rank++) {
            const char *part = blocks[k] + (size_t) rank * BLOCK;

            check(part[0] == rank + 1 && memcmp(part, part + 1, BLOCK - 1) == 0,
                  "call %d: the block of rank %d", k, rank);
        }
        free(blocks[k]);
    }
    free(block);
    free(others);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&other);
}

/* ------------------------------------------------- callbacks that wait for a later call */

enum { REDUCTIONS = 8 };

static MPIX_Flash_handle held[REDUCTIONS * 64];
static int held_count;
static bool holding;

/* Ones; on one rank, pieces stay pending until the later call has ended there. */
static int produce(const MPIX_Flash_block *piece, void *arg)
{
    (void) arg;
    memset(piece->data, 1, (size_t) piece->count);
    if (!holding || held_count == (int) LENGTH(held)) {
        return MPI_SUCCESS;
    }
    held[held_count++] = piece->handle;
    return MPIX_FLASH_PENDING;
}

static void release_held(void)
{
    holding = false;
    while (held_count > 0) {
        check_class(MPIX_Flash_complete(held[--held_count], MPI_SUCCESS), MPI_SUCCESS, "complete");
    }
}

static void callback_waits(void)
{
    MPI_Request reductions[REDUCTIONS], gather;
    char *sums[REDUCTIONS];

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    block = make(BLOCK, world_rank + 1);
    others = make((size_t) world_size * BLOCK, 0);
    holding = world_rank == 1;
    for (int k = 0; k < REDUCTIONS; k++) {
        sums[k] = make(BLOCK, 0);
        MPIX_Ireduce_scatter_block_compute(produce, NULL, NULL, sums[k], BLOCK, MPI_CHAR, MPI_SUM,
                                           comm, &reductions[k]);
    }
    go_on(REDUCTIONS, reductions);
    MPI_Iallgather(block, BLOCK, MPI_BYTE, others, BLOCK, MPI_BYTE, comm, &gather);
    MPI_Wait(&gather, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        check(others[(size_t) rank * BLOCK] == rank + 1, "the block of rank %d", rank);
    }
    release_held();
    MPI_Waitall(REDUCTIONS, reductions, MPI_STATUSES_IGNORE);
    for (int k = 0; k < REDUCTIONS; k++) {
        check(sums[k][0] == world_size && memcmp(sums[k], sums[k] + 1, BLOCK - 1) == 0, "sum %d",
              k);
        free(sums[k]);
    }
    free(block);
    free(others);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_outstanding, MPI_THREAD_SINGLE, {"late_receiver", late_receiver},
             {"callback_waits", callback_waits});
