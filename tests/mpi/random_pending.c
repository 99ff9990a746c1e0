/*
 * random_pending.c: calls under way, and the ways to complete them.
 *
 * Each rank completes in an order of its own. No rank waits for ever: all post the same calls in
 * the same order, so that whoever has posted least waits for something that all have posted.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

void add_pending(operation_t *operation, MPI_Request request)
{
    sequence_t *sequence = operation->sequence;

    sequence->pending[sequence->count] = operation;
    sequence->requests[sequence->count] = request;
    sequence->count++;
}

/* Whether a call is complete, and its request freed. That of a persistent one lasts. */
static bool has_ended(const operation_t *operation, MPI_Request *request)
{
    int complete = 0;

    if (!operation->persistent) {
        return *request == MPI_REQUEST_NULL;
    }
    must(MPI_Request_get_status(*request, &complete, MPI_STATUS_IGNORE), operation->sequence,
         operation->number, "MPI_Request_get_status");
    if (complete) {
        must(MPI_Wait(request, MPI_STATUS_IGNORE), operation->sequence, operation->number,
             operation->name);
        see_request(*request);
        must(MPI_Request_free(request), operation->sequence, operation->number, "MPI_Request_free");
    }
    return complete;
}

/* Checks and forgets what is complete. */
static void sweep(sequence_t *sequence)
{
    int kept = 0;

    for (int k = 0; k < sequence->count; k++) {
        if (has_ended(sequence->pending[k], &sequence->requests[k])) {
            finish_operation(sequence->pending[k]);
        } else {
            sequence->pending[kept] = sequence->pending[k];
            sequence->requests[kept++] = sequence->requests[k];
        }
    }
    sequence->count = kept;
}

/* ------------------------------------------------------------------------ ways */

/* Each completes one request at least, of `count`, at least 1; returns an error code. */
typedef int way_fn(MPI_Request requests[], int count, uint64_t *own);

static int by_wait(MPI_Request requests[], int count, uint64_t *own)
{
    return MPI_Wait(&requests[prng_below(own, (uint32_t) count)], MPI_STATUS_IGNORE);
}

static int by_test(MPI_Request requests[], int count, uint64_t *own)
{
    int flag = 0, error = MPI_SUCCESS;

    while (!flag && error == MPI_SUCCESS) {
        error = MPI_Test(&requests[prng_below(own, (uint32_t) count)], &flag, MPI_STATUS_IGNORE);
    }
    return error;
}

static int by_status(MPI_Request requests[], int count, uint64_t *own)
{
    MPI_Request *request = &requests[prng_below(own, (uint32_t) count)];
    int flag = 0, error = MPI_SUCCESS;

    while (!flag && error == MPI_SUCCESS) {
        error = MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
    }
    return error == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : error;
}

static int by_waitany(MPI_Request requests[], int count, uint64_t *own)
{
    int index;

    (void) own;
    return MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
}

static int by_testany(MPI_Request requests[], int count, uint64_t *own)
{
    int flag = 0, index, error = MPI_SUCCESS;

    (void) own;
    while (!flag && error == MPI_SUCCESS) {
        error = MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
    }
    return error;
}

static int by_waitsome(MPI_Request requests[], int count, uint64_t *own)
{
    int done, indices[RANDOM_DEPTH];

    (void) own;
    return MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
}

static int by_testsome(MPI_Request requests[], int count, uint64_t *own)
{
    int done = 0, indices[RANDOM_DEPTH], error = MPI_SUCCESS;

    (void) own;
    while (done == 0 && error == MPI_SUCCESS) {
        error = MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
    }
    return error;
}

static int by_waitall(MPI_Request requests[], int count, uint64_t *own)
{
    int first = (int) prng_below(own, (uint32_t) count);
    int length = 1 + (int) prng_below(own, (uint32_t) (count - first));

    return MPI_Waitall(length, requests + first, MPI_STATUSES_IGNORE);
}

static int by_testall(MPI_Request requests[], int count, uint64_t *own)
{
    int first = (int) prng_below(own, (uint32_t) count);
    int length = 1 + (int) prng_below(own, (uint32_t) (count - first));
    int flag = 0, error = MPI_SUCCESS;

    while (!flag && error == MPI_SUCCESS) {
        error = MPI_Testall(length, requests + first, &flag, MPI_STATUSES_IGNORE);
    }
    return error;
}

void complete_pending(sequence_t *sequence, int most, uint64_t *own)
{
    static const struct {
        const char *name;
        way_fn *run;
    } ways[] = {{"MPI_Wait", by_wait},
                {"MPI_Test", by_test},
                {"MPI_Request_get_status", by_status},
                {"MPI_Waitany", by_waitany},
                {"MPI_Testany", by_testany},
                {"MPI_Waitsome", by_waitsome},
                {"MPI_Testsome", by_testsome},
                {"MPI_Waitall", by_waitall},
                {"MPI_Testall", by_testall}};

    while (sequence->count > most) {
        size_t way = prng_below(own, LENGTH(ways));

        sequence->doing = ways[way].name;
        must(ways[way].run(sequence->requests, sequence->count, own), sequence, sequence->number,
             ways[way].name);
        sweep(sequence);
    }
}

/*
 * Open MPI 4.1's own non-blocking collectives, which serve what flash passes on, at times crash
 * when their communicator is freed under them: they are completed first.
 */
void detach_pending(sequence_t *sequence, MPI_Comm comm, uint64_t *own)
{
    bool all = prng_percent(own, 30);

    sequence->doing = "MPI_Wait before MPI_Comm_free";
    for (int k = 0; k < sequence->count; k++) {
        operation_t *operation = sequence->pending[k];

        if (operation->comm == comm && (all || !operation->ring)) {
            must(MPI_Wait(&sequence->requests[k], MPI_STATUS_IGNORE), sequence, operation->number,
                 sequence->doing);
        }
    }
    sweep(sequence);
    for (int k = 0; k < sequence->count; k++) {
        if (sequence->pending[k]->comm == comm) {
            sequence->pending[k]->comm = MPI_COMM_NULL;
        }
    }
}
