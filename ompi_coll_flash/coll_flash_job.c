/*
 * coll_flash_job.c: what the processes of a job agree on, and how they find each other.
 *
 * Each process opens UCX while Open MPI's components are opened, and publishes its worker's
 * address with its binding through PMIx, before MPI_Init commits and exchanges what was published.
 * A peer's address is fetched when an endpoint to it is first needed, so that a process holds what
 * its rings need, not what the job's size is.
 *
 * All of them serve, or none: in MPI_Init, one allreduce over MPI_COMM_WORLD settles whether UCX
 * works on every rank, and which values of the parameters that decide about paths all go by.
 *
 * Shared between threads: `job.peers` is written and read by application threads under
 * `job.mutex`; the progress thread never looks at it. All else is written in MPI_Init and
 * MPI_Finalize only, but for what flash_progress.h orders.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flash_place.h"
#include "flash_ucx.h"

#define MODEX_KEY "coll_flash"

/* What a process publishes; the address follows. Its format is part of the wire protocol. */
typedef struct card {
    char binding[FLASH_PLACE_MAX];
    int32_t pid;
    uint64_t pid_space;     /* in which pid is a name; 0: unknown */
    uint32_t address_bytes; /* 0: UCX is not usable there */
} card_t;

enum { NOT_AGREED, AGREED_USABLE, AGREED_UNUSABLE };

static struct {
    flash_transport_t *transport;
    flash_engine_t *engine;
    flash_progress_t *progress;
    char reason[FLASH_UCX_REASON_MAX]; /* why UCX is not usable here */
    int agreement;
    pthread_mutex_t mutex;
    opal_hash_table_t peers; /* vpid -> flash_peer_t */
    bool started;            /* the first operation has been */
    int hardware_thread;     /* for the progress thread; -1: any */
} job = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------- opening and closing */

static uint64_t pid_space(void)
{
    struct stat space;

    return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t) space.st_ino : 0;
}

static void publish(void)
{
    size_t address_bytes = 0, size;
    const void *address = NULL;
    card_t *card;
    int rc;

    if (job.transport != NULL) {
        address = flash_ucx_address(job.transport, &address_bytes);
    }
    size = sizeof(*card) + address_bytes;
    card = calloc(1, size);
    if (card == NULL) {
        return; /* peers find no card, and the agreement fails */
    }
    flash_place_binding(card->binding);
    card->pid = (int32_t) getpid();
    card->pid_space = pid_space();
    card->address_bytes = (uint32_t) address_bytes;
    if (address_bytes > 0) {
        memcpy(card + 1, address, address_bytes);
    }
    FLASH_MODEX_SEND(rc, MODEX_KEY, card, size);
    (void) rc; /* likewise */
    free(card);
}

void mca_coll_flash_job_open(void)
{
    OBJ_CONSTRUCT(&job.peers, opal_hash_table_t);
    opal_hash_table_init(&job.peers, 64);
    job.agreement = NOT_AGREED;
    job.started = false;
    if (mca_coll_flash_params.priority >= 0) {
        job.transport = flash_ucx_create(flash_compat_spans_nodes(), job.reason);
    }
    if (job.transport != NULL) {
        job.engine = flash_engine_create(job.transport);
    }
    if (job.engine != NULL) {
        flash_engine_set_trace(job.engine, mca_coll_flash_trace_open());
        job.progress = flash_progress_create(job.engine, job.transport);
    }
    if (job.transport != NULL && job.progress == NULL) {
        strcpy(job.reason, "out of memory");
    }
    publish();
}

void mca_coll_flash_job_close(void)
{
    if (job.progress != NULL) {
        FLASH_VERBOSE(1, "coll:flash: the progress thread woke up %llu times",
                      (unsigned long long) flash_progress_wakeups(job.progress));
        flash_progress_destroy(job.progress);
    }
    if (job.transport != NULL) {
        flash_ucx_destroy(job.transport); /* reports what never completed to the engine */
    }
    if (job.engine != NULL) {
        flash_engine_destroy(job.engine);
        mca_coll_flash_trace_close();
    }
    job.progress = NULL;
    job.engine = NULL;
    job.transport = NULL;
    OBJ_DESTRUCT(&job.peers);
}

