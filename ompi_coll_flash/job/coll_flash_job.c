/*
 * coll_flash_job.c: what the processes of a job agree on, and what each has one of: the transport,
 * the engine, their progress.
 *
 * Each process opens UCX while Open MPI's components are opened, and publishes its worker's
 * address with its binding through PMIx, before MPI_Init commits and exchanges what was published.
 *
 * All of them serve, or none: in MPI_Init, one allreduce over MPI_COMM_WORLD settles whether UCX
 * works on every rank, and which values of the parameters that decide about paths all go by.
 *
 * Shared between threads: `job.polled` is exchanged by application threads, relaxed: who finds it
 * false has the progress registered, which Open MPI orders. `job.started` is written and read by them
 * under `job.mutex`, and so is `job.measured`, by tools' threads, too, before MPI_Init or beside it. All
 * else is written in MPI_Init and MPI_Finalize only, but for what
 * flash_progress.h orders.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/coll_flash_board.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "device/flash_stager.h"
#include "flash_ucx.h"

/* What others have sent so far comes in within so many looks of the engine at the transport. */
#define ENOUGH_PROGRESS 256

enum { NOT_AGREED, AGREED_USABLE, AGREED_UNUSABLE };

static struct {
    flash_transport_t *transport;
    flash_engine_t *engine;
    flash_progress_t *progress;
    char reason[FLASH_UCX_REASON_MAX]; /* why UCX is not usable here */
    int agreement;
    pthread_mutex_t mutex;
    atomic_bool polled; /* by Open MPI's progress: the first operation has been */
    bool started;       /* the first one by messages has been */
    bool measured;      /* how long operations are under way */
} job = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------- opening and closing */

/* A tool may have asked for what it measures already. */
static void set_progress(flash_progress_t *progress)
{
    pthread_mutex_lock(&job.mutex);
    job.progress = progress;
    if (job.measured && progress != NULL) {
        flash_progress_measure(progress);
    }
    pthread_mutex_unlock(&job.mutex);
}

void mca_coll_flash_job_open(void)
{
    bool has_peers = mca_coll_flash_peers_init();

    job.agreement = NOT_AGREED;
    atomic_store_explicit(&job.polled, false, memory_order_relaxed);
    job.started = false;
    strcpy(job.reason, "out of memory");
    if (has_peers && mca_coll_flash_params.priority >= 0) {
        job.transport = flash_ucx_create(flash_compat_spans_nodes(), job.reason);
    }
    if (job.transport != NULL) {
        job.engine = flash_engine_create(job.transport);
    }
    if (job.engine != NULL) {
        flash_engine_keep(job.engine, mca_coll_flash_params.keep_bytes);
        flash_engine_set_trace(job.engine, mca_coll_flash_trace_open());
        set_progress(flash_progress_create(job.engine, job.transport));
    }
    mca_coll_flash_boards_open();
    mca_coll_flash_card_publish(job.transport);
    mca_coll_flash_release_publish();
}

void mca_coll_flash_job_close(void)
{
    const flash_context_t *context = NULL;

    if (job.progress != NULL) {
        context = flash_progress_context(job.progress);
        FLASH_VERBOSE(1, "coll:flash: the progress thread woke up %llu times",
                      (unsigned long long) flash_progress_wakeups(job.progress));
        flash_progress_destroy(job.progress);
    }
    if (job.transport != NULL) {
        if (context != NULL) {
            context->enter();
        }
        flash_ucx_destroy(job.transport); /* reports what never completed to the engine */
        if (context != NULL) {
            context->leave();
        }
    }
    if (job.engine != NULL) {
        flash_engine_destroy(job.engine);
        mca_coll_flash_trace_close();
    }
    flash_stager_fini(); /* calls without a ring have staged as well */
    job.progress = NULL;
    job.engine = NULL;
    job.transport = NULL;
    mca_coll_flash_boards_close();
    mca_coll_flash_rounds_close();
    mca_coll_flash_peers_fini();
}

flash_progress_t *mca_coll_flash_job_progress(void)
{
    return job.progress;
}

flash_transport_t *mca_coll_flash_job_transport(void)
{
    return job.transport;
}

void mca_coll_flash_job_measure(void)
{
    pthread_mutex_lock(&job.mutex);
    job.measured = true;
    if (job.progress != NULL) {
        flash_progress_measure(job.progress);
    }
    pthread_mutex_unlock(&job.mutex);
}

flash_times_t mca_coll_flash_job_times(void)
{
    return job.progress == NULL ? (flash_times_t){0, 0} : flash_progress_times(job.progress);
}

bool mca_coll_flash_job_usable(void)
{
    return job.agreement != AGREED_UNUSABLE;
}

