/*
 * coll_flash_peer.c: the processes of the job as peers: finding, connecting, probing, losing them,
 * and what one may leave behind.
 *
 * A peer's address is looked for when an endpoint to it is first needed, so that a process connects
 * to what its rings need, whatever the job's size.
 *
 * Shared between threads: `peers`, and what it leads to, is written and read by application threads
 * under `mutex`; the progress thread never looks at it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_modex.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/coll_flash_ucx.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static opal_hash_table_t peers; /* vpid -> known_t */

typedef struct known {
    flash_peer_t *peer;
    flash_process_t process; /* pid 0: not of this node, or not asked for yet */
    uint64_t
        gone_before; /* was found to have gone before this loopback probe was sent; 0: was not */
} known_t;

bool mca_coll_flash_peers_init(void)
{
    OBJ_CONSTRUCT(&peers, opal_hash_table_t);
    return opal_hash_table_init(&peers, 64) == OPAL_SUCCESS;
}

/* The one behind `*node` (NULL: the first), with its name; NULL: there is none. `mutex` is held. */
static known_t *next_known(void **node, opal_process_name_t *name)
{
    void *known;
    int rc = *node == NULL
                 ? opal_hash_table_get_first_key_uint32(&peers, &name->vpid, &known, node)
                 : opal_hash_table_get_next_key_uint32(&peers, &name->vpid, &known, *node, node);

    return rc == OPAL_SUCCESS ? known : NULL;
}

void mca_coll_flash_peers_fini(void)
{
    opal_process_name_t name;
    void *node = NULL;
    known_t *known;

    while ((known = next_known(&node, &name)) != NULL) {
        free(known);
    }
    OBJ_DESTRUCT(&peers);
    mca_coll_flash_addresses_fini();
}

static known_t *make_known(uint32_t vpid)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    known_t *known = calloc(1, sizeof(*known));

    if (known == NULL) {
        return NULL;
    }
    flash_progress_lock(progress);
    known->peer = mca_coll_flash_ucx()->peer(mca_coll_flash_job_transport());
    flash_progress_unlock(progress);
    if (known->peer == NULL ||
        opal_hash_table_set_value_uint32(&peers, vpid, known) != OPAL_SUCCESS) {
        free(known); /* the peer is the transport's */
        return NULL;
    }
    return known;
}

/* That process, made known when first asked for; NULL if there is no memory. `mutex` is held. */
static known_t *find_known(opal_process_name_t name)
{
    void *known;

    return opal_hash_table_get_value_uint32(&peers, name.vpid, &known) == OPAL_SUCCESS
               ? known
               : make_known(name.vpid);
}

static void learn_process(opal_process_name_t name)
{
    const opal_proc_t *proc = ompi_proc_for_name(name);
    mca_coll_flash_place_t *place = NULL;
    known_t *known;

    if (proc != NULL && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags)) {
        place = mca_coll_flash_place_fetch(name);
    }
    if (mca_coll_flash_place_is_near(place)) {
        pthread_mutex_lock(&mutex);
        known = find_known(name);
        if (known != NULL) {
            known->process = mca_coll_flash_place_process(place);
            (void) flash_process_meet(&known->process);
        }
        pthread_mutex_unlock(&mutex);
    }
    free(place);
}

/* A lost peer counts as connected: nothing is sent to it, and UCX might wait for an endpoint to it. */
static bool is_connected(const flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    bool connected;

    flash_progress_lock(progress);
    connected = mca_coll_flash_ucx()->is_connected(peer) || mca_coll_flash_ucx()->is_lost(peer);
    flash_progress_unlock(progress);
    return connected;
}

/* Fetches once for a peer: each time, PMIx copies a record, and Open MPI 5's keeps the copy for good. */
int mca_coll_flash_peer_reach(opal_process_name_t name, flash_peer_t *peer, char *reason)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    mca_coll_flash_modex_t *modex;
    const void *address;
    size_t length;
    int rc;

    if (is_connected(peer)) {
        return FLASH_OK;
    }
    modex = mca_coll_flash_modex_fetch(name);
    if (modex == NULL) {
        strcpy(reason, "the peer's address is not to be had from PMIx");
        return FLASH_ERR_UNREACHABLE;
    }
    learn_process(name);
    address = mca_coll_flash_address_of(name, modex, &length);
    if (address == NULL) {
        strcpy(reason, "UCX is not usable in the peer's process");
        free(modex);
        return FLASH_ERR_PEER;
    }
    if (!mca_coll_flash_networks_suit(&modex->networks, reason)) {
        free(modex);
        return FLASH_ERR_UNREACHABLE;
    }
    flash_progress_lock(progress);
    rc = mca_coll_flash_ucx()->connect(peer, address, length, reason);
    flash_progress_unlock(progress);
    free(modex);
    return rc;
}

flash_peer_t *mca_coll_flash_peer_of(opal_process_name_t name)
{
    known_t *known;

    pthread_mutex_lock(&mutex);
    known = find_known(name);
    pthread_mutex_unlock(&mutex);
    return known == NULL ? NULL : known->peer;
}

flash_peer_t *mca_coll_flash_peer_to_exchange(flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();

    flash_progress_lock(progress);
    peer = mca_coll_flash_ucx()->exchange_peer(peer);
    flash_progress_unlock(progress);
    return peer;
}

void mca_coll_flash_peer_lose(flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();

    flash_progress_lock(progress);
    mca_coll_flash_ucx()->lose(peer);
    flash_progress_unlock(progress);
    flash_progress_wake(progress);
}

/* Whether the kernel can tell of it. */
static bool is_near(const flash_process_t *process)
{
    return process->pid > 0;
}

