/*
 * coll_flash_job.c: what each process of a job has one of: the transport, the engine, their
 * progress.
 *
 * Shared between threads: `job.started` is written and read by application threads
 * under `job.mutex`, and so is `job.measured`, by tools' threads, too, before MPI_Init or beside
 * it. All else is written in MPI_Init and MPI_Finalize only, but for what flash_progress.h orders.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "device/flash_stager.h"
#include "job/coll_flash_ucx.h"

/* What others have sent so far comes in within so many looks of the engine at the transport. */
#define ENOUGH_PROGRESS 256

static struct {
    flash_transport_t *transport;
    flash_engine_t *engine;
    flash_progress_t *progress;
    char reason[FLASH_UCX_REASON_MAX]; /* why UCX is not usable here */
    pthread_mutex_t mutex;
    bool started;  /* the first one by messages has been */
    bool measured; /* how long operations are under way */
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

    job.started = false;
    strcpy(job.reason, "out of memory");
    if (has_peers && mca_coll_flash_params.priority >= 0 && flash_compat_job_size() > 1) {
        job.transport =
            mca_coll_flash_ucx_open(flash_compat_spans_nodes(),
                                    (unsigned) opal_process_info.num_local_peers + 1, job.reason);
    }
    if (job.transport != NULL) {
        job.engine = flash_engine_create(job.transport);
    }
    if (job.engine != NULL) {
        flash_engine_keep(job.engine, mca_coll_flash_params.scratch_cache_bytes);
        flash_engine_set_trace(job.engine, mca_coll_flash_trace_open());
        set_progress(flash_progress_create(job.engine, job.transport));
    }
}

void mca_coll_flash_job_flush(void)
{
    bool flushed;

    if (job.progress == NULL) {
        return;
    }
    flash_progress_lock(job.progress);
    flushed = mca_coll_flash_ucx()->flush(job.transport);
    flash_progress_unlock(job.progress);
    if (!flushed) {
        FLASH_VERBOSE(1, "coll:flash: some of what this process has sent has not arrived");
    }
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
    job.progress = NULL;
    job.engine = NULL;
    job.transport = NULL;
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
        mca_coll_flash_ucx()->end_probes(job.transport);
    }
    flash_progress_unlock(job.progress);
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
    bool blocked;

    flash_progress_lock(job.progress);
    settle();
    blocked = mca_coll_flash_ucx()->loopback(job.transport);
    settle();
    flash_progress_unlock(job.progress);
    flash_progress_wake(job.progress);
    return blocked;
}

const char *mca_coll_flash_job_reason(void)
{
    return job.reason;
}

bool mca_coll_flash_job_reaches(ompi_communicator_t *world, int rank)
{
    opal_process_name_t name = ompi_group_get_proc_name(world->c_local_group, rank);
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
            mca_coll_flash_thread_start(job.progress);
        }
    }
    pthread_mutex_unlock(&job.mutex);
}

int mca_coll_flash_job_start_callback_thread(void)
{
    int rc;

    pthread_mutex_lock(&job.mutex);
    rc = flash_progress_start_callback_thread(job.progress);
    pthread_mutex_unlock(&job.mutex);
    if (rc == FLASH_OK) {
        FLASH_VERBOSE(2, "coll:flash: flash's thread makes the callbacks");
    } else {
        FLASH_HELP("no-callback-thread", opal_process_info.nodename, (int) getpid());
    }
    return mca_coll_flash_error(rc);
}