flash_progress_t *mca_coll_flash_job_progress(void)
{
    return job.progress;
}

bool mca_coll_flash_job_usable(void)
{
    return job.agreement != AGREED_UNUSABLE;
}

/* -------------------------------------------------------------------- peers */

/* A process' card; to be freed. NULL if it published none. */
static card_t *fetch_card(opal_process_name_t name)
{
    void *data = NULL;
    size_t size = 0;
    card_t *card;
    int rc;

    FLASH_MODEX_RECV(rc, MODEX_KEY, &name, &data, &size);
    if (rc != OPAL_SUCCESS) {
        return NULL;
    }
    card = data;
    if (size < sizeof(*card) || size - sizeof(*card) != card->address_bytes) {
        free(data);
        return NULL;
    }
    return card;
}

/* The peer that this process is, made when first asked for; job.mutex is held. */
static flash_peer_t *find_peer(opal_process_name_t name)
{
    void *peer;

    if (opal_hash_table_get_value_uint32(&job.peers, name.vpid, &peer) == OPAL_SUCCESS) {
        return peer;
    }
    flash_progress_lock(job.progress);
    peer = flash_ucx_peer(job.transport);
    flash_progress_unlock(job.progress);
    if (peer != NULL) {
        opal_hash_table_set_value_uint32(&job.peers, name.vpid, peer);
    }
    return peer;
}

static int connect_peer(opal_process_name_t name, flash_peer_t *peer, char *reason)
{
    card_t *card = fetch_card(name);
    int rc;

    if (card == NULL) {
        strcpy(reason, "the peer's address is not to be had from PMIx");
        return FLASH_ERR_UNREACHABLE;
    }
    if (card->address_bytes == 0) {
        strcpy(reason, "UCX is not usable in the peer's process");
        free(card);
        return FLASH_ERR_PEER;
    }
    flash_progress_lock(job.progress);
    rc = flash_ucx_connect(peer, card + 1, reason);
    flash_progress_unlock(job.progress);
    free(card);
    return rc;
}

flash_peer_t *mca_coll_flash_job_peer(opal_process_name_t name)
{
    flash_peer_t *peer;

    pthread_mutex_lock(&job.mutex);
    peer = find_peer(name);
    pthread_mutex_unlock(&job.mutex);
    return peer;
}

void mca_coll_flash_job_lose(flash_peer_t *peer)
{
    flash_progress_lock(job.progress);
    flash_ucx_lose(peer);
    flash_progress_unlock(job.progress);
    flash_progress_wake(job.progress);
}

/* Whether the kernel of this process knows of that one. Elsewhere UCX has to find out. */
static bool is_near(const opal_proc_t *proc, const card_t *card)
{
    return proc != NULL && card != NULL && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) &&
           card->pid_space != 0 && card->pid_space == pid_space();
}

static bool is_gone(const card_t *card)
{
    return kill(card->pid, 0) != 0 && errno == ESRCH;
}

/* Through shared memory there is no way to a process that has gone. */
static bool lose_if_gone(opal_process_name_t name, flash_peer_t *peer)
{
    card_t *card = fetch_card(name);
    bool gone = is_near(ompi_proc_for_name(name), card) && is_gone(card);

    if (gone) {
        mca_coll_flash_job_lose(peer);
    }
    free(card);
    return gone;
}

/*
 * A neighbour that is gone counts as connected, and lost: operations begin, and end with an error
 * that names it, on the other ranks, too. To refuse them would need a connection.
 */
