/*
 * coll_flash_unequal.c: calls whose blocks have lengths of their own, which their two ends alone know:
 * which of the blocks go by flash's exchange.
 *
 * No rank of an all-to-all knows all lengths, and of a gather or a scatter the root alone does, so that
 * no cost of the whole call can decide. But the two ends of a block know its bytes, since its type
 * signature is the same at both. Each block goes the way that the blocks of the call's form with equal
 * blocks would go if all had its length. The rest goes by the fallback, in a call on all ranks in which
 * the blocks that went by flash have no elements; two requests end as one (coll_flash_shared.c). A rank
 * without a block for flash gives the fallback the call as it is, and counts the operation that other
 * ranks may have begun. What all ranks know without a word is equal on all of them: whether long blocks
 * go by flash, and whether the shortest ones do, so that nothing is left to the fallback and it is not
 * called.
 *
 * A blocking call goes by the costs of blocking ones. The module below moves the rest in a blocking call of
 * its own, between the begin of the exchange and the wait for it. On each rank that call gets copies of those
 * buffers that are in a device's memory there. So does a call that goes to the module below as a whole,
 * where other calls of its kind are shared.
 *
 * In place, an all-to-all falls back where short blocks would: Open MPI's in-place call copies the block
 * of one rank to memory from which a block of another rank may be on its way, where ranks in between
 * have empty blocks. In place, a gather or a scatter leaves the root's own block alone, which no other
 * rank knows of.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_unequal.h"

#include "calls/coll_flash_packed.h"
#include "calls/coll_flash_shared.h"
#include "job/coll_flash_counters.h"
#include "ring/coll_flash_ring.h"
#include "ring/coll_flash_setup.h"

typedef mca_coll_flash_arguments_t arguments_t;

/* ------------------------------------------------------------ which blocks go how */

/* What all ranks know. */
typedef enum share {
    NO_BLOCKS,   /* all of the call falls back */
    LONG_BLOCKS, /* go by flash, and short ones fall back */
    ALL_BLOCKS   /* go by flash */
} share_t;

/* The bytes from which on a block goes by flash, which the module knows from its first such call on. */
static size_t known_ring_from(mca_coll_flash_module_t *module, const arguments_t *a)
{
    size_t *known = &module->ring_from[mca_coll_flash_cost_call(a->kind, a->blocking)];

    if (*known == 0) {
        *known = mca_coll_flash_ring_from(
            &(mca_coll_flash_call_t){.kind = a->kind, .blocking = a->blocking}, module);
    }
    return *known;
}

/* Why no block does. */
static mca_coll_flash_reason_t why_none(const mca_coll_flash_module_t *module, const arguments_t *a)
{
    mca_coll_flash_reason_t reason;

    (void) mca_coll_flash_find_path(
        &(mca_coll_flash_call_t){.kind = a->kind,
                                 .bytes = FLASH_LONG_BLOCK * (size_t) ompi_comm_size(module->comm)},
        module, &reason);
    return reason;
}

/* Whether the call is in place on all ranks, as an all-to-all is if it is on one. */
static bool all_in_place(const arguments_t *a)
{
    return a->kind == FLASH_ALLTOALL && a->sendbuf == MPI_IN_PLACE;
}

/* `may_wait`: for the communicator's set-up, in this call. `reason`: of calls that fall back. */
static share_t share_of(mca_coll_flash_module_t *module, const arguments_t *a, bool may_wait,
                        mca_coll_flash_reason_t *reason)
{
    size_t from = known_ring_from(module, a);

    if (from == SIZE_MAX) {
        *reason =
            a->blocking ? FLASH_NO_REASON : why_none(module, a); /* of the former nothing is said */
        return NO_BLOCKS;
    }
    if (module->late && !module->holds && !may_wait) {
        *reason = FLASH_NOT_HELD;
        return NO_BLOCKS;
    }
    if (from == 1) {
        return ALL_BLOCKS;
    }
    if (ompi_comm_size(module->comm) > FLASH_PAIRWISE_RANKS) {
        *reason = FLASH_COSTS_MORE;
        return NO_BLOCKS; /* as the costs say already: counts of parts have room for so many ranks */
    }
    *reason = FLASH_IN_PLACE;
    return all_in_place(a) ? NO_BLOCKS : LONG_BLOCKS;
}

/* As far as this rank knows. */
static mca_coll_flash_setup_state_t setup_of(const mca_coll_flash_module_t *module)
{
    return module->late ? mca_coll_flash_setup_look(module, FLASH_SETUP_PAIRS) : FLASH_SETUP_READY;
}

/* ------------------------------------------------------------ both parts of a call */

typedef flash_count_t counts_t[FLASH_PAIRWISE_RANKS]; /* calls of more ranks are not shared */

/* Both parts, in which the blocks of the other one have no elements. */
typedef struct parts {
    arguments_t by_ring, rest;
    counts_t sent_by_ring, received_by_ring, sent_rest, received_rest;
} parts_t;

