/*
 * coll_flash_agree.c: what the processes of a job agree on.
 *
 * All of them serve, or none: in MPI_Init, one exchange (job/coll_flash_meeting.c) settles whether
 * all have the same release, where each process is, whether UCX works on every rank, whether it has
 * found as fast a fabric there as Open MPI uses, and which values of the parameters that decide
 * about paths all go by. Where some ranks have opened UCX by then, and others were to open it with
 * their first calls, these open it now, by a set-up of MPI_COMM_WORLD (ring/coll_flash_setup.h), which
 * settles what UCX decides.
 *
 * Written in MPI_Init only.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

#include <stdlib.h>
#include <unistd.h>

#include "recdbl/coll_flash_recdbl.h"
#include "ring/coll_flash_ring.h"
#include "ring/coll_flash_setup.h"
#include "settings/coll_flash_costs.h"
#include "shm/coll_flash_shm.h"

static enum { NOT_AGREED, AGREED_USABLE, AGREED_UNUSABLE } agreement;

void mca_coll_flash_agree_anew(void)
{
    agreement = NOT_AGREED;
}

bool mca_coll_flash_is_usable(void)
{
    return agreement != AGREED_UNUSABLE;
}

/*
 * Whether each rank of this node may have a hardware thread to compute and one to move data. Takes its
 * time: the first rank finds out for all whose parameter is auto; one alone needs no answer.
 */
static bool wants_on_node(void)
{
    int ranks = (int) opal_process_info.num_local_peers + 1;

    return mca_coll_flash_params.on_node == FLASH_ON_NODE_YES ||
           (mca_coll_flash_params.on_node == FLASH_ON_NODE_AUTO &&
            (ranks == 1 || opal_process_info.my_local_rank > 0 ||
             flash_affinity_has_threads(2 * ranks)));
}

/*
 * Parameters that all ranks go by, the smallest value of each, and behind them their negatives, of
 * which the smallest is that of the largest value; and what else is agreed on.
 */
enum { PRIORITY, SEGMENT_BYTES, ALGORITHM, COSTS, BUILT_IN, SHM_ASKED, BLOCKING, SHARED };
enum {
    USABLE = 2 * SHARED,
    FABRIC,
    RDMA,
    OPEN, /* UCX, or it was tried */
    LATE, /* may be opened with the first calls */
    HOLDS,
    THREAD,
    ON_NODE,
    SHM,
    READABLE,
    RECDBL,
    NO_SUMMARY,
    VALUES
};

