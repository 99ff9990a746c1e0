/*
 * requests_completion.c: every way to complete many requests.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "requests.h"

/* Another order on each rank. */
static void shuffle(int order[], int count, uint32_t seed)
{
    for (int k = 0; k < count; k++) {
        order[k] = k;
    }
    for (int k = count - 1; k > 0; k--) {
        int other = (int) (mix((uint32_t) world_rank, (uint32_t) k, seed) % (uint32_t) (k + 1));
        int kept = order[k];

        order[k] = order[other];
        order[other] = kept;
    }
}

void requests_wait(MPI_Request requests[], int count)
{
    int order[MANY];

    shuffle(order, count, 1);
    for (int k = 0; k < count; k++) {
        MPI_Wait(&requests[order[k]], MPI_STATUS_IGNORE);
    }
}

static void complete_test(MPI_Request requests[], int count)
{
    int left = count, flag;

    for (uint32_t step = 0; left > 0; step++) {
        int which = (int) (mix((uint32_t) world_rank, step, 2) % (uint32_t) count);

        if (requests[which] != MPI_REQUEST_NULL) {
            MPI_Test(&requests[which], &flag, MPI_STATUS_IGNORE);
            left -= flag;
        }
    }
}

static void complete_any(MPI_Request requests[], int count)
{
    int index;

    for (int k = 0; k < count; k++) {
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        check(index >= 0 && index < count, "MPI_Waitany returns %d", index);
    }
    MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    check(index == MPI_UNDEFINED, "MPI_Waitany finds a request too many");
}

static void complete_some(MPI_Request requests[], int count)
{
    int done, indices[MANY], all = 0;

    do {
        MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
        all += done == MPI_UNDEFINED ? 0 : done;
    } while (done != MPI_UNDEFINED);
    check(all == count, "MPI_Waitsome completes %d of %d", all, count);
}

static void complete_all(MPI_Request requests[], int count)
{
    MPI_Status statuses[MANY];

    check(MPI_Waitall(count, requests, statuses) == MPI_SUCCESS, "MPI_Waitall fails");
}

static void complete_testall(MPI_Request requests[], int count)
{
    int flag = 0;

    while (!flag) {
        MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
    }
}

requests_complete_fn *const requests_ways[REQUESTS_WAYS] = {
    requests_wait, complete_test, complete_any, complete_some, complete_all, complete_testall};
