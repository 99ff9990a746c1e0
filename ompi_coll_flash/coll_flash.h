/*
 * coll_flash.h: the component and its modules: all that speaks Open MPI, with
 * coll_flash_operation.h, its requests, and coll_flash_board.h.
 *
 *   coll_flash_component.c       registration, parameters, opening and closing
 *   coll_flash_version.c         whether this is the Open MPI that it was built for
 *   coll_flash_spelling.c        parameters that are misspelt
 *   coll_flash_release.c         whether all processes have the same release of flash
 *   coll_flash_job.c             what the processes of a job agree on; transport and engine
 *   coll_flash_card.c            what each tells all others about itself
 *   coll_flash_peer.c            finding each other, and losing each other
 *   coll_flash_thread.c          where the progress thread runs
 *   coll_flash_module.c          one communicator: serve it or not, take over, give back
 *   coll_flash_info.c            its info keys
 *   coll_flash_number.c          the numbers that tell a communicator's operations apart
 *   coll_flash_ring.c            in which order a communicator's ranks stand in its ring
 *   coll_flash_request.c         an operation as an MPI request
 *   coll_flash_board.c           boards of the ranks of a node: their memory
 *   coll_flash_board_calls.c     operations on them
 *   coll_flash_debt.c            requests that failed, after they have been freed
 *   coll_flash_watch.c           neighbours that fall silent
 *   coll_flash_path.c            which way a call takes
 *   coll_flash_buffer.c          what memory its buffers are in
 *   coll_flash_mirror.c          host bounces for such in a device's, where a call takes no ring
 *   coll_flash_mirror_calls.c    such a call on them
 *   coll_flash_kernel.c          who adds in it
 *   coll_flash_counters.c        what tools read of it all, through MPI_T
 *   coll_flash_summary.c         a table of that, in MPI_Finalize
 *   coll_flash_trace.c           what a timeline shows of it all
 *   coll_flash_allgather.c       MPI's arguments to an allgather ring's
 *   coll_flash_reduce_scatter.c  MPI's arguments to a reduce-scatter ring's
 *   coll_flash_allreduce.c       and those of the extension's allreduce,
 *   coll_flash_alltoall.c        and all-to-all
 *   coll_flash_halves.c          16-bit floating point
 *   coll_flash_persistent.c      requests that start such a ring each time
 *   coll_flash_ompi6.c           what Open MPI 6 wants besides
 *   mpix_flash*.c                the extension, on top of the same functions
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_H
#define COLL_FLASH_H

#include "compat/coll_flash_compat.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/flash_board.h"
#include "engine/flash_engine.h"
#include "device/flash_gpu.h"
#include "engine/flash_pool.h"
#include "progress/flash_progress.h"
#include "engine/flash_transport.h"
#include "mpix_flash.h"

/* --------------------------------------------------------------- component */

enum { FLASH_PROGRESS_AUTO, FLASH_PROGRESS_ON, FLASH_PROGRESS_OFF };

enum { FLASH_ORDER_MACHINE, FLASH_ORDER_RANK };

enum { FLASH_ON_NODE_AUTO, FLASH_ON_NODE_YES, FLASH_ON_NODE_NO };

enum { FLASH_DIRECT_AUTO, FLASH_DIRECT_YES, FLASH_DIRECT_NO };

enum { FLASH_SCHEDULE_RING, FLASH_SCHEDULE_DIRECT };

/* Each operation in rounds has room for a message of that. */
#define FLASH_MOST_IN_ROUNDS ((size_t) 64 << 20)

#define FLASH_DEFAULT_PRIORITY 90
/* That of libnbc, which flash needs below it: it would come first. */
#define FLASH_TOO_LOW_PRIORITY 10