/* As far as ranks can compare. */
static int64_t comparable(size_t bytes)
{
    return bytes > INT64_MAX ? INT64_MAX : (int64_t) bytes;
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

static bool host_has_gpus(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0;
}

/*
 * Where there are GPUs, the built-in costs choose no blocking calls. A buffer in device memory that flash
 * cannot move ends a call with an error, and ranks cannot agree on each other's buffers; Open MPI may be
 * able to move it.
 */
static int64_t offered_blocking(void)
{
    bool built_in = mca_coll_flash_costs_hash() == mca_coll_flash_costs_built_in();

    return mca_coll_flash_params.blocking == FLASH_BLOCKING_AUTO && built_in && host_has_gpus()
               ? FLASH_BLOCKING_NO
               : mca_coll_flash_params.blocking;
}

static void set_mine(int64_t mine[VALUES], ompi_communicator_t *world, int next, bool usable)
{
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;
    mca_coll_flash_fabric_t fabric = {.suits = true};
    bool holds = !flash_compat_has_threads() && mca_coll_flash_is_above_libnbc(world);
    bool late = mca_coll_flash_is_late();

    if (usable && !late) {
        fabric = mca_coll_flash_fabric_look(world, next);
    }
    mine[PRIORITY] = params->priority;
    mine[SEGMENT_BYTES] = segment_bytes();
    mine[ALGORITHM] = params->algorithm;
    mine[COSTS] = mca_coll_flash_costs_hash();
    mine[BUILT_IN] = mca_coll_flash_costs_built_in();
    mine[SHM_ASKED] = params->shm;
    mine[BLOCKING] = offered_blocking();
    for (int k = 0; k < SHARED; k++) {
        mine[SHARED + k] = -mine[k];
    }
    mine[USABLE] = usable;
    mine[FABRIC] = fabric.suits;
    mine[RDMA] = fabric.rdma;
    mine[OPEN] = !late;
    mine[LATE] =
        late && (params->setup == FLASH_SETUP_CALL || (holds && mca_coll_flash_opens_quietly()));
    mine[HOLDS] = holds;
    mine[THREAD] = !usable || late || mca_coll_flash_job_may_progress();
    mine[ON_NODE] = wants_on_node();
    mine[SHM] = mca_coll_flash_shm_meet(world) ? params->shm : FLASH_SHM_NO;
    mine[READABLE] = mca_coll_flash_shm_may_read();
    mine[RECDBL] = mca_coll_flash_recdbl_open();
    mine[NO_SUMMARY] = !params->summary;
}

static bool differs(const int64_t least[VALUES], int value)
{
    return least[value] != -least[SHARED + value];
}

/* By different priorities ranks would take different components for one call. */
static bool serves(const int64_t least[VALUES])
{
    return least[USABLE] && least[FABRIC] && !differs(least, PRIORITY);
}

static void tell_differences(const int64_t least[VALUES])
{
    if (least[PRIORITY] >= 0 && least[PRIORITY] <= FLASH_TOO_LOW_PRIORITY) {
        FLASH_HELP("priority-too-low", (int) least[PRIORITY]);
    }
    if (differs(least, PRIORITY)) {
        FLASH_HELP("priority-differs", (int) least[PRIORITY], (int) -least[SHARED + PRIORITY]);
    }
    if (differs(least, SEGMENT_BYTES)) {
        int64_t largest = -least[SHARED + SEGMENT_BYTES];
        bool none = largest == NO_LENGTH;

        FLASH_HELP("parameters-differ", "coll_flash_segment_bytes",
                   none ? 0LL : (long long) least[SEGMENT_BYTES],
                   none ? (long long) least[SEGMENT_BYTES] : (long long) largest,
                   (long long) least[SEGMENT_BYTES]);
    }
    if (differs(least, ALGORITHM)) {
        FLASH_HELP("choices-differ", "coll_flash_algorithm", "auto", opal_process_info.nodename);
    }
    if (differs(least, COSTS)) {
        FLASH_HELP("choices-differ", "coll_flash_costs",
                   differs(least, BUILT_IN) ? "the fallback, since their builds differ, too"
                                            : "the built-in costs",
                   opal_process_info.nodename);
    }
    if (differs(least, SHM_ASKED)) {
        FLASH_HELP("choices-differ", "coll_flash_shm", mca_coll_flash_shm_names[least[SHM_ASKED]],
                   opal_process_info.nodename);
    }
    if (differs(least, BLOCKING)) {
        FLASH_HELP("choices-differ", "coll_flash_blocking",
                   mca_coll_flash_blocking_names[least[BLOCKING]], opal_process_info.nodename);
    }
}

/* If the ranks have different values, all take one that each rank knows. */
static void set_choices(const int64_t least[VALUES])
{
    mca_coll_flash_params_t *params = &mca_coll_flash_params;

    params->algorithm = differs(least, ALGORITHM) ? FLASH_AUTO : (int) least[ALGORITHM];
    if (differs(least, COSTS)) {
        mca_coll_flash_costs_reset();
    }
    if (differs(least, COSTS) && differs(least, BUILT_IN)) {
        params->algorithm = FLASH_FALLBACK;
    }
    params->blocking = (int) least[BLOCKING];
    params->on_node = least[ON_NODE] ? FLASH_ON_NODE_YES : FLASH_ON_NODE_NO;
    params->shm = serves(least) ? (int) least[SHM] : FLASH_SHM_NO;
    params->shm_readable = params->shm >= FLASH_SHM_AUTO && least[READABLE];
    params->recdbl = least[RECDBL];
    params->segment_bytes = segment_of(least[SEGMENT_BYTES]);
    params->late = least[LATE];
    params->holds = least[HOLDS];
    params->rdma = least[RDMA];
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

/* A node's own messages have none. */
static bool has_rdma_segments(void)
{
    return mca_coll_flash_params.rdma && mca_coll_flash_params.segment_bytes == 0 &&
           flash_compat_spans_nodes();
}

static void tell_outcome(const int64_t least[VALUES])
{
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;

    if (least[USABLE] && !least[FABRIC]) {
        FLASH_VERBOSE(1, "coll:flash: Open MPI reaches other nodes by a faster fabric than UCX, "
                         "and coll_flash_any_fabric is no");
    }
    FLASH_VERBOSE(
        1,
        "coll:flash: %s this job (algorithm %s, costs %s, segment_bytes %zu, blocking %s, "
        "on_node %s, shm %s%s%s%s%s%s)",
        serves(least) ? "serves" : "does not serve", mca_coll_flash_path_names[params->algorithm],
        mca_coll_flash_costs_source(), params->segment_bytes,
        mca_coll_flash_blocking_names[params->blocking], least[ON_NODE] ? "yes" : "no",
        mca_coll_flash_shm_names[params->shm],
        params->shm >= FLASH_SHM_AUTO && !params->shm_readable ? " without reading" : "",
        has_rdma_segments() ? ", segments for RDMA" : "", params->recdbl ? "" : ", without recdbl",
        least[THREAD] ? "" : ", without a progress thread on some rank",
        !params->late   ? ""
        : params->holds ? ", set up by first calls"
                        : ", set up by first calls that may wait");
}

/* The next higher rank of this node, behind the highest the lowest; this rank itself, if it is alone. */
static int next_on_node(ompi_communicator_t *world)
{
    int own = ompi_comm_rank(world), size = ompi_comm_size(world), rank = own;
    ompi_proc_t *proc;

    do {
        rank = (rank + 1) % size;
        /* Makes no structures of remote processes. */
        proc = ompi_group_peer_lookup_existing(world->c_local_group, rank);
    } while (rank != own && (proc == NULL || !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)));
    return rank;
}

/*
 * Whether UCX is open, and connects this rank to the next rank and to another rank of this node, for
 * which UCX uses other transports; or is to be opened later. Ranks that have not opened it have published
 * no address, and count as connected.
 */
static bool may_be_used(ompi_communicator_t *world, int next, bool passes_on)
{
    int near = next_on_node(world);

    return mca_coll_flash_params.priority > FLASH_TOO_LOW_PRIORITY && passes_on &&
           (mca_coll_flash_is_late() || (mca_coll_flash_job_reaches(world, next) &&
                                         (near == next || near == ompi_comm_rank(world) ||
                                          mca_coll_flash_job_reaches(world, near))));
}

/* Whether there is memory. What is kept in shared memory goes with that: see adopt(). */
static bool learn_seats(uint32_t ranks, uint32_t *seats, bool shm)
{
    void *table = shm ? mca_coll_flash_shm_table(mca_coll_flash_seats_bytes(ranks)) : NULL;

    return mca_coll_flash_seats_learn(ranks, seats, table, mca_coll_flash_shm_is_first());
}

/* `least` has this rank's values, and afterwards the smallest of all ranks'. */
static int meet(mca_coll_flash_module_t *module, ompi_communicator_t *world,
                mca_coll_flash_releases_t *releases, int64_t least[VALUES])
{
    size_t ranks = (size_t) ompi_comm_size(world);
    mca_coll_flash_meeting_t meeting = {.values = VALUES,
                                        .least = least,
                                        .words = FLASH_SEAT_WORDS,
                                        .seats =
                                            calloc(ranks, FLASH_SEAT_WORDS * sizeof(uint32_t))};
    int rc = OMPI_ERR_OUT_OF_RESOURCE;

    if (meeting.seats != NULL) {
        mca_coll_flash_seats_fill(world, meeting.seats);
        rc = mca_coll_flash_meet(world, releases, &meeting);
    }
    if (rc == OMPI_SUCCESS && releases->differ.one != FLASH_NOBODY) {
        mca_coll_flash_releases_tell(world, releases->differ);
        rc = OMPI_ERR_NOT_AVAILABLE;
    }
    if (rc == OMPI_SUCCESS &&
        (!learn_seats((uint32_t) ranks, meeting.seats, least[SHM] != FLASH_SHM_NO) ||
         !mca_coll_flash_ring_form(world, &module->ring))) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    }
    free(meeting.seats);
    return rc;
}