/* Of a side: which blocks of other ranks go by flash, and whether there are any. A side of one block has
   that of this rank, which is another one's, too, unless this rank is the root. */
static bool find_long(mca_coll_flash_module_t *module, const arguments_t *a,
                      const mca_coll_flash_layout_t *side, bool goes[])
{
    int own = ompi_comm_rank(module->comm);
    size_t from = known_ring_from(module, a);
    bool any = false;

    if (side->counts == NULL) {
        return own != a->root && mca_coll_flash_block_bytes(side) >= from;
    }
    for (int rank = 0; rank < ompi_comm_size(module->comm); rank++) {
        goes[rank] = rank != own && mca_coll_flash_bytes_of_block(side, rank) >= from;
        any |= goes[rank];
    }
    return any;
}

static void share_side(flash_counts_t *by_ring, flash_counts_t *rest, int ranks, const bool goes[],
                       counts_t ring_counts, counts_t rest_counts)
{
    if (*by_ring == NULL) {
        return;
    }
    for (int rank = 0; rank < ranks; rank++) {
        ring_counts[rank] = goes[rank] ? (*by_ring)[rank] : 0;
        rest_counts[rank] = goes[rank] ? 0 : (*rest)[rank];
    }
    *by_ring = ring_counts;
    *rest = rest_counts;
}

/*
 * The block that stays on this rank goes with those that leave or arrive by flash, if there are any.
 * False: there are none.
 */
static bool share_blocks(mca_coll_flash_module_t *module, const arguments_t *a, parts_t *parts)
{
    int ranks = ompi_comm_size(module->comm), own = ompi_comm_rank(module->comm);
    mca_coll_flash_layout_t sent = mca_coll_flash_sent_layout(a);
    mca_coll_flash_layout_t received = mca_coll_flash_received_layout(a);
    arguments_t *ring = &parts->by_ring, *rest = &parts->rest;
    bool leaves[FLASH_PAIRWISE_RANKS], arrives[FLASH_PAIRWISE_RANKS];
    bool any = find_long(module, a, &sent, leaves);

    any |= find_long(module, a, &received, arrives);
    leaves[own] = arrives[own] = any;
    *ring = *rest = *a;
    if (any) {
        rest->sendcount = rest->recvcount = 0;
    } else {
        ring->sendcount = ring->recvcount = 0;
    }
    share_side(&ring->sendcounts, &rest->sendcounts, ranks, leaves, parts->sent_by_ring,
               parts->sent_rest);
    share_side(&ring->recvcounts, &rest->recvcounts, ranks, arrives, parts->received_by_ring,
               parts->received_rest);
    return any;
}

static size_t bytes_of(const mca_coll_flash_module_t *module, const arguments_t *a)
{
    return mca_coll_flash_call_of(NULL, a, module->comm).bytes;
}

/* ------------------------------------------------------------ what is said of a call */

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

/* ------------------------------------------------------------ non-blocking calls */

/*
 * All ranks count the operation, and the communicator among those that exchange (coll_flash_tags.c):
 * those without a block for it, too. These take part in the communicator's set-up, with a call that is
 * held without a block. Where that has failed, or may fail, all ranks make a second call of the
 * fallback's: in that of a gather or a scatter, messages without data come and go.
 */
static int start_long_blocks(const mca_coll_flash_collective_t *collective, const char *name,
                             mca_coll_flash_module_t *module, arguments_t *a,
                             ompi_request_t **request)
{
    mca_coll_flash_setup_state_t setup = setup_of(module);
    parts_t parts;
    bool any = share_blocks(module, a, &parts);

    if (setup == FLASH_SETUP_READY) {
        mca_coll_flash_pairs_tag(module);
    }
    if (!any) {
        tell(name, module, a, FLASH_FALLBACK, FLASH_COSTS_MORE);
    }
    if (!any && setup == FLASH_SETUP_READY) {
        (void) mca_coll_flash_plain_ticket(module, FLASH_RING);
        return mca_coll_flash_start_bounced(collective, module, a, FLASH_FALLBACK, request);
    }
    if (any) {
        tell_parts(name, module, &parts.by_ring, &parts.rest, setup);
    }
    return mca_coll_flash_start_shared(collective, any ? name : NULL, module, &parts.by_ring,
                                       &parts.rest, setup, request);
}

int mca_coll_flash_start_unequal(const mca_coll_flash_collective_t *collective, const char *name,
                                 mca_coll_flash_arguments_t *a, mca_coll_base_module_t *base,
                                 ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    mca_coll_flash_reason_t reason;
    share_t share = share_of(module, a, false, &reason);

    if (share == LONG_BLOCKS) {
        return start_long_blocks(collective, name, module, a, request);
    }
    if (share == ALL_BLOCKS) {
        mca_coll_flash_setup_state_t setup = setup_of(module);

        tell_setup(name, module, a, setup);
        return mca_coll_flash_start_by_ring(collective, name, module, a, setup, request);
    }
    tell(name, module, a, FLASH_FALLBACK, reason);
    return mca_coll_flash_start_bounced(collective, module, a, FLASH_FALLBACK, request);
}