/* MCA parameters. Set at registration; those that all ranks share, once more by the agreement. */
typedef struct mca_coll_flash_params {
    int priority;
    int progress; /* FLASH_PROGRESS_* */
    bool bind;
    int ring_order; /* FLASH_ORDER_* */
    int on_node;    /* FLASH_ON_NODE_*; agreed on: yes or no */
    bool board;     /* agreed on: and usable */
    size_t board_bytes;
    int board_read_ranks; /* agreed on: 0 where memory cannot be read */
    size_t min_bytes, step_bytes;
    size_t merge_bytes; /* of the extension's calls */
    size_t direct_bytes;
    int direct_ranks;
    size_t doubling_bytes; /* agreed on: up to FLASH_MOST_IN_ROUNDS */
    int doubling_ranks;
    size_t segment_bytes;
    int schedule;         /* FLASH_SCHEDULE_*, of reduce-scatters */
    bool callback_thread; /* unless a communicator's info key says otherwise */
    unsigned depth, sends;
    size_t keep_bytes; /* of scratch memory */
    unsigned probe_seconds, stuck_seconds;
    bool stuck_error;
    int verbose;
    bool summary;
    char *trace; /* what the files' names begin with; NULL or empty: none */
    char *help_dir;
    char *cuda_plugin; /* its path; empty or "none": there is none */
    bool cuda_reduce;
    int cuda_direct;        /* FLASH_DIRECT_* */
    size_t cuda_keep_bytes; /* of pinned memory, and of a device's */
    size_t pinned_bytes;    /* of an operation's scratch; 0: what it wants */
} mca_coll_flash_params_t;

extern mca_coll_flash_params_t mca_coll_flash_params;
extern int mca_coll_flash_output; /* stream of the verbose lines */

/* Exported for the component proper, mca_coll_flash.so. */
int mca_coll_flash_register(void);
int mca_coll_flash_open(void);
int mca_coll_flash_close(void);
int mca_coll_flash_init_query(bool enable_progress_threads, bool enable_mpi_threads);
mca_coll_base_module_t *mca_coll_flash_comm_query(ompi_communicator_t *comm, int *priority);

#define FLASH_VERBOSE(level, ...)                            \
    do {                                                     \
        if (mca_coll_flash_params.verbose >= (level)) {      \
            opal_output(mca_coll_flash_output, __VA_ARGS__); \
        }                                                    \
    } while (0)

/* Prints a topic of the help file, once a job for equal messages. */
#define FLASH_HELP(topic, ...) opal_show_help("help-mpi-coll-flash.txt", topic, true, __VA_ARGS__)

/* False, and said: flash is to keep its hands off this Open MPI. */
bool mca_coll_flash_version_fits(void);

/*
 * After registration, from what environment and command line say: of names that are no parameters
 * of flash's it is said so, and numbers that are none are said, and have no effect: `before` has
 * what held without them.
 */
void mca_coll_flash_spelling_check(const mca_coll_flash_params_t *before);

/* --------------------------------------------------------------------- job */

/* This process', through PMIx, before MPI_Init commits what was published. */
void mca_coll_flash_release_publish(void);
/*
 * Collective over those processes of MPI_COMM_WORLD that have flash, once, in MPI_Init: whether all
 * have, and the same release; if not, that is said. OMPI_SUCCESS, OMPI_ERR_NOT_AVAILABLE or others.
 */
int mca_coll_flash_release_agree(ompi_communicator_t *world);

/* The trace that the parameters ask for; NULL: none, or it cannot be had, which is said. */
flash_trace_t *mca_coll_flash_trace_open(void);
/* Writes it, once nothing is added to it any more. */
void mca_coll_flash_trace_close(void);

/* Opens UCX and publishes its address; a failure is kept, for the agreement to find. */
void mca_coll_flash_job_open(void);
void mca_coll_flash_job_close(void);

/*
 * The first of what follows that is collective over MPI_COMM_WORLD: see
 * mca_coll_flash_release_agree(). If it fails, flash does not serve the job.
 */
int mca_coll_flash_job_meet(ompi_communicator_t *world);

/*
 * Collective over MPI_COMM_WORLD, once, in MPI_Init: whether UCX is usable on every rank and
 * which parameters all of them go by. `right` is this rank's neighbour in the ring; `passes_on`:
 * what flash does not serve has somewhere to go here.
 */
int mca_coll_flash_job_agree(ompi_communicator_t *world, int right, bool passes_on);

/* Whether this process may serve communicators: true until the agreement says otherwise. */
bool mca_coll_flash_job_usable(void);

/* The engine's owner; NULL if UCX could not be opened. */
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