/*
 * All ranks open UCX, and learn the addresses of those that have published none, unless all have opened
 * it, or all are to do so later. Where it is not usable, nothing is left to be polled.
 */
static void open_ucx(mca_coll_flash_module_t *module, int64_t least[VALUES])
{
    if (serves(least) && !least[OPEN] && !least[LATE]) {
        least[USABLE] = mca_coll_flash_setup_wait(module, FLASH_SETUP_RING) == FLASH_SETUP_READY &&
                        mca_coll_flash_setup_wait(module, FLASH_SETUP_PAIRS) == FLASH_SETUP_READY;
        least[RDMA] = module->rdma;
    }
    if (!least[USABLE]) {
        mca_coll_flash_unpoll();
    }
}

/* Goes by what the ranks have agreed on, as all of them do. */
static void adopt(ompi_communicator_t *world, const int64_t least[VALUES])
{
    if (ompi_comm_rank(world) == 0) {
        tell_differences(least);
    }
    set_choices(least);
    mca_coll_flash_shm_agree(mca_coll_flash_params.shm != FLASH_SHM_NO);
    check_pinned();
    if (!least[NO_SUMMARY]) {
        mca_coll_flash_job_measure();
        mca_coll_flash_summary_open();
    }
    tell_outcome(least);
}

