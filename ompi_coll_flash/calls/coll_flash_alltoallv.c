/*
 * coll_flash_alltoallv.c: MPI's all-to-all whose blocks have lengths of their own: which of the
 * blocks go by flash's exchange (coll_flash_alltoallv_start.c).
 *
 * No rank knows all lengths, so that no cost of the whole call can decide. But the two ends of a
 * block know its bytes, since its type signature is the same at both. Each block goes the way that
 * the blocks of an MPI_Ialltoall would go if all had its length. The rest goes by the fallback, in a
 * call on all ranks in which the blocks that went by flash have no elements; two requests end as one
 * (coll_flash_shared.c). A rank without a block for flash gives the fallback the call as it is, and
 * counts the operation that other ranks may have begun. What all ranks know without a word is equal
 * on all of them: whether long blocks go by flash, and whether the shortest ones do, so that nothing
 * is left to the fallback and it is not called.
 *
 * In place the call falls back where short blocks would: Open MPI's in-place call copies the block of
 * one rank to memory from which a block of another rank may be on its way, where ranks in between
 * have empty blocks.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"
#include "calls/coll_flash_shared.h"
#include "job/coll_flash_counters.h"
#include "ring/coll_flash_ring.h"
#include "ring/coll_flash_setup.h"

typedef mca_coll_flash_arguments_t arguments_t;

static bool is_in_place(const arguments_t *a)
{
    return a->sendbuf == MPI_IN_PLACE;
}

/* ------------------------------------------------------------ which blocks go how */

/* What all ranks know. */
typedef enum share {
    NO_BLOCKS,   /* all of the call falls back */
    LONG_BLOCKS, /* go by flash, and short ones fall back */
    ALL_BLOCKS   /* go by flash */
} share_t;

/* By what a block of that length goes. */
static mca_coll_flash_path_t path_of_block(const mca_coll_flash_module_t *module, size_t bytes,
                                           mca_coll_flash_reason_t *reason)
{
    mca_coll_flash_call_t call = {.kind = FLASH_ALLTOALL,
                                  .bytes = bytes * (size_t) ompi_comm_size(module->comm)};

    return mca_coll_flash_find_path(&call, module, reason);
}

static bool goes_by_ring(const mca_coll_flash_module_t *module, size_t bytes)
{
    mca_coll_flash_reason_t reason;

    return bytes > 0 && path_of_block(module, bytes, &reason) == FLASH_RING;
}

/* `may_wait`: for the communicator's set-up, in this call. `reason`: of calls that fall back. */
static share_t share_of(const mca_coll_flash_module_t *module, const arguments_t *a, bool may_wait,
                        mca_coll_flash_reason_t *reason)
{
    if (path_of_block(module, FLASH_LONG_BLOCK, reason) != FLASH_RING) {
        return NO_BLOCKS;
    }
    if (module->late && !module->holds && !may_wait) {
        *reason = FLASH_NOT_HELD;
        return NO_BLOCKS;
    }
    if (goes_by_ring(module, 1)) {
        return ALL_BLOCKS;
    }
    if (ompi_comm_size(module->comm) > FLASH_PAIRWISE_RANKS) {
        *reason = FLASH_COSTS_MORE;
        return NO_BLOCKS; /* as the costs say already: counts of parts have room for so many ranks */
    }
    *reason = FLASH_IN_PLACE;
    return is_in_place(a) ? NO_BLOCKS : LONG_BLOCKS;
}

/* As far as this rank knows. */
static mca_coll_flash_setup_state_t setup_of(const mca_coll_flash_module_t *module)
{
    return module->late ? mca_coll_flash_setup_look(module, FLASH_SETUP_PAIRS) : FLASH_SETUP_READY;
}

/*
 * The counts of both parts of the call. The block that stays on this rank goes with those that leave
 * by flash, if there are any. False: there are none, nor any that arrive.
 */