/* ------------------------------------------------------------ calls that may wait for other ranks */

/* share_of(); where some blocks are to go by flash, all ranks wait for the communicator's set-up. */
static share_t share_once_set_up(mca_coll_flash_module_t *module, const arguments_t *a,
                                 mca_coll_flash_reason_t *reason)
{
    share_t share = share_of(module, a, true, reason);

    if (share != NO_BLOCKS && module->late &&
        mca_coll_flash_setup_wait(module, FLASH_SETUP_PAIRS) == FLASH_SETUP_REFUSED) {
        *reason = FLASH_NOT_SET_UP;
        return NO_BLOCKS;
    }
    return share;
}

/* The exchange goes on while the module below moves the rest, which it is given whatever becomes of the
   exchange, since the other ranks give it theirs; but not if its buffers cannot be copied. */
static int block_long_blocks(const mca_coll_flash_collective_t *collective, const char *name,
                             mca_coll_flash_module_t *module, arguments_t *a)
{
    mca_coll_flash_ticket_t ticket;
    ompi_request_t *request;
    parts_t parts;
    int error, error_of_rest;

    mca_coll_flash_pairs_tag(module);
    ticket = mca_coll_flash_plain_ticket(module, FLASH_RING);
    if (!share_blocks(module, a, &parts)) {
        return mca_coll_flash_block_bounced(collective, module, a);
    }
    tell_parts(name, module, &parts.by_ring, &parts.rest, FLASH_SETUP_READY);
    error = collective->start(module, ticket, &parts.by_ring, FLASH_RING, &request);
    error_of_rest = mca_coll_flash_block_bounced(collective, module, &parts.rest);
    if (error == MPI_SUCCESS) {
        error = mca_coll_flash_wait(request);
    }
    return error == MPI_SUCCESS ? error_of_rest : error;
}

int mca_coll_flash_block_unequal(const mca_coll_flash_collective_t *collective, const char *name,
                                 mca_coll_flash_arguments_t *a, mca_coll_base_module_t *base)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    mca_coll_flash_reason_t reason = FLASH_NO_REASON;
    ompi_request_t *request;
    share_t share = NO_BLOCKS;
    int rc;

    a->blocking = true;
    if (mca_coll_flash_may_block(module, a->kind)) {
        share = share_once_set_up(module, a, &reason);
    }
    if (share == NO_BLOCKS) { /* without a reason, as all calls of its kind: untouched */
        return reason == FLASH_NO_REASON ? collective->block(module, a)
                                         : mca_coll_flash_block_bounced(collective, module, a);
    }
    if (share == LONG_BLOCKS) {
        return block_long_blocks(collective, name, module, a);
    }
    tell(name, module, a, FLASH_RING, FLASH_NO_REASON);
    rc = mca_coll_flash_start_by_ring(collective, name, module, a, FLASH_SETUP_READY, &request);
    return rc == MPI_SUCCESS ? mca_coll_flash_wait(request) : rc;
}

/* ------------------------------------------------------------ persistent requests */

static int make_long_blocks(const mca_coll_flash_collective_t *collective, const char *name,
                            mca_coll_flash_module_t *module, const arguments_t *a,
                            struct ompi_info_t *info, ompi_request_t **request)
{
    parts_t parts;
    bool any = share_blocks(module, a, &parts);

    mca_coll_flash_pairs_tag(module);
    if (!any) {
        tell(name, module, a, FLASH_FALLBACK, FLASH_COSTS_MORE);
        return mca_coll_flash_persist_aside(collective, module, a, info, request);
    }
    mca_coll_flash_tell_shared(name, bytes_of(module, &parts.by_ring),
                               bytes_of(module, &parts.rest), module->comm);
    return mca_coll_flash_persist_shared(collective, module, &parts.by_ring, &parts.rest, info,
                                         request);
}

/* As mca_coll_flash_make_persistent(). */
static share_t share_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                               mca_coll_flash_reason_t *reason)
{
    if (!mca_coll_flash_persistent_id_find(module)) {
        *reason = FLASH_PERSISTENT_OP_IDS;
        return NO_BLOCKS;
    }
    return share_once_set_up(module, a, reason);
}

int mca_coll_flash_persist_unequal(const mca_coll_flash_collective_t *collective, const char *name,
                                   const mca_coll_flash_arguments_t *a, struct ompi_info_t *info,
                                   mca_coll_base_module_t *base, ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    mca_coll_flash_reason_t reason;
    share_t share = share_each_time(module, a, &reason);
    mca_coll_flash_path_t path = share == ALL_BLOCKS ? FLASH_RING : FLASH_FALLBACK;

    if (share == LONG_BLOCKS) {
        return make_long_blocks(collective, name, module, a, info, request);
    }
    tell(name, module, a, path, path == FLASH_RING ? FLASH_NO_REASON : reason);
    return mca_coll_flash_persist(collective, module, path, a, info, request);
}
