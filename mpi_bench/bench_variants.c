/*
 * bench_variants.c: the ways to communicate and compute that are compared.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_variants.h"

#include <stdio.h>

#include "bench_flash.h"
#include "bench_hand.h"
#include "bench_stats.h"

/* The transfer of all rows. RS: of the rows that a variant has computed into `moved`. */
static bench_transfer_t whole_transfer(const bench_problem_t *problem)
{
    return (bench_transfer_t){.blocks = &problem->blocks,
                              .allgather = problem->allgather,
                              .rank = problem->rank,
                              .type = problem->type,
                              .send = problem->allgather ? problem->block : problem->moved,
                              .recv = problem->allgather ? problem->moved : problem->result};
}

/* The same, independent of any computation. */
static bench_transfer_t independent_transfer(const bench_problem_t *problem)
{
    bench_transfer_t transfer = whole_transfer(problem);

    if (!problem->allgather) {
        transfer.send = problem->ready;
    }
    return transfer;
}

/* The transfer of one slice. */
static bench_transfer_t slice_transfer(const bench_problem_t *problem, const bench_blocks_t *slice)
{
    bench_transfer_t transfer = whole_transfer(problem);
    int begin = slice->source[problem->rank] - problem->blocks.source[problem->rank];
    int send_row = problem->allgather ? begin : slice->first;
    int recv_row = problem->allgather ? slice->first : begin;

    transfer.blocks = slice;
    transfer.send = bench_row(problem, transfer.send, send_row, problem->row);
    transfer.recv = bench_row(problem, transfer.recv, recv_row, problem->row);
    return transfer;
}

/* Computation by itself, in rows that nothing is communicated into or from. */
static void compute_alone(bench_problem_t *problem, int row, int rows)
{
    bench_compute(problem, bench_row(problem, problem->input, row, problem->in_width),
                  bench_row(problem, problem->output, row, problem->out_width), rows);
}

static void launch_alone(bench_problem_t *problem, int row, int rows)
{
    bench_launch(problem, bench_row(problem, problem->input, row, problem->in_width),
                 bench_row(problem, problem->output, row, problem->out_width), rows);
}

static void run_computation(bench_problem_t *problem, const bench_case_t *bench_case)
{
    (void) bench_case;
    compute_alone(problem, 0, problem->m);
}

/* In the pieces, and in the order, that the ring has. An accelerator has its next one waiting. */
static void run_split_computation(bench_problem_t *problem, const bench_case_t *bench_case)
{
    int pieces = bench_pieces(problem);
    int step, piece, block, rows, begin, end;

    (void) bench_case;
    for (step = 0; step < problem->nranks; step++) {
        block = problem->rank - step - (problem->allgather ? 0 : 1);
        block = (block + 2 * problem->nranks) % problem->nranks;
        rows = problem->blocks.rank_rows[block];
        for (piece = 0; piece < pieces && piece < rows; piece++) {
            begin = bench_share_first(rows, pieces < rows ? pieces : rows, piece);
            end = bench_share_first(rows, pieces < rows ? pieces : rows, piece + 1);
            launch_alone(problem, problem->blocks.source[block] + begin, end - begin);
        }
    }
}

static void run_communication(bench_problem_t *problem, const bench_case_t *bench_case)
{
    bench_transfer_t transfer = independent_transfer(problem);

    bench_transfer_run(&transfer, bench_case->comm);
}