static bool share_blocks(const mca_coll_flash_module_t *module, const arguments_t *a,
                         mca_coll_flash_counts_t *by_ring, mca_coll_flash_counts_t *rest)
{
    int ranks = ompi_comm_size(module->comm), own = ompi_comm_rank(module->comm);
    mca_coll_flash_layout_t sent = mca_coll_flash_sent_layout(a);
    mca_coll_flash_layout_t received = mca_coll_flash_received_layout(a);
    bool any = false;

    for (int rank = 0; rank < ranks; rank++) {
        bool leaves =
            rank == own || goes_by_ring(module, mca_coll_flash_bytes_of_block(&sent, rank));
        bool arrives =
            rank == own || goes_by_ring(module, mca_coll_flash_bytes_of_block(&received, rank));

        any |= rank != own && (leaves || arrives);
        by_ring->sent[rank] = leaves ? a->sendcounts[rank] : 0;
        by_ring->received[rank] = arrives ? a->recvcounts[rank] : 0;
        rest->sent[rank] = leaves ? 0 : a->sendcounts[rank];
        rest->received[rank] = arrives ? 0 : a->recvcounts[rank];
    }
    if (!any) {
        by_ring->sent[own] = by_ring->received[own] = 0;
        rest->sent[own] = a->sendcounts[own];
        rest->received[own] = a->recvcounts[own];
    }
    return any;
}

/* What the rank receives. */
static size_t bytes_of(const mca_coll_flash_module_t *module, const arguments_t *a)
{
    return mca_coll_flash_bytes(0, a->recvcounts, a->recvtype, module->comm);
}

static arguments_t with_counts(const arguments_t *a, const mca_coll_flash_counts_t *counts)
{
    arguments_t part = *a;

    part.sendcounts = counts->sent;
    part.recvcounts = counts->received;
    return part;
}

/* ------------------------------------------------------------ MPI's functions */

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.ialltoallv(
        a->sendbuf, FLASH_COUNTS(a->sendcounts), FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
        FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype, module->comm, request,
        module->previous.ialltoallv_module);
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.alltoallv_init(
        a->sendbuf, FLASH_COUNTS(a->sendcounts), FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
        FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype, module->comm, info,
        request, module->previous.alltoallv_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = mca_coll_flash_start_alltoallv, .pass_on = pass_on, .init = pass_on_each_time};

/* In place, MPI leaves the send side undefined. */
static arguments_t arguments_of(const void *sendbuf, flash_counts_t sendcounts,
                                flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                                flash_counts_t recvcounts, flash_displs_t rdispls,
                                MPI_Datatype recvtype)
{
    bool in_place = sendbuf == MPI_IN_PLACE;

    return (arguments_t){.kind = FLASH_ALLTOALL,
                         .sendbuf = sendbuf,
                         .sendcounts = in_place ? recvcounts : sendcounts,
                         .sdispls = in_place ? rdispls : sdispls,
                         .sendtype = in_place ? recvtype : sendtype,
                         .recvbuf = recvbuf,
                         .recvcounts = recvcounts,
                         .displs = rdispls,
                         .recvtype = recvtype};
}

static void tell(const char *name, const mca_coll_flash_module_t *module, const arguments_t *a,
                 mca_coll_flash_path_t path, mca_coll_flash_reason_t reason)
{
    const mca_coll_flash_call_t call = mca_coll_flash_call_of(name, a, module->comm);

    mca_coll_flash_tell_call(&call, module->comm, path, reason);
}

/* A call that is held is told of when the set-up is over. */
static void tell_setup(const char *name, const mca_coll_flash_module_t *module,
                       const arguments_t *a, mca_coll_flash_setup_state_t setup)
{
    if (setup != FLASH_SETUP_PENDING) {
        bool ready = setup == FLASH_SETUP_READY;

        tell(name, module, a, ready ? FLASH_RING : FLASH_FALLBACK,
             ready ? FLASH_NO_REASON : FLASH_NOT_SET_UP);
    }
}

/* The same of the parts of a call: it counts once, and the bytes of the rest in any case. */
static void tell_parts(const char *name, const mca_coll_flash_module_t *module,
                       const arguments_t *by_ring, const arguments_t *rest,
                       mca_coll_flash_setup_state_t setup)
{
    if (setup == FLASH_SETUP_READY) {
        mca_coll_flash_tell_shared(name, bytes_of(module, by_ring), bytes_of(module, rest),
                                   module->comm);
    } else {
        mca_coll_flash_count(FLASH_COUNT_FALLBACK_BYTES, bytes_of(module, rest));
        tell_setup(name, module, by_ring, setup);
    }
}

/*
 * All ranks count the operation, and the communicator among those that exchange (coll_flash_tags.c):
 * those without a block for it, too. These take part in the communicator's set-up, with a call that is
 * held without a block.
 */