/* See flash_ucx_echo(); not often. Makes progress to the end before it, and behind. */
unsigned mca_coll_flash_job_echo(void);

/*
 * With the first operation: lets Open MPI's progress call flash's, and starts the progress thread
 * if the parameters and the machine allow.
 */
void mca_coll_flash_job_start(void);
/* The thread that makes callbacks, unless it is there. MPI_SUCCESS, MPI_ERR_NO_MEM. */
int mca_coll_flash_job_start_caller(void);

/* The first of these two by itself. */
void mca_coll_flash_job_poll(void);

/* Starts the progress thread, or says why there is none. */
void mca_coll_flash_thread_start(flash_progress_t *progress);

/* ------------------------------------------------------------------- peers */

/* Whether there was memory. */
bool mca_coll_flash_peers_init(void);
void mca_coll_flash_peers_fini(void);
/* A process of this job as a peer; NULL if there is no memory. */
flash_peer_t *mca_coll_flash_peer_of(opal_process_name_t name);
/* Connects to it. FLASH_OK, or FLASH_ERR_* and the reason, FLASH_UCX_REASON_MAX bytes at most. */
int mca_coll_flash_peer_reach(opal_process_name_t name, flash_peer_t *peer, char *reason);
/* Makes it possible to send to it, or says why it is not. MPI_SUCCESS or MPI_ERR_*. */
int mca_coll_flash_peer_connect(opal_process_name_t name, flash_peer_t *peer);
/*
 * Looks whether the process is there, and loses it if not: at once on this node, elsewhere with
 * mca_coll_flash_peers_judge(), some time. To be called again and again.
 */
void mca_coll_flash_peer_probe(opal_process_name_t name, flash_peer_t *peer);
void mca_coll_flash_peers_judge(void);
/* See flash_ucx_lose(). */
void mca_coll_flash_peer_lose(flash_peer_t *peer);
/* Before the next echo: takes note of those of this node that have gone. */
void mca_coll_flash_peers_suspect(void);
/*
 * Nothing of what the processes of this node send comes in any more. If one of them has gone, and no
 * echo that was sent since has come in, it was writing to this one as it died: gives all of them up,
 * and says so.
 */
void mca_coll_flash_peers_unjam(void);

/* ------------------------------------------------------------------ module */

/* The functions that the communicator had before, with their modules; for what flash passes on. */
typedef struct mca_coll_flash_previous {
    mca_coll_base_module_iallgather_fn_t iallgather;
    mca_coll_base_module_t *iallgather_module;
    mca_coll_base_module_iallgatherv_fn_t iallgatherv;
    mca_coll_base_module_t *iallgatherv_module;
    mca_coll_base_module_ireduce_scatter_fn_t ireduce_scatter;
    mca_coll_base_module_t *ireduce_scatter_module;
    mca_coll_base_module_ireduce_scatter_block_fn_t ireduce_scatter_block;
    mca_coll_base_module_t *ireduce_scatter_block_module;
    mca_coll_base_module_allgather_init_fn_t allgather_init;
    mca_coll_base_module_t *allgather_init_module;
    mca_coll_base_module_allgatherv_init_fn_t allgatherv_init;
    mca_coll_base_module_t *allgatherv_init_module;
    mca_coll_base_module_reduce_scatter_init_fn_t reduce_scatter_init;
    mca_coll_base_module_t *reduce_scatter_init_module;
    mca_coll_base_module_reduce_scatter_block_init_fn_t reduce_scatter_block_init;
    mca_coll_base_module_t *reduce_scatter_block_init_module;
} mca_coll_flash_previous_t;

/* Bits of the number in a tag that tells the operations of a communicator apart. */
#define FLASH_SEQUENCE_BITS  14
/* The lower half numbers calls, in turn; the upper half persistent requests, each once. */
#define FLASH_CALL_SEQUENCES (UINT32_C(1) << (FLASH_SEQUENCE_BITS - 1))

/* The least a segment may have, and the most pieces to a block: the engine keeps a place for each.
 */
#define FLASH_LEAST_SEGMENT         64
/* Of pinned memory: to receive to, to send from, and for what is added. */
#define FLASH_LEAST_PINNED_SEGMENTS 3
#define FLASH_MAX_PIECES            4096

