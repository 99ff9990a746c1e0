/*
 * coll_flash_path.h: which algorithm serves a call.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_PATH_H
#define COLL_FLASH_PATH_H

#include <stdio.h>

#include "request/coll_flash_request.h"
#include "settings/coll_flash_costs.h"

/*
 * Ranks of a communicator up to which a reduce-scatter is pairwise by its cost, and an all-to-all, a
 * gather or a scatter is served by its cost. Each rank, or the root, then has an endpoint to each other
 * one, and nothing beyond eight ranks was measured.
 */
#define FLASH_PAIRWISE_RANKS 16

/*
 * Bytes between the addresses of two buffers that flash gives libnbc, which takes buffers of one address
 * for a call in place, whatever their displacements.
 */
#define FLASH_APART 64

/* Of an all-to-all whose blocks differ: longer than any block from which on a table of costs may have the
   exchange begin. */
#define FLASH_LONG_BLOCK ((size_t) 1 << 32)

/* All blocks together, of `count` elements each or of counts[] where that is not NULL. */
size_t mca_coll_flash_bytes(flash_count_t count, flash_counts_t counts, MPI_Datatype type,
                            ompi_communicator_t *comm);

/* Why the ring does not serve a call; equal on all ranks. From FLASH_NOT_COMMUTATIVE on, no other
   algorithm of flash serves it either. */
typedef enum mca_coll_flash_reason {
    FLASH_NO_REASON,
    FLASH_COSTS_MORE,
    FLASH_COST_UNKNOWN,
    FLASH_ON_ONE_NODE,
    FLASH_NOT_WANTED,   /* coll_flash_algorithm */
    FLASH_NOT_BLOCKING, /* coll_flash_blocking */
    FLASH_NOT_COMMUTATIVE,
    FLASH_NOT_OF_REDUCTIONS,
    FLASH_NOT_PREDEFINED,
    FLASH_TYPE_WITH_GAPS,
    FLASH_PERSISTENT_OP_IDS,
    FLASH_TOO_MANY_RANKS,
    FLASH_MERGED,
    FLASH_NOT_SET_UP, /* see ring/coll_flash_setup.h */
    FLASH_NOT_HELD,   /* likewise: the call would have to wait */
    FLASH_IN_PLACE,
    FLASH_NOT_SERVED,
    FLASH_COUNTS_TOO_LARGE,
    FLASH_REASONS
} mca_coll_flash_reason_t;

/* A call, as far as it is equal on all ranks. */
typedef struct mca_coll_flash_call {
    const char *name; /* "Iallgather", "Allgather", ... */
    flash_kind_t kind;
    bool blocking;
    size_t bytes; /* of all blocks together */
    /* Bytes that shared memory must not cut. 0: the ring, a named pairwise algorithm or the
       fallback. */
    size_t element;
    mca_coll_flash_reason_t reason; /* not FLASH_NO_REASON: none but the fallback serves it */
} mca_coll_flash_call_t;

/*
 * The algorithm that serves the call. Counts it, and says so at coll_flash_verbose 2. Where the
 * communicator is to be set up first, waits for that; but not if `state` is not NULL. Of a call that
 * goes by messages on such a communicator, *state becomes that of the set-up: FLASH_SETUP_PENDING has
 * the call be held (mca_coll_flash_hold), and neither counted nor told of yet; FLASH_SETUP_REFUSED has
 * it fall back.
 */
mca_coll_flash_path_t mca_coll_flash_choose_path(const mca_coll_flash_call_t *call,
                                                 mca_coll_flash_module_t *module,
                                                 mca_coll_flash_setup_state_t *state);
/* The set-up that the extension's calls of that kind need. */
mca_coll_flash_setup_kind_t mca_coll_flash_needed_setup(const mca_coll_flash_module_t *module,
                                                        flash_kind_t kind);
/* As far as costs and parameters decide, without counting and saying so; and why it is not the ring. */
mca_coll_flash_path_t mca_coll_flash_find_path(const mca_coll_flash_call_t *call,
                                               const mca_coll_flash_module_t *module,
                                               mca_coll_flash_reason_t *reason);
/*
 * Of calls that the ring serves, or else the fallback: the bytes from which on a block goes by the ring, if
 * all blocks of the call have so many. Costs are linear, but for fractions of a nanosecond, so that longer
 * ones do, too. SIZE_MAX: none of FLASH_LONG_BLOCK bytes does. call->bytes does not count. The same on all
 * ranks, as all that costs depend on is: both ends of a block go by it.
 */
size_t mca_coll_flash_ring_from(const mca_coll_flash_call_t *call,
                                const mca_coll_flash_module_t *module);
/* Whether an algorithm of flash's may serve the module's blocking calls of that kind: a quick no. */
bool mca_coll_flash_may_block(const mca_coll_flash_module_t *module, flash_kind_t kind);
/*
 * As mca_coll_flash_choose_path(), of a blocking call, with mca_coll_flash_blocking_settings(). A call that
 * falls back is
 * not counted, and nothing is said of it: many programs make hardly any other calls.
 */
mca_coll_flash_path_t
mca_coll_flash_choose_blocking_path(const mca_coll_flash_call_t *call,
                                    mca_coll_flash_module_t *module,
                                    const mca_coll_flash_settings_t *settings);
/* Whether an algorithm by messages, other than the ring, costs no more than the ring: see the hint
   `merge`. */
bool mca_coll_flash_merge_pays(const mca_coll_flash_call_t *call,
                               const mca_coll_flash_module_t *module);
/*
 * Prints what such a call would cost by each algorithm on that many ranks, of one node or not, by
 * this job's parameters; and which would serve it.
 */
void mca_coll_flash_explain(const mca_coll_flash_call_t *call, uint32_t ranks, bool node,
                            FILE *text);
/*
 * Takes the tag that libnbc would have taken in a call that it does not get, since this rank refuses
 * it: the calls behind it have the tags that they have on other ranks.
 */
void mca_coll_flash_leave_out(mca_coll_flash_module_t *module);
/* The next operation of a call on that path, not the fallback: see mca_coll_flash_ring_ticket(). */
mca_coll_flash_ticket_t mca_coll_flash_plain_ticket(mca_coll_flash_module_t *module,
                                                    mca_coll_flash_path_t path);
/*
 * What is to become of such a call, on all ranks, where this one cannot begin it because of
 * `error`: that, now or of the request.
 */
int mca_coll_flash_plain_refuse(mca_coll_flash_module_t *module, flash_kind_t kind,
                                mca_coll_flash_path_t path, int error, ompi_request_t **request);
/* Counts a call, and says by which algorithm it goes, and why not by the ring. */
void mca_coll_flash_tell_call(const mca_coll_flash_call_t *call, ompi_communicator_t *comm,
                              mca_coll_flash_path_t path, mca_coll_flash_reason_t reason);
/* The same of a call whose blocks of `by_ring` bytes go by the ring, and the rest falls back. */
void mca_coll_flash_tell_shared(const char *name, size_t by_ring, size_t rest,
                                ompi_communicator_t *comm);
/* A path and its reason as a line of text. */
void mca_coll_flash_print_path(FILE *text, mca_coll_flash_path_t path,
                               mca_coll_flash_reason_t reason);
/*
 * Counts and says so of a call of the extension, which the ring serves without a reason against it.
 */
void mca_coll_flash_tell_path(const char *name, size_t bytes, ompi_communicator_t *comm,
                              mca_coll_flash_reason_t reason);

#endif /* COLL_FLASH_PATH_H */