static bool is_gone(const flash_process_t *process)
{
    return is_near(process) && flash_process_is_gone(process);
}

static flash_process_t process_of(opal_process_name_t name)
{
    flash_process_t process = {.pid = 0};
    known_t *known;

    pthread_mutex_lock(&mutex);
    known = find_known(name);
    if (known != NULL) {
        process = known->process;
    }
    pthread_mutex_unlock(&mutex);
    return process;
}

/* Through shared memory there is no way to a process that has gone. */
static bool lose_if_gone(opal_process_name_t name, flash_peer_t *peer)
{
    flash_process_t process = process_of(name);
    bool gone = is_gone(&process);

    if (gone) {
        mca_coll_flash_peer_lose(peer);
    }
    return gone;
}

/*
 * A neighbour that is gone counts as connected, and lost: operations begin, and end with an error
 * that names it, on the other ranks, too. To refuse them would need a connection.
 */
int mca_coll_flash_peer_connect(opal_process_name_t name, flash_peer_t *peer)
{
    char reason[FLASH_UCX_REASON_MAX];
    int rc = mca_coll_flash_peer_reach(name, peer, reason);

    if (rc != FLASH_OK && lose_if_gone(name, peer)) {
        rc = FLASH_OK;
    }
    if (rc != FLASH_OK) {
        FLASH_HELP("no-connection", opal_process_info.nodename, (int) getpid(), (int) name.vpid,
                   reason);
    }
    return mca_coll_flash_error(rc);
}

static bool is_probed(const flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    bool probed;

    flash_progress_lock(progress);
    probed = mca_coll_flash_ucx()->is_probed(peer);
    flash_progress_unlock(progress);
    return probed;
}

/* Once: what is missing now will be missing. By whichever thread waits inside MPI. */
static void tell_blindness(opal_process_name_t name, const char *reason)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set_explicit(&told, memory_order_relaxed)) {
        FLASH_VERBOSE(1,
                      "coll:flash: rank %u is silent, and UCX cannot ask whether its process is "
                      "there: %s",
                      name.vpid, reason);
    }
}

void mca_coll_flash_peer_probe(opal_process_name_t name, flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    flash_process_t process = process_of(name);
    mca_coll_flash_modex_t *modex;
    const void *address;
    size_t length;
    bool can;

    if (is_near(&process)) {
        lose_if_gone(name, peer);
        return;
    }
    flash_progress_lock(progress);
    mca_coll_flash_ucx()->ping(peer);
    flash_progress_unlock(progress);
    modex = is_probed(peer) ? NULL : mca_coll_flash_modex_fetch(name);
    address = modex == NULL ? NULL : mca_coll_flash_address_of(name, modex, &length);
    if (address != NULL) {
        const char *reason = NULL;

        flash_progress_lock(progress);
        can = mca_coll_flash_ucx()->probe(peer, address, &reason);
        flash_progress_unlock(progress);
        if (!can) {
            tell_blindness(name, reason);
        }
    }
    free(modex);
}

void mca_coll_flash_peers_judge(void)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();

    flash_progress_lock(progress);
    mca_coll_flash_ucx()->look_at_probes(mca_coll_flash_job_transport());
    flash_progress_unlock(progress);
    flash_progress_wake(progress);
}

/*
 * Those that are there are told, too: they wait for answers that do not come in. False: lost
 * before.
 */
static bool give_up(const known_t *known)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    flash_transport_t *transport = mca_coll_flash_job_transport();
    bool had;

    flash_progress_lock(progress);
    had = !mca_coll_flash_ucx()->is_lost(known->peer);
    if (is_gone(&known->process)) {
        mca_coll_flash_ucx()->lose(known->peer);
    } else {
        transport->ops->give_up(transport, known->peer);
    }
    flash_progress_unlock(progress);
    return had;
}

void mca_coll_flash_peers_suspect(void)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    opal_process_name_t name;
    uint64_t next;
    void *node = NULL;
    known_t *known;

    flash_progress_lock(progress);
    next = mca_coll_flash_ucx()->next_loopback(mca_coll_flash_job_transport());
    flash_progress_unlock(progress);
    pthread_mutex_lock(&mutex);
    while ((known = next_known(&node, &name)) != NULL) {
        if (known->gone_before == 0 && is_gone(&known->process)) {
            known->gone_before = next;
        }
    }
    pthread_mutex_unlock(&mutex);
}

/*
 * One that has gone, unless a loopback probe has come in that must have been behind whatever it
 * left.
 */
static const known_t *find_suspect(opal_process_name_t *name)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    uint64_t loopback_arrived;
    void *node = NULL;
    const known_t *known;

    flash_progress_lock(progress);
    loopback_arrived = mca_coll_flash_ucx()->loopback_arrived(mca_coll_flash_job_transport());
    flash_progress_unlock(progress);
    do {
        known = next_known(&node, name);
    } while (known != NULL && known->gone_before <= loopback_arrived);
    return known;
}

void mca_coll_flash_peers_unblock(void)
{
    opal_process_name_t name = OPAL_PROC_MY_NAME, suspect = OPAL_PROC_MY_NAME;
    void *node = NULL;
    known_t *known;
    int given_up = 0;

    pthread_mutex_lock(&mutex);
    if (find_suspect(&suspect) != NULL) {
        while ((known = next_known(&node, &name)) != NULL) {
            given_up += is_near(&known->process) && give_up(known);
        }
    }
    pthread_mutex_unlock(&mutex);
    flash_progress_wake(mca_coll_flash_job_progress());
    if (given_up > 0) {
        FLASH_HELP("blocked", (int) suspect.vpid, opal_process_info.nodename, (int) getpid());
    }
}
