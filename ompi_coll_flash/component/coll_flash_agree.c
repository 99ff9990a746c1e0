/*
 * coll_flash_agree.c: what the processes of a job agree on.
 *
 * All of them serve, or none: in MPI_Init, one allreduce over MPI_COMM_WORLD settles whether UCX works on
 * every rank, and which values of the parameters that decide about paths all go by.
 *
 * Written in MPI_Init only.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

#include <unistd.h>

#include "recdbl/coll_flash_doubling.h"
#include "ring/coll_flash_ring.h"
#include "shm/coll_flash_board.h"

static enum { NOT_AGREED, AGREED_USABLE, AGREED_UNUSABLE } agreement;

void mca_coll_flash_agree_anew(void)
{
    agreement = NOT_AGREED;
}

bool mca_coll_flash_is_usable(void)
{
    return agreement != AGREED_UNUSABLE;
}

/* Whether each rank of this node may have a hardware thread to compute and one to move data. */
static bool wants_on_node(void)
{
    int ranks = (int) opal_process_info.num_local_peers + 1;

    return mca_coll_flash_params.on_node == FLASH_ON_NODE_YES ||
           (mca_coll_flash_params.on_node == FLASH_ON_NODE_AUTO &&
            flash_place_has_threads(2 * ranks));
}

/* Parameters that all ranks go by, the smallest value of each; and what else is agreed on. */
enum {
    PRIORITY,
    MIN_BYTES,
    STEP_BYTES,
    SEGMENT_BYTES,
    MERGE_BYTES,
    BOARD_BYTES,
    BOARD_READ_RANKS,
    DIRECT_BYTES,
    DIRECT_RANKS,
    DOUBLING_BYTES,
    DOUBLING_RANKS,
    SHARED
};
enum {
    USABLE = 2 * SHARED,
    ON_NODE,
    BOARD,
    READABLE,
    SCHEDULE,
    MINUS_SCHEDULE,
    NO_SUMMARY,
    VALUES
};

/* As far as ranks can compare. */
static int64_t comparable(size_t bytes)
{
    return bytes > INT64_MAX ? INT64_MAX : (int64_t) bytes;
}

/* As far as there can be rounds. */
static int64_t doubling_bytes(void)
{
    size_t *bytes = &mca_coll_flash_params.doubling_bytes;

    *bytes = *bytes < FLASH_MOST_IN_ROUNDS ? *bytes : FLASH_MOST_IN_ROUNDS;
    return *bytes > 0 && mca_coll_flash_rounds_open() ? (int64_t) *bytes : 0;
}

/* Some length wins against none, which leaves it to flash. */
#define NO_LENGTH INT64_MAX

/* The longest predefined type that can be reduced is shorter than a segment. */
static int64_t segment_bytes(void)
{
    size_t bytes = mca_coll_flash_params.segment_bytes;

    if (bytes == 0) {
        return NO_LENGTH;
    }
    return comparable(bytes < FLASH_LEAST_SEGMENT ? FLASH_LEAST_SEGMENT : bytes);
}

static size_t segment_of(int64_t value)
{
    return value == NO_LENGTH ? 0 : (size_t) value;
}

/* Of negative values the smallest is that of the largest value. */
static void set_mine(int64_t mine[VALUES], bool usable)
{
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;

    mine[PRIORITY] = params->priority;
    mine[MIN_BYTES] = comparable(params->min_bytes);
    mine[STEP_BYTES] = comparable(params->step_bytes);
    mine[SEGMENT_BYTES] = segment_bytes();
    mine[MERGE_BYTES] = comparable(params->merge_bytes);
    mine[BOARD_BYTES] = comparable(params->board_bytes);
    mine[BOARD_READ_RANKS] = params->board_read_ranks;
    mine[DIRECT_BYTES] = comparable(params->direct_bytes);
    mine[DIRECT_RANKS] = params->direct_ranks;
    mine[DOUBLING_BYTES] = doubling_bytes();
    mine[DOUBLING_RANKS] = params->doubling_ranks;
    for (int k = 0; k < SHARED; k++) {
        mine[SHARED + k] = -mine[k];
    }
    mine[USABLE] = usable;
    mine[ON_NODE] = wants_on_node();
    mine[SCHEDULE] = params->schedule;
    mine[MINUS_SCHEDULE] = -params->schedule;
    mine[NO_SUMMARY] = !params->summary;
}

