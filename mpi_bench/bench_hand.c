/*
 * bench_hand.c: see bench_hand.h. The schedules are flash's: own block first, own block last.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_hand.h"

#include <string.h>

#include "bench_stats.h"

enum { RECEIVE, SEND, REQUESTS, TAG = 1 };

static int rank_at(const bench_problem_t *problem, int ahead)
{
    return (problem->rank + ahead + problem->nranks) % problem->nranks;
}

/* A rank's rows in a buffer of all rows that travel, and their elements. */
static void *rows_of(const bench_problem_t *problem, const void *buffer, int rank)
{
    return bench_row(problem, buffer, problem->blocks.source[rank], problem->row);
}

static int elements_of(const bench_problem_t *problem, int rank)
{
    return problem->blocks.rank_rows[rank] * problem->row;
}

/* Sends the rows of one rank to the right and receives those of the one before it from the left. */
static void shift(const bench_problem_t *problem, const void *data, int rank, void *place,
                  MPI_Comm comm, MPI_Request requests[REQUESTS])
{
    int next = (rank + problem->nranks - 1) % problem->nranks;

    MPI_Irecv(rows_of(problem, place, next), elements_of(problem, next), problem->type,
              rank_at(problem, -1), TAG, comm, &requests[RECEIVE]);
    MPI_Isend(data, elements_of(problem, rank), problem->type, rank_at(problem, 1), TAG, comm,
              &requests[SEND]);
}

void bench_hand_allgather(bench_problem_t *problem, const bench_case_t *bench_case)
{
    MPI_Request requests[REQUESTS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const void *data = problem->block;
    int step, rank;

    for (step = 0; step < problem->nranks; step++) {
        rank = rank_at(problem, -step);
        if (step + 1 < problem->nranks) {
            shift(problem, data, rank, problem->moved, bench_case->comm, requests);
        }
        bench_launch(
            problem, data,
            bench_row(problem, problem->output, problem->blocks.source[rank], problem->out_width),
            problem->blocks.rank_rows[rank]);
        if (step == 0) {
            memcpy(rows_of(problem, problem->moved, rank), problem->block,
                   (size_t) elements_of(problem, rank) * problem->size);
        }
        MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        data = rows_of(problem, problem->moved, rank_at(problem, -step - 1));
    }
}

/* The contribution to a rank's block, into the rows that are sent. */
static void launch_contribution(bench_problem_t *problem, int rank)
{
    bench_launch(
        problem,
        bench_row(problem, problem->input, problem->blocks.source[rank], problem->in_width),
        rows_of(problem, problem->moved, rank), problem->blocks.rank_rows[rank]);
}

/*
 * Sums arrive in rows that only computations without communication use. An accelerator has its next
 * block waiting.
 */
void bench_hand_reduce_scatter(bench_problem_t *problem, const bench_case_t *bench_case)
{
    MPI_Request requests[REQUESTS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int step, rank, ahead = problem->options->offload;
    double computed;

    if (ahead) {
        launch_contribution(problem, rank_at(problem, -1));
    }
    for (step = 0; step < problem->nranks; step++) {
        rank = rank_at(problem, -1 - step);
        computed = problem->device_idle;
        if (step + ahead < problem->nranks) {
            launch_contribution(problem, rank_at(problem, -1 - step - ahead));
        }
        MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        bench_sleep_until(computed);
        if (step > 0) {
            MPI_Reduce_local(rows_of(problem, problem->output, rank),
                             rows_of(problem, problem->moved, rank), elements_of(problem, rank),
                             problem->type, MPI_SUM);
        }
        if (step + 1 < problem->nranks) {
            shift(problem, rows_of(problem, problem->moved, rank), rank, problem->output,
                  bench_case->comm, requests);
        }
    }
    memcpy(problem->result, rows_of(problem, problem->moved, problem->rank),
           (size_t) elements_of(problem, problem->rank) * problem->size);
}
