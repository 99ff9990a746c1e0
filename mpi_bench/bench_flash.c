/*
 * bench_flash.c: see bench_flash.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_flash.h"

#include <mpix_flash.h>

#include "bench_stats.h"

/* The rows of the whole matrix that a piece is, and how many. */
static int piece_rows(bench_problem_t *problem, const MPIX_Flash_block *block, int *rows)
{
    *rows = (int) (block->count / problem->row);
    problem->rows_seen += *rows;
    return problem->blocks.source[block->rank] + (int) (block->offset / problem->row);
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    bench_problem_t *problem = arg;
    int rows, row = piece_rows(problem, block, &rows);

    return bench_consume(problem, block,
                         bench_row(problem, problem->output, row, problem->out_width), rows);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    bench_problem_t *problem = arg;
    int rows, row = piece_rows(problem, block, &rows);

    return bench_produce(problem, bench_row(problem, problem->input, row, problem->in_width), block,
                         rows);
}

static MPIX_Flash_hints begin(bench_problem_t *problem, const bench_case_t *bench_case)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    int served;

    MPIX_Flash_active(bench_case->comm, &served);
    problem->may_pend = served != 0;
    problem->rows_seen = 0;
    hints.pieces = bench_pieces(problem);
    hints.row = problem->row;
    /* An accelerator's time does not depend on how a product is cut. */
    hints.merge = !problem->options->offload;
    return hints;
}

/*
 * Until the oldest piece is done; but while the accelerator has no other, and there are more to
 * come, only until half of the time that is left: more may be here before it runs dry. Left until
 * this process has to do something, or so little that a sleep would not end in it.
 */
static void wait_for_accelerator(bench_problem_t *problem)
{
    const double shortest = 100e-6;
    bool last = problem->queue_tail - problem->queue_head == 1 && problem->rows_seen < problem->m;
    double left = bench_queued_due(problem) - bench_now();

    if (last && left > shortest) {
        bench_sleep_until(bench_now() + left / 2);
    } else {
        bench_finish_queued(problem);
    }
}

/* An accelerator is asked for as much as the extension takes at a time, and then waited for. */
static void drive(bench_problem_t *problem, MPI_Request *request)
{
    int done = 0, before;

    while (!done && problem->rows_seen < problem->m) {
        do {
            before = problem->rows_seen;
            MPI_Test(request, &done, MPI_STATUS_IGNORE);
        } while (problem->rows_seen > before);
        if (problem->queue_head != problem->queue_tail) {
            wait_for_accelerator(problem);
        }
    }
    while (problem->queue_head != problem->queue_tail) {
        bench_finish_queued(problem);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

void bench_flash_allgather(bench_problem_t *problem, const bench_case_t *bench_case)
{
    const bench_blocks_t *blocks = &problem->blocks;
    int count = blocks->counts[problem->rank];
    MPIX_Flash_hints hints = begin(problem, bench_case);
    MPI_Request request;

    if (blocks->equal) {
        MPIX_Iallgather_compute(problem->block, count, problem->type, problem->moved, count,
                                problem->type, consume, problem, &hints, bench_case->comm,
                                &request);
    } else {
        MPIX_Iallgatherv_compute(problem->block, count, problem->type, problem->moved,
                                 blocks->counts, blocks->displs, problem->type, consume, problem,
                                 &hints, bench_case->comm, &request);
    }
    drive(problem, &request);
}

void bench_flash_reduce_scatter(bench_problem_t *problem, const bench_case_t *bench_case)
{
    const bench_blocks_t *blocks = &problem->blocks;
    MPIX_Flash_hints hints = begin(problem, bench_case);
    MPI_Request request;

    if (blocks->equal) {
        MPIX_Ireduce_scatter_block_compute(produce, problem, &hints, problem->result,
                                           blocks->counts[problem->rank], problem->type, MPI_SUM,
                                           bench_case->comm, &request);
    } else {
        MPIX_Ireduce_scatter_compute(produce, problem, &hints, problem->result, blocks->counts,
                                     problem->type, MPI_SUM, bench_case->comm, &request);
    }
    drive(problem, &request);
}