static int start_long_blocks(const char *name, mca_coll_flash_module_t *module, arguments_t *a,
                             ompi_request_t **request)
{
    mca_coll_flash_setup_state_t setup = setup_of(module);
    mca_coll_flash_counts_t by_ring, rest;
    bool any = share_blocks(module, a, &by_ring, &rest);
    arguments_t ring = with_counts(a, &by_ring), below = with_counts(a, &rest);

    if (setup == FLASH_SETUP_READY) {
        mca_coll_flash_pairs_tag(module);
    }
    if (!any) {
        tell(name, module, a, FLASH_FALLBACK, FLASH_COSTS_MORE);
    }
    if (!any && setup != FLASH_SETUP_PENDING) {
        (void) mca_coll_flash_plain_ticket(module, FLASH_RING);
        return mca_coll_flash_start_bounced(&collective, module, a, FLASH_FALLBACK, request);
    }
    if (any) {
        tell_parts(name, module, &ring, &below, setup);
    }
    return mca_coll_flash_start_shared(&collective, any ? name : NULL, module, &ring, &below, setup,
                                       request);
}

int mca_coll_flash_ialltoallv(const void *sendbuf, flash_counts_t sendcounts,
                              flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                              flash_counts_t recvcounts, flash_displs_t rdispls,
                              MPI_Datatype recvtype, ompi_communicator_t *comm,
                              ompi_request_t **request, mca_coll_base_module_t *base)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    arguments_t a = arguments_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                 rdispls, recvtype);
    mca_coll_flash_reason_t reason;
    share_t share = share_of(module, &a, false, &reason);

    (void) comm;
    if (share == LONG_BLOCKS) {
        return start_long_blocks("Ialltoallv", module, &a, request);
    }
    if (share == ALL_BLOCKS) {
        mca_coll_flash_setup_state_t setup = setup_of(module);

        tell_setup("Ialltoallv", module, &a, setup);
        return mca_coll_flash_start_by_ring(&collective, "Ialltoallv", module, &a, setup, request);
    }
    tell("Ialltoallv", module, &a, FLASH_FALLBACK, reason);
    return mca_coll_flash_start_bounced(&collective, module, &a, FLASH_FALLBACK, request);
}

static int make_long_blocks(const char *name, mca_coll_flash_module_t *module, const arguments_t *a,
                            struct ompi_info_t *info, ompi_request_t **request)
{
    mca_coll_flash_counts_t by_ring, rest;
    bool any = share_blocks(module, a, &by_ring, &rest);
    arguments_t ring = with_counts(a, &by_ring), below = with_counts(a, &rest);

    mca_coll_flash_pairs_tag(module);
    if (!any) {
        tell(name, module, a, FLASH_FALLBACK, FLASH_COSTS_MORE);
        return mca_coll_flash_persist_aside(&collective, module, a, info, request);
    }
    mca_coll_flash_tell_shared(name, bytes_of(module, &ring), bytes_of(module, &below),
                               module->comm);
    return mca_coll_flash_persist_shared(&collective, module, &ring, &below, info, request);
}

/* As mca_coll_flash_make_persistent(). */
static share_t share_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                               mca_coll_flash_reason_t *reason)
{
    bool has_id = mca_coll_flash_persistent_id_find(module);
    share_t share = share_of(module, a, true, reason);

    if (!has_id) {
        *reason = FLASH_PERSISTENT_OP_IDS;
        return NO_BLOCKS;
    }
    if (share != NO_BLOCKS && module->late &&
        mca_coll_flash_setup_wait(module, FLASH_SETUP_PAIRS) == FLASH_SETUP_REFUSED) {
        *reason = FLASH_NOT_SET_UP;
        return NO_BLOCKS;
    }
    return share;
}

int mca_coll_flash_alltoallv_init(const void *sendbuf, flash_counts_t sendcounts,
                                  flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                                  flash_counts_t recvcounts, flash_displs_t rdispls,
                                  MPI_Datatype recvtype, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *base)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    arguments_t a = arguments_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                 rdispls, recvtype);
    mca_coll_flash_reason_t reason;
    share_t share = share_each_time(module, &a, &reason);
    mca_coll_flash_path_t path = share == ALL_BLOCKS ? FLASH_RING : FLASH_FALLBACK;

    (void) comm;
    if (share == LONG_BLOCKS) {
        return make_long_blocks("Alltoallv_init", module, &a, info, request);
    }
    tell("Alltoallv_init", module, &a, path, path == FLASH_RING ? FLASH_NO_REASON : reason);
    return mca_coll_flash_persist(&collective, module, path, &a, info, request);
}
