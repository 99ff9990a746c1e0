/*
 * coll_flash_peer.c: the processes of the job as peers: finding, connecting, probing, losing them,
 * and what one may leave behind.
 *
 * A peer's address is fetched when an endpoint to it is first needed, so that a process holds what
 * its rings need, not what the job's size is.
 *
 * Shared between threads: `peers` is written and read by application threads under `mutex`; the
 * progress thread never looks at it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash_card.h"
#include "coll_flash_operation.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flash_ucx.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static opal_hash_table_t peers; /* vpid -> flash_peer_t */

bool mca_coll_flash_peers_init(void)
{
    OBJ_CONSTRUCT(&peers, opal_hash_table_t);
    return opal_hash_table_init(&peers, 64) == OPAL_SUCCESS;
}

void mca_coll_flash_peers_fini(void)
{
    OBJ_DESTRUCT(&peers);
}

/* The peer that this process is, made when first asked for; `mutex` is held. */
static flash_peer_t *find_peer(opal_process_name_t name)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    void *peer;

    if (opal_hash_table_get_value_uint32(&peers, name.vpid, &peer) == OPAL_SUCCESS) {
        return peer;
    }
    flash_progress_lock(progress);
    peer = flash_ucx_peer(mca_coll_flash_job_transport());
    flash_progress_unlock(progress);
    if (peer != NULL) {
        opal_hash_table_set_value_uint32(&peers, name.vpid, peer);
    }
    return peer;
}

static bool is_connected(const flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    bool connected;

    flash_progress_lock(progress);
    connected = flash_ucx_is_connected(peer);
    flash_progress_unlock(progress);
    return connected;
}

/* The card is fetched once: each time, PMIx copies it, and Open MPI 5's keeps a copy for good. */
int mca_coll_flash_peer_reach(opal_process_name_t name, flash_peer_t *peer, char *reason)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    mca_coll_flash_card_t *card;
    int rc;

    if (is_connected(peer)) {
        return FLASH_OK;
    }
    card = mca_coll_flash_card_fetch(name);
    if (card == NULL) {
        strcpy(reason, "the peer's address is not to be had from PMIx");
        return FLASH_ERR_UNREACHABLE;
    }
    if (card->address_bytes == 0) {
        strcpy(reason, "UCX is not usable in the peer's process");
        free(card);
        return FLASH_ERR_PEER;
    }
    flash_progress_lock(progress);
    rc = flash_ucx_connect(peer, card + 1, card->address_bytes, reason);
    flash_progress_unlock(progress);
    free(card);
    return rc;
}

flash_peer_t *mca_coll_flash_peer_of(opal_process_name_t name)
{
    flash_peer_t *peer;

    pthread_mutex_lock(&mutex);
    peer = find_peer(name);
    pthread_mutex_unlock(&mutex);
    return peer;
}

void mca_coll_flash_peer_lose(flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();

    flash_progress_lock(progress);
    flash_ucx_lose(peer);
    flash_progress_unlock(progress);
    flash_progress_wake(progress);
}

/* Through shared memory there is no way to a process that has gone. */
static bool lose_if_gone(opal_process_name_t name, flash_peer_t *peer)
{
    mca_coll_flash_card_t *card = mca_coll_flash_card_fetch(name);
    bool gone = mca_coll_flash_card_is_near(card, ompi_proc_for_name(name)) &&
                mca_coll_flash_card_is_gone(card);

    if (gone) {
        mca_coll_flash_peer_lose(peer);
    }
    free(card);
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

void mca_coll_flash_peer_probe(const ompi_proc_t *proc, flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    mca_coll_flash_card_t *card = mca_coll_flash_card_fetch(proc->super.proc_name);

    flash_progress_lock(progress);
    if (mca_coll_flash_card_is_near(card, &proc->super)) {
        if (mca_coll_flash_card_is_gone(card)) {
            flash_ucx_lose(peer);
        }
    } else if (card != NULL && card->address_bytes > 0) {
        flash_ucx_probe(peer, card + 1);
    }
    flash_ucx_look_at_probes(mca_coll_flash_job_transport());
    flash_progress_unlock(progress);
    flash_progress_wake(progress);
    free(card);
}

/* ------------------------------------------------------------------ a jam */

/* Of this node, and whether it has gone. */
static bool is_near(opal_process_name_t name, bool *gone)
{
    mca_coll_flash_card_t *card = mca_coll_flash_card_fetch(name);
    bool near = mca_coll_flash_card_is_near(card, ompi_proc_for_name(name));

    *gone = near && mca_coll_flash_card_is_gone(card);
    free(card);
    return near;
}

/* The one behind `node` (NULL: the first) of this node's, with its name; NULL: there is none. */
static flash_peer_t *next_near(void **node, opal_process_name_t *name, bool *gone)
{
    void *peer;
    int rc;

    do {
        rc = *node == NULL
                 ? opal_hash_table_get_first_key_uint32(&peers, &name->vpid, &peer, node)
                 : opal_hash_table_get_next_key_uint32(&peers, &name->vpid, &peer, *node, node);
    } while (rc == OPAL_SUCCESS && !is_near(*name, gone));
    return rc == OPAL_SUCCESS ? peer : NULL;
}

/* Tells it, too: it waits for answers that would not be understood. False: lost before. */
static bool give_up(flash_peer_t *peer)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    flash_transport_t *transport = mca_coll_flash_job_transport();
    bool had;

    flash_progress_lock(progress);
    had = !flash_ucx_is_lost(peer);
    transport->ops->give_up(transport, peer);
    flash_progress_unlock(progress);
    return had;
}

void mca_coll_flash_peers_unjam(void)
{
    opal_process_name_t name = OPAL_PROC_MY_NAME, dead;
    void *node = NULL;
    flash_peer_t *peer;
    bool gone = false;
    int given_up = 0;

    pthread_mutex_lock(&mutex);
    do {
        peer = next_near(&node, &name, &gone);
    } while (peer != NULL && !gone);
    dead = name;
    node = NULL;
    while (gone && (peer = next_near(&node, &name, &(bool){false})) != NULL) {
        given_up += give_up(peer);
    }
    pthread_mutex_unlock(&mutex);
    if (given_up > 0) {
        FLASH_HELP("jammed", (int) dead.vpid, opal_process_info.nodename, (int) getpid());
        flash_progress_wake(mca_coll_flash_job_progress());
    }
}