static void run_nonblocking_communication(bench_problem_t *problem, const bench_case_t *bench_case)
{
    bench_transfer_t transfer = independent_transfer(problem);
    MPI_Request request;

    bench_transfer_start(&transfer, bench_case->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* One addition of a block: what the ring of a reduce-scatter does after its last computation. */
static void run_addition(bench_problem_t *problem, const bench_case_t *bench_case)
{
    (void) bench_case;
    MPI_Reduce_local(problem->ready, problem->moved, problem->blocks.max_rows * problem->row,
                     problem->type, MPI_SUM);
}

static void run_blocking(bench_problem_t *problem, const bench_case_t *bench_case)
{
    bench_transfer_t transfer = whole_transfer(problem);

    if (problem->allgather) {
        bench_transfer_run(&transfer, bench_case->comm);
        bench_compute(problem, problem->moved, problem->output, problem->m);
    } else {
        bench_compute(problem, problem->input, problem->moved, problem->m);
        bench_transfer_run(&transfer, bench_case->comm);
    }
}

static void run_nonblocking(bench_problem_t *problem, const bench_case_t *bench_case)
{
    bench_transfer_t transfer = whole_transfer(problem);
    MPI_Request request;

    if (!problem->allgather) {
        bench_compute(problem, problem->input, problem->moved, problem->m);
    }
    bench_transfer_start(&transfer, bench_case->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (problem->allgather) {
        bench_compute(problem, problem->moved, problem->output, problem->m);
    }
}

/*
 * Slice s + 1 travels while slice s is computed; nothing hides the first. While an accelerator
 * computes, the host waits in MPI.
 */
static void run_sliced_allgather(bench_problem_t *problem, const bench_case_t *bench_case)
{
    const bench_slicing_t *slicing = bench_case->slicing;
    const bench_blocks_t *slice;
    bench_transfer_t transfer;
    MPI_Request request;
    int s;

    transfer = slice_transfer(problem, &slicing->slices[0]);
    bench_transfer_start(&transfer, bench_case->comm, &request);
    for (s = 0; s < slicing->count; s++) {
        slice = &slicing->slices[s];
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (s + 1 < slicing->count) {
            transfer = slice_transfer(problem, slice + 1);
            bench_transfer_start(&transfer, bench_case->comm, &request);
        }
        bench_launch(problem, bench_row(problem, problem->moved, slice->first, problem->in_width),
                     bench_row(problem, problem->output, slice->first, problem->out_width),
                     slice->rows);
    }
}

/* RS: of the slices' own input, into the rows that are sent. */
static void launch_slice(bench_problem_t *problem, const bench_slicing_t *slicing, int s)
{
    const bench_blocks_t *slice = &slicing->slices[s];

    bench_launch(problem, bench_row(problem, slicing->input, slice->first, problem->in_width),
                 bench_row(problem, problem->moved, slice->first, problem->out_width), slice->rows);
}

/*
 * Slice s travels while slice s + 1 is computed; nothing hides the last. An accelerator has its
 * next slice waiting, and while it computes, the host waits in MPI for the slice before. Where the
 * host computes, a slice is posted before the wait for the one before it: that wait moves both.
 */
static void run_sliced_reduce_scatter(bench_problem_t *problem, const bench_case_t *bench_case)
{
    const bench_slicing_t *slicing = bench_case->slicing;
    MPI_Request request, last = MPI_REQUEST_NULL;
    bench_transfer_t transfer;
    double computed = 0;
    int s;

    if (problem->options->offload) {
        launch_slice(problem, slicing, 0);
    }
    for (s = 0; s < slicing->count; s++) {
        if (problem->options->offload) {
            computed = problem->device_idle;
            if (s + 1 < slicing->count) {
                launch_slice(problem, slicing, s + 1);
            }
            MPI_Wait(&last, MPI_STATUS_IGNORE);
            bench_sleep_until(computed);
        } else {
            launch_slice(problem, slicing, s);
        }
        transfer = slice_transfer(problem, &slicing->slices[s]);
        bench_transfer_start(&transfer, bench_case->comm, &request);
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        last = request;
    }
    MPI_Wait(&last, MPI_STATUS_IGNORE);
}

/* No MPI call until all is computed: whatever is hidden moved by itself. */
static void run_plain(bench_problem_t *problem, const bench_case_t *bench_case)
{
    bench_transfer_t transfer = independent_transfer(problem);
    MPI_Request request;

    bench_transfer_start(&transfer, bench_case->comm, &request);
    compute_alone(problem, 0, problem->m);
    bench_compute_finish(problem);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* With an accelerator the host can wait in MPI, which then moves the data, whatever library it is.
 */
static void run_waiting(bench_problem_t *problem, const bench_case_t *bench_case)
{
    bench_transfer_t transfer = independent_transfer(problem);
    MPI_Request request;

    bench_transfer_start(&transfer, bench_case->comm, &request);
    launch_alone(problem, 0, problem->m);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int list_alone(const bench_problem_t *problem, MPI_Comm own, MPI_Comm flash,
                      bench_case_t *cases)
{
    int count = 0;

    cases[count++] = (bench_case_t){.name = "T_comp", .run = run_computation, .computes = true};
    cases[count++] =
        (bench_case_t){.name = "T_split", .run = run_split_computation, .computes = true};
    cases[count++] =
        (bench_case_t){.name = "T_comm", .run = run_communication, .comm = own, .moves = true};
    if (!problem->options->no_others) {
        cases[count++] = (bench_case_t){.name = "T_comm nonblocking",
                                        .run = run_nonblocking_communication,
                                        .comm = own,
                                        .moves = true};
    }
    cases[count++] = (bench_case_t){
        .name = "T_comm flash", .run = run_nonblocking_communication, .comm = flash, .moves = true};
    if (!problem->allgather) {
        cases[count++] = (bench_case_t){.name = "t_add", .run = run_addition};
    }
    return count;
}

static int list_variants(const bench_problem_t *problem, MPI_Comm own, MPI_Comm flash,
                         bench_case_t *cases)
{
    bench_case_t model = {.kind = BENCH_VARIANT, .comm = own, .moves = true, .computes = true};
    int i, count = 0;

    for (i = 0; i < 4 + problem->nslicings; i++) {
        cases[i] = model;
    }
    snprintf(cases[count].name, sizeof(model.name), "blocking");
    cases[count++].run = run_blocking;
    if (!problem->options->no_others) {
        snprintf(cases[count].name, sizeof(model.name), "nonblocking");
        cases[count++].run = run_nonblocking;
    }
    for (i = 0; i < problem->nslicings; i++) {
        snprintf(cases[count].name, sizeof(model.name), "sliced-%d", problem->slicings[i].count);
        cases[count].slicing = &problem->slicings[i];
        cases[count++].run = problem->allgather ? run_sliced_allgather : run_sliced_reduce_scatter;
    }
    if (!problem->options->no_others) {
        snprintf(cases[count].name, sizeof(model.name), "ring by hand");
        cases[count++].run = problem->allgather ? bench_hand_allgather : bench_hand_reduce_scatter;
    }
    snprintf(cases[count].name, sizeof(model.name), "flash");
    cases[count].comm = flash;
    cases[count].calls_back = true;
    cases[count++].run = problem->allgather ? bench_flash_allgather : bench_flash_reduce_scatter;
    return count;
}

int bench_variants_list(const bench_problem_t *problem, MPI_Comm own, MPI_Comm flash,
                        bench_case_t cases[BENCH_MAX_CASES])
{
    bench_case_t model = {.kind = BENCH_PLAIN, .run = run_plain, .moves = true, .computes = true};
    int count = list_alone(problem, own, flash, cases);

    count += list_variants(problem, own, flash, &cases[count]);
    if (!problem->options->no_others) {
        snprintf(model.name, sizeof(model.name), "plain call, Open MPI");
        model.comm = own;
        cases[count++] = model;
    }
    snprintf(model.name, sizeof(model.name), "plain call, flash");
    model.comm = flash;
    cases[count++] = model;
    if (problem->options->offload && !problem->options->no_others) {
        snprintf(model.name, sizeof(model.name), "host in MPI, Open MPI");
        model.run = run_waiting;
        model.comm = own;
        cases[count++] = model;
        snprintf(model.name, sizeof(model.name), "host in MPI, flash");
        model.comm = flash;
        cases[count++] = model;
    }
    return count;
}

bool bench_variants_check(const bench_check_t *check, const bench_case_t *bench_case)
{
    const bench_problem_t *problem = check->problem;
    const bench_blocks_t *blocks =
        bench_case->slicing != NULL ? bench_case->slicing->slices : &problem->blocks;
    int i, count = bench_case->slicing != NULL ? bench_case->slicing->count : 1;
    bool right = true;

    if (!problem->allgather) {
        right = !bench_case->moves || bench_check_result(check, bench_case->name);
    }
    for (i = 0; problem->allgather && right && i < count; i++) {
        right = (!bench_case->moves || bench_check_moved(check, &blocks[i], bench_case->name)) &&
                (!bench_case->computes || bench_check_output(check, &blocks[i], bench_case->name));
    }
    return right && (!bench_case->calls_back || bench_check_callbacks(check, bench_case->name));
}
