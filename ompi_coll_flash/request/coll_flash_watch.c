/*
 * coll_flash_watch.c: neighbours that fall silent: asking whether they are there, warning, giving
 * them up.
 *
 * Runs in application threads that wait inside MPI: nobody else is kept waiting, but who is on a board
 * while a message about one is shown. A neighbour is
 * not at fault for being late, so that silence alone ends no operation unless its user says so.
 *
 * Shared between threads: `next_watch`, atomic; whoever exchanges it does the watching, and the
 * exchange orders nothing else.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/coll_flash_board.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MOST 128 /* neighbours that one watch looks at */

/*
 * An echo that so many watches have missed will not come: who is alive, and writes what it waits
 * behind, may be kept from it for less.
 */
#define OVERDUE 3

/* What there is to say of one, copied while it cannot complete. */
typedef struct report {
    char operation[48]; /* and its number, if it has one */
    char comm[MPI_MAX_OBJECT_NAME];
    opal_process_name_t peer;
    ompi_group_t *group; /* retained */
    bool stuck;          /* and not told so far */
    bool gives_up;       /* then */
} report_t;

static atomic_int_fast64_t next_watch; /* milliseconds */

static int64_t now_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return 1000 * (int64_t) now.tv_sec + now.tv_nsec / 1000000;
}

/* Once a second. */
static bool is_due(void)
{
    int64_t now = now_milliseconds();
    int_fast64_t due = atomic_load_explicit(&next_watch, memory_order_relaxed);

    return now >= due &&
           atomic_compare_exchange_strong_explicit(&next_watch, &due, now + 1000,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static void describe(void *reports, size_t k, const flash_silence_t *silence)
{
    report_t *report = (report_t *) reports + k;
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;
    mca_coll_flash_request_t *request = silence->user;
    ompi_communicator_t *comm = request->module->comm;

    static const char *const names[FLASH_KINDS] = {[FLASH_ALLGATHER] = "allgather",
                                                   [FLASH_REDUCE_SCATTER] = "reduce-scatter",
                                                   [FLASH_ALLREDUCE] = "allreduce",
                                                   [FLASH_ALLTOALL] = "all-to-all",
                                                   [FLASH_DIRECT_REDUCE_SCATTER] =
                                                       "direct reduce-scatter"};
    bool in_rounds = request->sequence >= FLASH_IN_ROUNDS;

    if (in_rounds) {
        snprintf(report->operation, sizeof(report->operation), "%s in rounds",
                 names[request->kind]);
    } else {
        snprintf(report->operation, sizeof(report->operation), "%s, number %u",
                 names[request->kind], request->sequence % FLASH_ON_BOARD);
    }
    report->peer = ompi_group_get_proc_name(comm->c_local_group, (int) silence->rank);
    report->group = comm->c_local_group;
    OBJ_RETAIN(report->group);
    report->stuck = params->stuck_seconds > 0 && silence->watches >= params->stuck_seconds &&
                    !silence->younger && !request->told_stuck;
    /* Rounds' messages are Open MPI's, which cannot call back what is sent. */
    report->gives_up = report->stuck && params->stuck_error && !in_rounds;
    request->told_stuck |= report->stuck;
    snprintf(report->comm, sizeof(report->comm), "%s", comm->c_name);
}

static void warn(const flash_silence_t *silence, const report_t *report)
{
    FLASH_HELP("stuck", silence->watches, report->operation, report->comm, (int) report->peer.vpid,
               silence->sending ? "take a message" : "send a message", silence->step,
               silence->steps, silence->block, silence->segment, opal_process_info.nodename,
               (int) getpid(),
               report->gives_up ? "That rank is given up: the operation ends with an error."
                                : "The operation waits on.");
}

static void act(const flash_silence_t *silence, const report_t *report)
{
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;

    if (params->probe_seconds > 0 && silence->watches >= params->probe_seconds) {
        mca_coll_flash_peer_probe(report->peer, silence->peer);
    }
    if (report->stuck) {
        warn(silence, report);
    }
    if (report->gives_up) {
        mca_coll_flash_peer_lose(silence->peer);
    }
}

/* Whoever it is: others may wait for each other, because it has not taken what they posted. */
static void lose_who_is_gone(flash_board_t *board, ompi_group_t *group)
{
    for (uint32_t rank = 0; rank < flash_board_ranks(board); rank++) {
        if (mca_coll_flash_board_rank_is_gone(ompi_group_get_proc_name(group, (int) rank).vpid)) {
            flash_board_lose(board, rank);
        }
    }
}

/* Under the boards' lock. Whom this rank shares memory with is on its node: the kernel knows. */
static void look_at_board(flash_board_t *board)
{
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;
    flash_silence_t silence;
    report_t report;

    if (!flash_board_watch(board, &silence)) {
        return;
    }
    describe(&report, 0, &silence);
    if (report.stuck) {
        warn(&silence, &report);
    }
    if (report.gives_up) {
        flash_board_lose(board, silence.rank);
    }
    if (params->probe_seconds > 0 && silence.watches >= params->probe_seconds) {
        lose_who_is_gone(board, report.group);
    }
    OBJ_RELEASE(report.group);
}

/* Of those who are silent, and whose processes are there: whether what they send comes in. */
static void look_for_jam(const flash_silence_t *silences, size_t count)
{
    unsigned probe_seconds = mca_coll_flash_params.probe_seconds, overdue;
    bool silent = false;

    for (size_t k = 0; k < count; k++) {
        silent |= silences[k].watches >= probe_seconds;
    }
    if (probe_seconds == 0 || !silent) {
        return;
    }
    mca_coll_flash_peers_judge();
    mca_coll_flash_peers_suspect();
    overdue = mca_coll_flash_job_echo();
    if (overdue >= OVERDUE) {
        FLASH_VERBOSE(2, "coll:flash: nothing comes in of what is sent by processes of this node");
        mca_coll_flash_peers_unjam();
    }
}

/* Apart from the question whether it is due, for its memory on the stack. */
__attribute__((noinline)) static void look(void)
{
    flash_silence_t silences[MOST];
    report_t reports[MOST];
    size_t count;

    count = mca_coll_flash_job_watch(silences, MOST, describe, reports);
    for (size_t k = 0; k < count; k++) {
        act(&silences[k], &reports[k]);
        OBJ_RELEASE(reports[k].group);
    }
    look_for_jam(silences, count);
    count = mca_coll_flash_doublings_watch(silences, MOST, describe, reports);
    for (size_t k = 0; k < count; k++) {
        if (reports[k].stuck) {
            warn(&silences[k], &reports[k]);
        }
        OBJ_RELEASE(reports[k].group);
    }
    mca_coll_flash_boards_each(look_at_board);
}

void mca_coll_flash_watch(void)
{
    if (is_due()) {
        look();
    }
}
