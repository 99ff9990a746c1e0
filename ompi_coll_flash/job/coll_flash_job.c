/*
 * coll_flash_job.c: what each process of a job has one of: the transport, the engine, their
 * progress.
 *
 * Shared between threads: `job.mutex` protects `tried`, `started` and `measured`, which tools'
 * threads ask for, too, before MPI_Init or beside it. UCX is opened under it, once, by MPI_Init or by
 * an application thread; `job.progress` is stored last (release), and whoever loads it (acquire) and
 * does not find NULL sees the transport and the engine. All else is written in MPI_Init and
 * MPI_Finalize only, but for what flash_progress.h orders.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "device/flash_stager.h"
#include "job/coll_flash_ucx.h"

/* What others have sent so far comes in within so many looks of the engine at the transport. */
#define ENOUGH_PROGRESS 256

static struct {
    flash_transport_t *transport;
    flash_engine_t *engine;
    _Atomic(flash_progress_t *) progress;
    char reason[FLASH_UCX_REASON_MAX]; /* why UCX is not usable here */
    pthread_mutex_t mutex;
    bool may_open; /* UCX is for this process */
    bool tried;    /* to open it */
    bool started;  /* the first one by messages has been */
    bool measured; /* how long operations are under way */
} job = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------- opening and closing */

void mca_coll_flash_job_open(void)
{
    bool has_peers = mca_coll_flash_peers_init();

    job.tried = job.started = false;
    strcpy(job.reason, "out of memory");
    job.may_open = has_peers && mca_coll_flash_params.priority >= 0 && flash_compat_job_size() > 1;
    if (job.may_open) {
        mca_coll_flash_ucx_prepare();
    }
}

/* Under the mutex. */
static void open_ucx(void)
{
    flash_progress_t *progress;

    job.transport = mca_coll_flash_ucx_open(
        flash_compat_spans_nodes(), (unsigned) opal_process_info.num_local_peers + 1, job.reason);
    if (job.transport == NULL) {
        return;
    }
    job.engine = flash_engine_create(job.transport);
    if (job.engine == NULL) {
        return;
    }
    flash_engine_keep(job.engine, mca_coll_flash_params.scratch_cache_bytes);
    flash_engine_set_trace(job.engine, mca_coll_flash_trace_open());
    progress = flash_progress_create(job.engine, job.transport);
    if (progress != NULL && job.measured) { /* a tool has asked for it already */
        flash_progress_measure(progress);
    }
    atomic_store_explicit(&job.progress, progress, memory_order_release);
}

bool mca_coll_flash_job_open_ucx(void)
{
    pthread_mutex_lock(&job.mutex);
    if (job.may_open && !job.tried) {
        job.tried = true;
        open_ucx();
    }
    pthread_mutex_unlock(&job.mutex);
    return mca_coll_flash_job_progress() != NULL;
}

void mca_coll_flash_job_flush(void)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    bool flushed;

    if (progress == NULL) {
        return;
    }
    flash_progress_lock(progress);
    flushed = mca_coll_flash_ucx()->flush(job.transport);
    flash_progress_unlock(progress);
    if (!flushed) {
        FLASH_VERBOSE(1, "coll:flash: some of what this process has sent has not arrived");
    }
}

void mca_coll_flash_job_close(void)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    const flash_context_t *context = NULL;

    if (progress != NULL) {
        context = flash_progress_context(progress);
        FLASH_VERBOSE(1, "coll:flash: the progress thread woke up %llu times",
                      (unsigned long long) flash_progress_wakeups(progress));
        flash_progress_destroy(progress);
    }
    if (job.transport != NULL) {
        if (context != NULL) {
            context->enter();
        }
        mca_coll_flash_ucx()->destroy(
            job.transport); /* reports what never completed to the engine */
        if (context != NULL) {
            context->leave();
        }
    }
    if (job.engine != NULL) {
        flash_engine_destroy(job.engine);
        mca_coll_flash_trace_close();
    }
    flash_stager_fini(); /* calls without a ring have staged as well */
    atomic_store_explicit(&job.progress, NULL, memory_order_release);
    job.engine = NULL;
    job.transport = NULL;
    mca_coll_flash_ucx_fini();
    mca_coll_flash_peers_fini();
}