static void tell_differences(const int64_t least[VALUES])
{
    static const char *const names[SHARED] = {
        "coll_flash_priority",         "coll_flash_min_bytes",     "coll_flash_step_bytes",
        "coll_flash_segment_bytes",    "coll_flash_merge_bytes",   "coll_flash_board_bytes",
        "coll_flash_board_read_ranks", "coll_flash_direct_bytes",  "coll_flash_direct_ranks",
        "coll_flash_doubling_bytes",   "coll_flash_doubling_ranks"};

    if (least[PRIORITY] >= 0 && least[PRIORITY] <= FLASH_TOO_LOW_PRIORITY) {
        FLASH_HELP("priority-too-low", (int) least[PRIORITY]);
    }
    if (least[SCHEDULE] != -least[MINUS_SCHEDULE]) {
        FLASH_HELP("schedules-differ", opal_process_info.nodename);
    }
    for (int k = 0; k < SHARED; k++) {
        long long smallest = least[k], largest = -least[SHARED + k];

        if (k == SEGMENT_BYTES && largest == NO_LENGTH && smallest != largest) {
            FLASH_HELP("parameters-differ", names[k], 0LL, smallest, smallest);
        } else if (smallest != largest) {
            FLASH_HELP("parameters-differ", names[k], smallest, largest, smallest);
        }
    }
}

/* Once all know how long segments are. Each rank has its own. */
static void check_pinned(void)
{
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;
    size_t longest = params->segment_bytes == 0 ? FLASH_LONGEST_SEGMENT : params->segment_bytes;

    if (params->pinned_bytes > 0 && params->pinned_bytes / FLASH_LEAST_PINNED_SEGMENTS < longest) {
        FLASH_HELP("pinned-bytes-too-low", params->pinned_bytes, longest,
                   opal_process_info.nodename, (int) getpid());
    }
}

int mca_coll_flash_meet(ompi_communicator_t *world)
{
    int rc = mca_coll_flash_release_agree(world);

    if (rc != OMPI_SUCCESS) {
        agreement = AGREED_UNUSABLE;
        mca_coll_flash_boards_agree(false);
        FLASH_VERBOSE(1, "coll:flash: does not serve this job");
    }
    return rc;
}

int mca_coll_flash_agree(ompi_communicator_t *world, int right, bool passes_on)
{
    mca_coll_flash_params_t *params = &mca_coll_flash_params;
    bool wanted = params->priority > FLASH_TOO_LOW_PRIORITY && passes_on;
    bool usable = wanted && mca_coll_flash_job_reaches(world, right);
    int64_t mine[VALUES], least[VALUES];
    int rc;

    set_mine(mine, usable);
    mine[BOARD] = mca_coll_flash_boards_meet(world);
    mine[READABLE] = mca_coll_flash_boards_may_read();
    rc = flash_compat_allreduce(mine, least, VALUES, MPI_INT64_T, MPI_MIN, world);
    if (rc != MPI_SUCCESS) {
        agreement = AGREED_UNUSABLE;
        mca_coll_flash_boards_agree(false);
        return rc;
    }
    agreement = least[USABLE] ? AGREED_USABLE : AGREED_UNUSABLE;
    if (!passes_on) {
        FLASH_HELP("priority-too-low", params->priority);
    }
    if (wanted && !usable) {
        FLASH_HELP("ucx-not-usable", opal_process_info.nodename, (int) getpid(),
                   mca_coll_flash_job_reason());
    }
    if (ompi_comm_rank(world) == 0) {
        tell_differences(least);
    }
    params->on_node = least[ON_NODE] ? FLASH_ON_NODE_YES : FLASH_ON_NODE_NO;
    params->board = least[USABLE] && least[BOARD];
    params->board_read_ranks = params->board && least[READABLE] ? (int) least[BOARD_READ_RANKS] : 0;
    mca_coll_flash_boards_agree(params->board);
    params->min_bytes = (size_t) least[MIN_BYTES];
    params->step_bytes = (size_t) least[STEP_BYTES];
    params->segment_bytes = segment_of(least[SEGMENT_BYTES]);
    params->merge_bytes = (size_t) least[MERGE_BYTES];
    params->board_bytes = (size_t) least[BOARD_BYTES];
    params->direct_bytes = (size_t) least[DIRECT_BYTES];
    params->direct_ranks = (int) least[DIRECT_RANKS];
    params->doubling_bytes = (size_t) least[DOUBLING_BYTES];
    params->doubling_ranks = (int) least[DOUBLING_RANKS];
    params->schedule = (int) least[SCHEDULE];
    check_pinned();
    if (!least[NO_SUMMARY]) {
        mca_coll_flash_job_measure();
        mca_coll_flash_summary_open();
    }
    FLASH_VERBOSE(1,
                  "coll:flash: %s this job (min_bytes %zu, step_bytes %zu, segment_bytes %zu, "
                  "merge_bytes %zu, on_node %s, board %s%s, schedule %s)",
                  least[USABLE] ? "serves" : "does not serve", params->min_bytes,
                  params->step_bytes, params->segment_bytes, params->merge_bytes,
                  least[ON_NODE] ? "yes" : "no", params->board ? "yes" : "no",
                  params->board && params->board_read_ranks == 0 ? " without reading" : "",
                  params->schedule == FLASH_SCHEDULE_DIRECT ? "direct" : "ring");
    return least[USABLE] ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}
