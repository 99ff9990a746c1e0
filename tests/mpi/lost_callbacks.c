/*
 * lost_callbacks.c: see lost_callbacks.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <mpix_flash.h>

#include "lost_calls.h"
#include "lost_callbacks.h"
#include "mpitest.h"

enum { HOLD_SECONDS = 2 }; /* longer than it takes to find out that a rank has died */

static bool holds; /* the callbacks of this round leave their first piece pending */
static bool held;
static MPIX_Flash_handle handle; /* of that */
static int callbacks_left;       /* of the victim, before that one is done; 0: no end */

static int now_or_later(const MPIX_Flash_block *block)
{
    if (callbacks_left > 0 && --callbacks_left == 0) {
        raise(SIGKILL);
    }
    if (!holds || held) {
        return MPI_SUCCESS;
    }
    held = true;
    handle = block->handle;
    return MPIX_FLASH_PENDING;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    (void) arg;
    return now_or_later(block);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    int64_t *data = block->data;

    (void) arg;
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = world_rank + 1;
    }
    return now_or_later(block);
}

int lost_gather_compute(MPI_Request *request)
{
    return MPIX_Iallgather_compute(lost_send, lost_count, MPI_INT64_T, lost_recv, lost_count,
                                   MPI_INT64_T, consume, NULL, NULL, MPI_COMM_WORLD, request);
}

int lost_reduce_compute(MPI_Request *request)
{
    return MPIX_Ireduce_scatter_block_compute(produce, NULL, NULL, lost_recv, lost_count,
                                              MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, request);
}

void lost_callbacks_begin(bool hold, int dies_in)
{
    holds = hold;
    held = false;
    callbacks_left = dies_in;
}

int lost_wait_holding(MPI_Request *request)
{
    time_t end = time(NULL) + HOLD_SECONDS;
    int flag = 0, error = MPI_SUCCESS;

    while (!flag && error == MPI_SUCCESS && time(NULL) < end) {
        error = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    }
    if (held) {
        if (flag || error != MPI_SUCCESS) {
            printf("rank %d: an operation ended with a piece pending\n", world_rank);
        }
        MPIX_Flash_complete(handle, MPI_SUCCESS);
    }
    return error != MPI_SUCCESS ? error : MPI_Wait(request, MPI_STATUS_IGNORE);
}