int mca_coll_flash_job_connect(opal_process_name_t name, flash_peer_t *peer)
{
    char reason[FLASH_UCX_REASON_MAX];
    int rc = connect_peer(name, peer, reason);

    if (rc != FLASH_OK && lose_if_gone(name, peer)) {
        rc = FLASH_OK;
    }
    if (rc != FLASH_OK) {
        FLASH_HELP("no-connection", opal_process_info.nodename, (int) getpid(), (int) name.vpid,
                   reason);
    }
    return mca_coll_flash_error(rc);
}

void mca_coll_flash_job_probe(const ompi_proc_t *proc, flash_peer_t *peer)
{
    card_t *card = fetch_card(proc->super.proc_name);

    flash_progress_lock(job.progress);
    if (is_near(&proc->super, card)) {
        if (is_gone(card)) {
            flash_ucx_lose(peer);
        }
    } else if (card != NULL && card->address_bytes > 0) {
        flash_ucx_probe(peer, card + 1);
    }
    flash_ucx_look_at_probes(job.transport);
    flash_progress_unlock(job.progress);
    flash_progress_wake(job.progress);
    free(card);
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
    peer = mca_coll_flash_job_peer(name);
    if (peer == NULL) {
        strcpy(job.reason, "out of memory");
        return false;
    }
    rc = connect_peer(name, peer, job.reason);
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

static void tell_difference(const char *parameter, int64_t least, int64_t most)
{
    if (least != most) {
        FLASH_HELP("parameters-differ", parameter, (long long) least, (long long) most,
                   (long long) least);
    }
}

int mca_coll_flash_job_agree(ompi_communicator_t *world, int right)
{
    enum {
        USABLE,
        ON_NODE,
        PRIORITY,
        MAX_PRIORITY,
        MIN_BYTES,
        MAX_MIN_BYTES,
        SEGMENT,
        MAX_SEGMENT,
        VALUES
    };
    mca_coll_flash_params_t *params = &mca_coll_flash_params;
    bool usable = params->priority > FLASH_TOO_LOW_PRIORITY && usable_here(world, right);
    int64_t mine[VALUES], least[VALUES];
    int rc;

    if (params->segment_bytes < 64) {
        params->segment_bytes = 64; /* the longest predefined type that can be reduced is shorter */
    }
    if (params->min_bytes > INT64_MAX) {
        params->min_bytes = INT64_MAX; /* as far as ranks can compare */
    }
    mine[USABLE] = usable;
    mine[ON_NODE] = wants_on_node();
    mine[PRIORITY] = params->priority;
    mine[MAX_PRIORITY] = -params->priority;
    mine[MIN_BYTES] = (int64_t) params->min_bytes;
    mine[MAX_MIN_BYTES] = -(int64_t) params->min_bytes;
    mine[SEGMENT] = (int64_t) params->segment_bytes;
    mine[MAX_SEGMENT] = -(int64_t) params->segment_bytes;
    rc = flash_compat_allreduce(mine, least, VALUES, MPI_INT64_T, MPI_MIN, world);
    if (rc != MPI_SUCCESS) {
        job.agreement = AGREED_UNUSABLE;
        return rc;
    }
    job.agreement = least[USABLE] ? AGREED_USABLE : AGREED_UNUSABLE;
    if (!usable && params->priority > FLASH_TOO_LOW_PRIORITY) {
        FLASH_HELP("ucx-not-usable", opal_process_info.nodename, (int) getpid(), job.reason);
    }
    if (ompi_comm_rank(world) == 0) {
        if (least[PRIORITY] >= 0 && least[PRIORITY] <= FLASH_TOO_LOW_PRIORITY) {
            FLASH_HELP("priority-too-low", (int) least[PRIORITY]);
        }
        tell_difference("coll_flash_priority", least[PRIORITY], -least[MAX_PRIORITY]);
        tell_difference("coll_flash_min_bytes", least[MIN_BYTES], -least[MAX_MIN_BYTES]);
        tell_difference("coll_flash_segment_bytes", least[SEGMENT], -least[MAX_SEGMENT]);
    }
    params->on_node = least[ON_NODE] ? FLASH_ON_NODE_YES : FLASH_ON_NODE_NO;
    params->min_bytes = (size_t) least[MIN_BYTES];
    params->segment_bytes = (size_t) least[SEGMENT];
    FLASH_VERBOSE(1, "coll:flash: %s this job (min_bytes %lld, segment_bytes %lld, on_node %s)",
                  least[USABLE] ? "serves" : "does not serve", (long long) least[MIN_BYTES],
                  (long long) least[SEGMENT], least[ON_NODE] ? "yes" : "no");
    return least[USABLE] ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/* --------------------------------------------------------- the progress thread */

/* The bindings of this node's ranks in the order of their ranks; *self is this one's place. */
static char (*local_bindings(int *count, int *self))[FLASH_PLACE_MAX]
{
    int size = ompi_comm_size(MPI_COMM_WORLD), rank = ompi_comm_rank(MPI_COMM_WORLD);
    char(*bindings)[FLASH_PLACE_MAX] = NULL, (*longer)[FLASH_PLACE_MAX];

    *count = 0;
    for (int peer = 0; peer < size; peer++) {
        /* Does not make the structures of remote processes: those of this node exist. */
        ompi_proc_t *proc = ompi_group_peer_lookup_existing(MPI_COMM_WORLD->c_local_group, peer);
        card_t *card;

        if (proc == NULL || (peer != rank && !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags))) {
            continue;
        }
        card = fetch_card(proc->super.proc_name);
        longer = realloc(bindings, sizeof(*bindings) * (size_t) (*count + 1));
        if (card == NULL || longer == NULL) {
            free(card);
            free(longer != NULL ? longer : bindings);
            return NULL;
        }
        bindings = longer;
        memcpy(bindings[*count], card->binding, FLASH_PLACE_MAX);
        free(card);
        *self = peer == rank ? *count : *self;
        (*count)++;
    }
    return bindings;
}

static int choose_hardware_thread(void)
{
    char own[FLASH_PLACE_MAX], (*bindings)[FLASH_PLACE_MAX];
    int count, self = 0, chosen = -1;

    flash_place_binding(own);
    if (!mca_coll_flash_params.bind || own[0] == '\0') {
        return -1;
    }
    bindings = local_bindings(&count, &self);
    if (bindings != NULL) {
        chosen = flash_place_choose(bindings, count, self);
    }
    free(bindings);
    return chosen;
}

static void place_thread(void *arg)
{
    (void) arg;
    if (job.hardware_thread >= 0 && !flash_place_bind(job.hardware_thread)) {
        FLASH_VERBOSE(1, "coll:flash: cannot bind the progress thread to hardware thread %d",
                      job.hardware_thread);
    }
}

static void start_thread(void)
{
    int rc;

    job.hardware_thread = choose_hardware_thread();
    rc = flash_progress_start_thread(job.progress, place_thread, NULL);
    if (rc == FLASH_OK) {
        FLASH_VERBOSE(1, "coll:flash: progress thread started, hardware thread %d (-1: unbound)",
                      job.hardware_thread);
    } else if (mca_coll_flash_params.progress == FLASH_PROGRESS_ON) {
        FLASH_HELP("no-progress-thread", opal_process_info.nodename, (int) getpid(),
                   rc == FLASH_ERR_TRANSPORT ? "UCX was built without support for threads"
                                             : "the system refused to start a thread");
    } else {
        FLASH_VERBOSE(1, "coll:flash: no progress thread: data moves only inside MPI calls");
    }
}

void mca_coll_flash_job_start(void)
{
    pthread_mutex_lock(&job.mutex);
    if (!job.started) {
        job.started = true;
        opal_progress_register(mca_coll_flash_progress_all);
        if (mca_coll_flash_params.progress != FLASH_PROGRESS_OFF) {
            start_thread();
        }
    }
    pthread_mutex_unlock(&job.mutex);
}