/* No rank, and not FLASH_NOBODY either. */
#define FLASH_NOT_TOLD (FLASH_NOBODY - 1)

/*
 * What holds for one communicator: the parameters of the same names, unless its info keys say
 * otherwise. All are of one type, for the table of keys in coll_flash_info.c.
 */
typedef struct mca_coll_flash_settings {
    size_t min_bytes, step_bytes, merge_bytes;
    size_t on_node; /* 0 or 1 */
    size_t board;   /* 0 or 1; 1 has no effect where the communicator has no board */
    size_t board_bytes;
    size_t board_read_ranks; /* 0 where no rank may read another one's memory */
    size_t direct_bytes, direct_ranks;
    size_t doubling_bytes, doubling_ranks;
    size_t segment_bytes;
    size_t depth, sends, pinned_bytes;
    size_t pieces;          /* where a call's hints do not say */
    size_t schedule;        /* FLASH_SCHEDULE_* */
    size_t callback_thread; /* 0 or 1: this rank's callbacks are made by a thread of flash's */
} mca_coll_flash_settings_t;

/* coll_flash_info.c */
/* Once, while the communicator is made: follows its info keys from then on. OPAL_SUCCESS, or none.
 */
int mca_coll_flash_read_settings(ompi_communicator_t *comm, mca_coll_flash_settings_t *settings);

typedef struct mca_coll_flash_module {
    mca_coll_base_module_t super;
    ompi_communicator_t *comm;
    mca_coll_flash_previous_t previous;
    flash_ring_t ring;                  /* its order of ranks is owned */
    bool on_node;                       /* all ranks share this node */
    mca_coll_flash_settings_t settings; /* changed by the user's collective calls alone */
    uint64_t recv_tag, send_tag; /* this communicator's part of the tags, see coll_flash_module.c */
    uint32_t sequence;           /* operations started; collective calls are ordered by the user */
    uint32_t persistent_sequence; /* persistent requests made; likewise */
    /* A bit for each number of a call that is under way, and the calls that wait for theirs, in
       their order; see coll_flash_number.c. */
    uint64_t taken[FLASH_CALL_SEQUENCES / 64];
    opal_list_t waiting;
    flash_board_t *board;    /* owned; NULL: none */
    uint32_t board_sequence; /* operations on it */
    /* It is in the list of those that are not done: see coll_flash_board_calls.c for these two. */
    bool board_active;
    struct mca_coll_flash_module *next_active;
    flash_peer_t *left, *right; /* NULL before the first ring */
    flash_pair_t *pairs;        /* owned; NULL before the first operation that exchanges with all */
    /* At whose door the latest failure elsewhere was laid that was told; written by any thread that
       completes a request, and nothing else goes by it: relaxed. */
    _Atomic uint32_t told_blame;
} mca_coll_flash_module_t;

OBJ_CLASS_DECLARATION(mca_coll_flash_module_t);

/*
 * Collective over MPI_COMM_WORLD, once, in MPI_Init: every process learns where all others are.
 */
int mca_coll_flash_ring_agree(ompi_communicator_t *world);
void mca_coll_flash_ring_fini(void);
/* Whether all ranks share a node; equal on all of them. */
bool mca_coll_flash_ring_on_one_node(ompi_communicator_t *comm);
/* Where this rank stands in the communicator's ring. False if there is no memory. */
bool mca_coll_flash_ring_form(ompi_communicator_t *comm, flash_ring_t *ring);

/*
 * Before the first all-to-all: an array for each distance, with the communicator's part of the
 * tags, and without peers. Ends the job if there is no memory.
 */
void mca_coll_flash_module_pair(mca_coll_flash_module_t *module);

/* The module that serves `comm`, or NULL. */
mca_coll_flash_module_t *mca_coll_flash_module_of(ompi_communicator_t *comm);

/* Frees what all modules share, when there are no more of them. */
void mca_coll_flash_modules_fini(void);

/* ------------------------------------------------------------------- paths */

/* All blocks together, of `count` elements each or of counts[] where that is not NULL. */
size_t mca_coll_flash_bytes(flash_count_t count, flash_counts_t counts, MPI_Datatype type,
                            ompi_communicator_t *comm);