int mca_coll_flash_agree(mca_coll_flash_module_t *module, bool passes_on)
{
    ompi_communicator_t *world = module->comm;
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;
    int next = (ompi_comm_rank(world) + 1) % ompi_comm_size(world);
    mca_coll_flash_releases_t releases;
    int64_t least[VALUES] = {0};
    bool usable = false;
    int rc = mca_coll_flash_releases_look(world, &releases);

    if (rc == OMPI_SUCCESS && releases.differ.one == FLASH_NOBODY) {
        usable = may_be_used(world, next, passes_on);
        set_mine(least, world, next, usable);
    }
    if (rc == OMPI_SUCCESS) {
        rc = meet(module, world, &releases, least);
    }
    if (rc == OMPI_SUCCESS) {
        open_ucx(module, least);
    }
    agreement = rc == OMPI_SUCCESS && serves(least) ? AGREED_USABLE : AGREED_UNUSABLE;
    if (agreement == AGREED_UNUSABLE) {
        mca_coll_flash_seats_fini(); /* before shared memory */
    }
    if (rc != OMPI_SUCCESS) {
        mca_coll_flash_shm_agree(false);
        FLASH_VERBOSE(1, "coll:flash: does not serve this job");
        return rc;
    }
    if (!passes_on) {
        FLASH_HELP("priority-too-low", params->priority);
    } else if (params->priority > FLASH_TOO_LOW_PRIORITY && !usable) {
        FLASH_HELP("ucx-not-usable", opal_process_info.nodename, (int) getpid(),
                   mca_coll_flash_job_reason());
    }
    adopt(world, least);
    return serves(least) ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}