size_t mca_coll_flash_job_watch(flash_silence_t *silences, size_t most,
                                void (*found)(void *arg, size_t k, const flash_silence_t *silence),
                                void *arg)
{
    size_t count;

    flash_progress_lock(job.progress);
    count = flash_engine_watch(job.engine, silences, most);
    for (size_t k = 0; k < count; k++) {
        found(arg, k, &silences[k]);
    }
    if (count == 0) {
        flash_ucx_end_probes(job.transport);
    }
    flash_progress_unlock(job.progress);
    return count;
}

/* Until nothing happens any more, of what others send, or this process itself. */
static void settle(void)
{
    for (int k = 0; k < ENOUGH_PROGRESS; k++) {
        unsigned sent = flash_ucx_progress_echo(job.transport);

        if (flash_engine_progress(job.engine) == 0 && sent == 0) {
            break;
        }
    }
}

unsigned mca_coll_flash_job_echo(void)
{
    unsigned overdue;

    flash_progress_lock(job.progress);
    settle();
    overdue = flash_ucx_echo(job.transport);
    settle();
    flash_progress_unlock(job.progress);
    flash_progress_wake(job.progress);
    return overdue;
}

/* ---------------------------------------------------------------- agreement */

/* Whether this rank could take part; connects to the neighbour to find out. */
static bool usable_here(ompi_communicator_t *world, int right)
{
    opal_process_name_t name = ompi_group_get_proc_name(world->c_local_group, right);
    flash_peer_t *peer;
    int rc;

    if (job.progress == NULL) {
        return false;
    }
    peer = mca_coll_flash_peer_of(name);
    if (peer == NULL) {
        strcpy(job.reason, "out of memory");
        return false;
    }
    rc = mca_coll_flash_peer_reach(name, peer, job.reason);
    /* A neighbour whose UCX failed says so itself, with the cause. */
    return rc == FLASH_OK || rc == FLASH_ERR_PEER;
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

int mca_coll_flash_job_meet(ompi_communicator_t *world)
{
    int rc = mca_coll_flash_release_agree(world);

    if (rc != OMPI_SUCCESS) {
        job.agreement = AGREED_UNUSABLE;
        mca_coll_flash_boards_agree(false);
        FLASH_VERBOSE(1, "coll:flash: does not serve this job");
    }
    return rc;
}

int mca_coll_flash_job_agree(ompi_communicator_t *world, int right, bool passes_on)
{
    mca_coll_flash_params_t *params = &mca_coll_flash_params;
    bool wanted = params->priority > FLASH_TOO_LOW_PRIORITY && passes_on;
    bool usable = wanted && usable_here(world, right);
    int64_t mine[VALUES], least[VALUES];
    int rc;

    set_mine(mine, usable);
    mine[BOARD] = mca_coll_flash_boards_meet(world);
    mine[READABLE] = mca_coll_flash_boards_may_read();
    rc = flash_compat_allreduce(mine, least, VALUES, MPI_INT64_T, MPI_MIN, world);
    if (rc != MPI_SUCCESS) {
        job.agreement = AGREED_UNUSABLE;
        mca_coll_flash_boards_agree(false);
        return rc;
    }
    job.agreement = least[USABLE] ? AGREED_USABLE : AGREED_UNUSABLE;
    if (!passes_on) {
        FLASH_HELP("priority-too-low", params->priority);
    }
    if (wanted && !usable) {
        FLASH_HELP("ucx-not-usable", opal_process_info.nodename, (int) getpid(), job.reason);
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

/* --------------------------------------------------------- the first operations */

void mca_coll_flash_job_poll(void)
{
    if (atomic_load_explicit(&job.polled, memory_order_relaxed)) {
        return;
    }
    if (!atomic_exchange_explicit(&job.polled, true, memory_order_relaxed)) {
        opal_progress_register(mca_coll_flash_progress_all);
    }
}

void mca_coll_flash_job_start(void)
{
    mca_coll_flash_job_poll();
    pthread_mutex_lock(&job.mutex);
    if (!job.started) {
        job.started = true;
        if (mca_coll_flash_params.progress != FLASH_PROGRESS_OFF) {
            mca_coll_flash_thread_start(job.progress);
        }
    }
    pthread_mutex_unlock(&job.mutex);
}

int mca_coll_flash_job_start_caller(void)
{
    int rc;

    pthread_mutex_lock(&job.mutex);
    rc = flash_progress_start_caller(job.progress);
    pthread_mutex_unlock(&job.mutex);
    if (rc == FLASH_OK) {
        FLASH_VERBOSE(2, "coll:flash: flash's thread makes the callbacks");
    } else {
        FLASH_HELP("no-callback-thread", opal_process_info.nodename, (int) getpid());
    }
    return mca_coll_flash_error(rc);
}
