/*
 * coll_flash_module.h: a communicator that flash serves.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_MODULE_H
#define COLL_FLASH_MODULE_H

#include "job/coll_flash_job.h"
#include "settings/coll_flash_costs.h"

/* The functions of Open MPI's that flash takes over, by the names that they have there. */
#define FLASH_EACH_FUNCTION(each)                                                                  \
    FLASH_EACH_NON_BLOCKING(each)                                                                  \
    each(allgather) each(allgatherv) each(reduce_scatter) each(reduce_scatter_block)               \
        each(allreduce) each(alltoall) each(alltoallv) each(bcast) each(gather_init)               \
            each(scatter_init) each(gatherv_init) each(scatterv_init) each(allgather_init)         \
                each(allgatherv_init) each(reduce_scatter_init) each(reduce_scatter_block_init)    \
                    each(allreduce_init) each(alltoall_init) each(alltoallv_init) each(bcast_init) \
                        each(reduce_init)
#define FLASH_EACH_NON_BLOCKING(each)                                                              \
    each(iallgather) each(iallgatherv) each(ireduce_scatter) each(ireduce_scatter_block)           \
        each(iallreduce) each(ialltoall) each(ialltoallv) each(ibcast) each(ireduce) each(igather) \
            each(iscatter) each(igatherv) each(iscatterv)

/* The functions that the communicator had before, with their modules; for what falls back. */
typedef struct mca_coll_flash_previous {
#define FLASH_PREVIOUS(name)                 \
    mca_coll_base_module_##name##_fn_t name; \
    mca_coll_base_module_t *name##_module;
    FLASH_EACH_FUNCTION(FLASH_PREVIOUS)
#undef FLASH_PREVIOUS
} mca_coll_flash_previous_t;

/* Bits of the operation id in a tag, which tells the operations of a communicator apart. */
#define FLASH_SEQUENCE_BITS  14
/* The lower half numbers calls, in turn; the upper half persistent requests that are not freed. */
#define FLASH_CALL_SEQUENCES (UINT32_C(1) << (FLASH_SEQUENCE_BITS - 1))

/* No rank, and not FLASH_NOBODY either. */
#define FLASH_NOT_TOLD (FLASH_NOBODY - 1)

/*
 * What holds for one communicator: the parameters of the same names, unless its info keys say
 * otherwise. All are of one type, for the table of keys in coll_flash_info.c.
 */
typedef struct mca_coll_flash_settings {
    size_t algorithm; /* mca_coll_flash_path_t, or FLASH_AUTO */
    size_t blocking;  /* FLASH_BLOCKING_* */
    size_t on_node;   /* 0 or 1 */
    size_t shm_use;   /* FLASH_SHM_*; of no effect without a shared-memory channel */
    size_t segment_bytes;
    size_t segment_window, max_sends, pinned_bytes;
    size_t pieces;          /* where a call's hints do not say */
    size_t callback_thread; /* 0 or 1: this rank's callbacks are made by a thread of flash's */
} mca_coll_flash_settings_t;

/* Of a communicator without info keys. */
mca_coll_flash_settings_t mca_coll_flash_settings_of_parameters(void);
/*
 * What holds for a blocking call: the module's settings; by costs alone, unless coll_flash_blocking
 * says that blocking calls go as non-blocking ones do.
 */
mca_coll_flash_settings_t
mca_coll_flash_blocking_settings(const mca_coll_flash_settings_t *settings);

/*
 * What an operation by messages of flash's own needs, see ring/coll_flash_setup.h: one that goes around
 * the ring, and one in which ranks exchange messages with any other rank.
 */
typedef enum mca_coll_flash_setup_kind {
    FLASH_SETUP_RING,
    FLASH_SETUP_PAIRS,
    FLASH_SETUPS
} mca_coll_flash_setup_kind_t;

typedef enum mca_coll_flash_setup_state {
    FLASH_SETUP_NONE,
    FLASH_SETUP_PENDING,
    FLASH_SETUP_READY,
    FLASH_SETUP_REFUSED /* such calls fall back: on some rank it could not be done */
} mca_coll_flash_setup_state_t;

typedef struct mca_coll_flash_module {
    mca_coll_base_module_t super;
    ompi_communicator_t *comm;
    mca_coll_flash_previous_t previous;
    flash_ring_t ring;                /* its order of ranks is owned */
    bool on_node;                     /* all ranks share this node */
    bool above_libnbc;                /* whose tags non-blocking calls take that fall back */
    bool late;                        /* it is set up with its first calls, not by MPI_Init */
    bool holds;                       /* meanwhile its non-blocking calls may be held */
    _Atomic int setups[FLASH_SETUPS]; /* of mca_coll_flash_setup_state_t, see there */
    /* Known when the ring is set up, and equal on all ranks: see mca_coll_flash_fabric_t; and the most
       bytes of an address of UCX's, if `late`. */
    bool rdma;
    size_t address_bytes;
    mca_coll_flash_settings_t settings; /* changed by the user's collective calls alone */
    /* What mca_coll_flash_ring_from() says of calls with counts, once it is asked for; 0: not yet. Changed
       by the user's collective calls alone. */
    size_t ring_from[FLASH_COST_CALLS];
    uint64_t recv_tag, send_tag; /* this communicator's part of the tags, see coll_flash_tags.c */
    uint32_t sequence;           /* operations started; collective calls are ordered by the user */
    /* A bit for each operation id of a call that is under way, and the calls that wait for theirs,
       in their order; see coll_flash_op_id.c. */
    uint64_t taken[FLASH_CALL_SEQUENCES / 64];
    opal_list_t waiting;
    /* Of persistent requests, a bit for each id: free on all ranks, and equal on all, changed by
       the user's collective calls alone; and those given back on this rank since. */
    uint64_t persistent_free[FLASH_CALL_SEQUENCES / 64];
    uint64_t persistent_returned[FLASH_CALL_SEQUENCES / 64];
    flash_flow_t flow;     /* of its calls by the engine, whose lock orders it */
    struct flash_shm *shm; /* owned; NULL: none */
    uint32_t shm_sequence; /* operations on it */
    /* It is in the list of those that are not done: see coll_flash_shm_calls.c for these two. */
    bool shm_active;
    struct mca_coll_flash_module *next_active;
    flash_peer_t *left, *right; /* NULL before the first ring */
    flash_pair_t *pairs;        /* owned; NULL before the first operation that exchanges with all */
    /* At whose door the latest failure elsewhere was laid that was told; written by any thread that
       completes a request, and nothing else goes by it: relaxed. */
    _Atomic uint32_t told_failed_rank;
} mca_coll_flash_module_t;

OBJ_CLASS_DECLARATION(mca_coll_flash_module_t);

/*
 * While a communicator is made there is no error that all ranks would hear of: one that went
 * without flash alone would leave the others waiting in each ring. Ends the job, and says why.
 */
_Noreturn void mca_coll_flash_no_memory(ompi_communicator_t *comm);

/* The module that serves `comm`, or NULL. */
mca_coll_flash_module_t *mca_coll_flash_module_of(ompi_communicator_t *comm);

#endif /* COLL_FLASH_MODULE_H */