/* Why no ring serves a call; equal on all ranks. First those that are no board's. */
typedef enum mca_coll_flash_obstacle {
    FLASH_NO_OBSTACLE,
    FLASH_BELOW_MIN,
    FLASH_BELOW_TWICE_MIN,
    FLASH_BELOW_STEP,
    FLASH_BELOW_TWICE_STEP,
    FLASH_ON_ONE_NODE,
    FLASH_NOT_COMMUTATIVE,
    FLASH_NOT_OF_REDUCTIONS,
    FLASH_NOT_PREDEFINED,
    FLASH_TYPE_WITH_GAPS,
    FLASH_PERSISTENT_NUMBERS,
    FLASH_TOO_MANY_RANKS,
    FLASH_MERGED,
    FLASH_NOT_SERVED,
    FLASH_COUNTS_TOO_LARGE,
    FLASH_OBSTACLES
} mca_coll_flash_obstacle_t;

/* Which way a call takes. */
typedef enum mca_coll_flash_path {
    FLASH_PASSED_ON, /* to the component below */
    FLASH_BY_RING,
    FLASH_DIRECT, /* a reduce-scatter too small for a ring; the thread is not woken for it */
    FLASH_BY_BOARD,
    FLASH_BY_DOUBLING /* too small for all these: a few rounds of Open MPI's own messages */
} mca_coll_flash_path_t;

/*
 * Of a call, which is counted, and said at coll_flash_verbose 2; equal on all ranks. Without an
 * obstacle, its size decides. `element`: what is not to be cut, for a board; 0: none is to serve it.
 */
mca_coll_flash_path_t mca_coll_flash_choose_path(const char *name, flash_kind_t kind, size_t bytes,
                                                 size_t element,
                                                 const mca_coll_flash_module_t *module,
                                                 mca_coll_flash_obstacle_t obstacle);
/* Counts and says so of a call of the extension, which takes the ring if there is no obstacle. */
void mca_coll_flash_tell_path(const char *name, size_t bytes, ompi_communicator_t *comm,
                              mca_coll_flash_obstacle_t obstacle);

/* ---------------------------------------------------------------- counters */

/* What the process has done so far: numbers of calls, unless it says otherwise. */
typedef enum mca_coll_flash_counter {
    FLASH_COUNT_RINGS, /* of calls served by a ring, or as a parameter or the call itself says */
    FLASH_COUNT_RING_BYTES,
    FLASH_COUNT_CALLBACKS, /* made for them */
    FLASH_COUNT_DIRECTS,   /* plain calls, served directly because they are too small for a ring */
    FLASH_COUNT_DIRECT_BYTES,
    FLASH_COUNT_BOARDS, /* plain calls, served over a board */
    FLASH_COUNT_BOARD_BYTES,
    FLASH_COUNT_DOUBLINGS, /* plain calls, in rounds of Open MPI's messages */
    FLASH_COUNT_DOUBLING_BYTES,
    FLASH_COUNT_PASSED_ON, /* plain calls */
    FLASH_COUNT_PASSED_ON_BYTES,
    FLASH_COUNT_PLAIN, /* of the extension, served by plain collectives */
    FLASH_COUNT_PLAIN_BYTES,
    /* Why these last two were not served. */
    FLASH_COUNT_MIN_BYTES,
    FLASH_COUNT_STEP_BYTES,
    FLASH_COUNT_ON_NODE,
    FLASH_COUNT_OPERATION,
    FLASH_COUNT_PERSISTENT,
    FLASH_COUNT_RANKS,
    FLASH_COUNT_MERGED,
    FLASH_COUNT_COMMUNICATOR,
    FLASH_COUNT_LARGE,
    FLASH_COUNTERS
} mca_coll_flash_counter_t;

/* Performance variables of the MPI tool interface. */
void mca_coll_flash_counters_register(void);
void mca_coll_flash_count(mca_coll_flash_counter_t counter, uint64_t amount);
uint64_t mca_coll_flash_counted(mca_coll_flash_counter_t counter);

/* If any process asks for it (coll_flash_summary): a table of all that, in MPI_Finalize. */
void mca_coll_flash_summary_open(void);
void mca_coll_flash_summary_close(void);

#endif /* COLL_FLASH_H */
