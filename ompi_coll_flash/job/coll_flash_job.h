/*
 * coll_flash_job.h: what a process of a job has one of: transport, engine, progress; and the
 * job's other processes as peers.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_JOB_H
#define COLL_FLASH_JOB_H

#include "engine/flash_engine.h"
#include "progress/flash_progress.h"
#include "settings/coll_flash_params.h"

/* --------------------------------------- what ranks of MPI_COMM_WORLD tell each other in MPI_Init */

enum { FLASH_MEETING_ROUNDS = 31 }; /* ranks are not negative */

/* Two ranks of MPI_COMM_WORLD whose releases of flash differ, or FLASH_NOBODY. */
typedef struct mca_coll_flash_difference {
    uint32_t one, other;
} mca_coll_flash_difference_t;

/* What PMIx tells of the release of a rank. Nothing: that has no flash, or PMIx has failed. */
typedef enum mca_coll_flash_told {
    FLASH_TOLD_NOTHING,
    FLASH_TOLD_OTHER,
    FLASH_TOLD_SAME
} mca_coll_flash_told_t;

typedef struct mca_coll_flash_releases {
    mca_coll_flash_difference_t differ;
    mca_coll_flash_told_t below[FLASH_MEETING_ROUNDS]; /* of that round's sender to this rank */
    mca_coll_flash_told_t above[FLASH_MEETING_ROUNDS]; /* of that round's receiver */
} mca_coll_flash_releases_t;

/* This process' release, through PMIx, before MPI_Init commits what was published. */
void mca_coll_flash_release_publish(void);
/*
 * What PMIx tells of the ranks that are 2^k away. OMPI_SUCCESS; or this process has published
 * nothing, and nobody waits for it.
 */
int mca_coll_flash_releases_look(ompi_communicator_t *world, mca_coll_flash_releases_t *releases);
/* This release. */
const char *mca_coll_flash_release(void);
/* Prints, on one rank or a few, that the releases of these two ranks differ. */
void mca_coll_flash_releases_tell(ompi_communicator_t *world, mca_coll_flash_difference_t found);

/* Of one wait; zeros at first. */
typedef struct mca_coll_flash_patience {
    unsigned yields, naps;
} mca_coll_flash_patience_t;

/* In MPI_Init, again and again while something has not happened: makes progress, and leaves the core to others. */
void mca_coll_flash_be_patient(mca_coll_flash_patience_t *patience);

/* What the ranks tell each other. */
typedef struct mca_coll_flash_meeting {
    size_t values;
    int64_t *least; /* this rank's values; afterwards the smallest of all ranks' */
    size_t words;
    uint32_t *seats; /* `words` for each rank: this rank's are filled in; afterwards all */
} mca_coll_flash_meeting_t;

/*
 * Collective over those processes of MPI_COMM_WORLD that have flash, once, in MPI_Init. Returns
 * OMPI_SUCCESS, or an error of this rank's. If releases differ, releases->differ names two ranks
 * afterwards, on every rank, and the content of `meeting` has no meaning.
 */
int mca_coll_flash_meet(ompi_communicator_t *world, mca_coll_flash_releases_t *releases,
                        mca_coll_flash_meeting_t *meeting);

/*
 * What a message of a meeting holds, behind what MPI_Init puts before it: this rank's values, and the
 * seats of so many ranks, of `size` in all, from that rank downwards. Its length; writing it; adding
 * what the rank `from` has written.
 */
size_t mca_coll_flash_meeting_bytes(const mca_coll_flash_meeting_t *meeting, uint32_t seats);
void mca_coll_flash_meeting_pack(char *message, const mca_coll_flash_meeting_t *meeting,
                                 uint32_t size, uint32_t rank, uint32_t seats);
void mca_coll_flash_meeting_unpack(const char *message, const mca_coll_flash_meeting_t *meeting,
                                   uint32_t size, uint32_t from, uint32_t seats);

/* ----------------------------------- the same among the ranks of a communicator, without waiting */

enum { FLASH_ROUNDS_BUSY = 1 };

typedef struct mca_coll_flash_rounds mca_coll_flash_rounds_t;

/*
 * Begins a meeting of all ranks of the communicator, which stays until the meeting is over. `tag` is
 * that of its messages, and of no other meeting of the communicator. NULL: there is no memory.
 */
mca_coll_flash_rounds_t *mca_coll_flash_rounds_begin(ompi_communicator_t *comm,
                                                     mca_coll_flash_meeting_t *meeting, int tag);
/*
 * Moves it on, from within opal_progress(), by one thread at a time. FLASH_ROUNDS_BUSY; OMPI_SUCCESS:
 * this rank knows all, and its messages have left; or OMPI_ERR_*.
 */
int mca_coll_flash_rounds_advance(mca_coll_flash_rounds_t *rounds);
/* The rank that it waits for. */
uint32_t mca_coll_flash_rounds_awaited(const mca_coll_flash_rounds_t *rounds);
/* Of one that is over. */
void mca_coll_flash_rounds_free(mca_coll_flash_rounds_t *rounds);