flash_progress_t *mca_coll_flash_job_progress(void)
{
    return atomic_load_explicit(&job.progress, memory_order_acquire);
}

flash_transport_t *mca_coll_flash_job_transport(void)
{
    return job.transport;
}

void mca_coll_flash_job_measure(void)
{
    flash_progress_t *progress;

    pthread_mutex_lock(&job.mutex);
    job.measured = true;
    progress = mca_coll_flash_job_progress();
    if (progress != NULL) {
        flash_progress_measure(progress);
    }
    pthread_mutex_unlock(&job.mutex);
}

flash_times_t mca_coll_flash_job_times(void)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();

    return progress == NULL ? (flash_times_t){0, 0} : flash_progress_times(progress);
}

size_t mca_coll_flash_job_watch(flash_silence_t *silences, size_t most,
                                void (*found)(void *arg, size_t k, const flash_silence_t *silence),
                                void *arg)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    size_t count;

    if (progress == NULL) {
        return 0;
    }
    flash_progress_lock(progress);
    count = flash_engine_watch(job.engine, silences, most);
    for (size_t k = 0; k < count; k++) {
        found(arg, k, &silences[k]);
    }
    if (count == 0) {
        mca_coll_flash_ucx()->end_probes(job.transport);
    }
    flash_progress_unlock(progress);
    return count;
}

/* Until nothing happens any more, of what others send, or this process itself. */
static void settle(void)
{
    for (int k = 0; k < ENOUGH_PROGRESS; k++) {
        unsigned sent = mca_coll_flash_ucx()->progress_loopback(job.transport);

        if (flash_engine_progress(job.engine) == 0 && sent == 0) {
            break;
        }
    }
}

bool mca_coll_flash_job_loopback(void)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    bool blocked;

    flash_progress_lock(progress);
    settle();
    blocked = mca_coll_flash_ucx()->loopback(job.transport);
    settle();
    flash_progress_unlock(progress);
    flash_progress_wake(progress);
    return blocked;
}

const char *mca_coll_flash_job_reason(void)
{
    return job.reason;
}

bool mca_coll_flash_job_reaches(ompi_communicator_t *comm, int rank)
{
    opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
    flash_peer_t *peer;
    int rc;

    if (mca_coll_flash_job_progress() == NULL) {
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

/* --------------------------------------------------------- the first operations */

bool mca_coll_flash_job_may_progress(void)
{
    return mca_coll_flash_params.progress == FLASH_PROGRESS_OFF ||
           (job.transport != NULL && job.transport->event_fd >= 0);
}

void mca_coll_flash_job_start(void)
{
    pthread_mutex_lock(&job.mutex);
    if (!job.started) {
        job.started = true;
        if (mca_coll_flash_params.progress != FLASH_PROGRESS_OFF) {
            mca_coll_flash_thread_start(mca_coll_flash_job_progress());
        }
        /* Without the thread nobody would send what UCX still has while the application computes. */
        job.transport->lets_leave =
            job.transport->lets_leave && flash_progress_has_thread(mca_coll_flash_job_progress());
    }
    pthread_mutex_unlock(&job.mutex);
}

int mca_coll_flash_job_start_callback_thread(void)
{
    int rc;

    pthread_mutex_lock(&job.mutex);
    rc = flash_progress_start_callback_thread(mca_coll_flash_job_progress());
    pthread_mutex_unlock(&job.mutex);
    if (rc == FLASH_OK) {
        FLASH_VERBOSE(2, "coll:flash: flash's thread makes the callbacks");
    } else {
        FLASH_HELP("no-callback-thread", opal_process_info.nodename, (int) getpid());
    }
    return mca_coll_flash_error(rc);
}