/* The trace that the parameters ask for; NULL: none, or it cannot be had, which is said. */
flash_trace_t *mca_coll_flash_trace_open(void);
/* Writes it, once nothing is added to it any more. */
void mca_coll_flash_trace_close(void);

/* When the component is opened: nothing is open yet but what finds peers. */
void mca_coll_flash_job_open(void);
/*
 * Opens UCX, unless it is open or could not be opened; from any application thread. Whether it is
 * open; mca_coll_flash_job_reason() says why not.
 */
bool mca_coll_flash_job_open_ucx(void);
/* At the begin of MPI_Finalize: what this process has sent arrives, while all others are there. */
void mca_coll_flash_job_flush(void);
void mca_coll_flash_job_close(void);

/* Whether UCX is open in this process, and connects it to that rank, whose address is known. */
bool mca_coll_flash_job_reaches(ompi_communicator_t *comm, int rank);
/* Why it could not. */
const char *mca_coll_flash_job_reason(void);

/* By what a rank reaches the next one; both true if that is on this node. */
typedef struct mca_coll_flash_fabric {
    /* False: Open MPI's own messages go by a faster fabric than UCX's, and coll_flash_any_fabric
       does not say otherwise. */
    bool suits;
    bool rdma; /* UCX goes by RDMA devices, and between the memories of hosts alone */
} mca_coll_flash_fabric_t;

/* Once this rank could take part. */
mca_coll_flash_fabric_t mca_coll_flash_fabric_look(ompi_communicator_t *comm, int next);
/* Says by what exchanges with that peer go, if not as rings do; once. */
void mca_coll_flash_fabric_tell(const flash_peer_t *peer);

/* The engine's owner; NULL before UCX is open. Any thread. */
flash_progress_t *mca_coll_flash_job_progress(void);

/* Likewise what it moves data with. */
flash_transport_t *mca_coll_flash_job_transport(void);

/* From now on measures how long operations are under way, for good, and what it has found. */
void mca_coll_flash_job_measure(void);
flash_times_t mca_coll_flash_job_times(void);

/*
 * flash_engine_watch(); `found` is called for each operation that it finds while that cannot
 * complete yet, and may look at it.
 */
size_t mca_coll_flash_job_watch(flash_silence_t *silences, size_t most,
                                void (*found)(void *arg, size_t k, const flash_silence_t *silence),
                                void *arg);

/*
 * See `loopback probe` in flash_ucx.h; not often. Makes progress to the end before it, and behind.
 */
bool mca_coll_flash_job_loopback(void);

/* False where a progress thread is wanted, and UCX was built without support for threads. */
bool mca_coll_flash_job_may_progress(void);
/*
 * With the first operation by messages: starts the progress thread, if parameters and machine
 * allow.
 */
void mca_coll_flash_job_start(void);
/* The thread that makes callbacks, unless it is there. MPI_SUCCESS, MPI_ERR_NO_MEM. */
int mca_coll_flash_job_start_callback_thread(void);

/* The MPI error code of a status of flash's. */
int mca_coll_flash_error(int status);

/* Starts the progress thread, or says why there is none. */
void mca_coll_flash_thread_start(flash_progress_t *progress);

/* ------------------------------------------------------------------- peers */

/* Whether there was memory. */
bool mca_coll_flash_peers_init(void);
void mca_coll_flash_peers_fini(void);
/* A process of this job as a peer; NULL if there is no memory. */
flash_peer_t *mca_coll_flash_peer_of(opal_process_name_t name);
/* See `exchange_peer` in flash_ucx.h. */
flash_peer_t *mca_coll_flash_peer_to_exchange(flash_peer_t *peer);
/*
 * Keeps the address of its UCX worker, which has not been published: before the first connection to
 * it. The same address again has no effect. False: there is no memory.
 */
bool mca_coll_flash_address_learn(opal_process_name_t name, const void *address, size_t length);
/* Connects to it. FLASH_OK, or FLASH_ERR_* and the reason, FLASH_UCX_REASON_MAX bytes at most. */
int mca_coll_flash_peer_reach(opal_process_name_t name, flash_peer_t *peer, char *reason);
/* Makes it possible to send to it, or says why it is not. MPI_SUCCESS or MPI_ERR_*. */
int mca_coll_flash_peer_connect(opal_process_name_t name, flash_peer_t *peer);
/*
 * Looks whether the process is there, and loses it if not: at once on this node, elsewhere with
 * mca_coll_flash_peers_judge(), some time. Elsewhere sends it a ping, too (flash_ucx.h). To be called again
 * and again.
 */
void mca_coll_flash_peer_probe(opal_process_name_t name, flash_peer_t *peer);
void mca_coll_flash_peers_judge(void);
/* See `lose` in flash_ucx.h. */
void mca_coll_flash_peer_lose(flash_peer_t *peer);
/* Before the next loopback probe: takes note of those of this node that have gone. */
void mca_coll_flash_peers_suspect(void);
/*
 * Nothing of what the processes of this node send comes in any more. If one of them has gone, and
 * no loopback probe that was sent since has come in, it was writing to this one as it died: gives
 * all of them up, and says so.
 */
void mca_coll_flash_peers_unblock(void);

#endif /* COLL_FLASH_JOB_H */
