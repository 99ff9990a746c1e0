/*
 * coll_flash_setup.h: what the ranks of a communicator must know of each other before its first
 * operation by messages of flash's own: whether UCX is open on all of them, and its addresses.
 *
 * Where the job does not do this in MPI_Init (coll_flash_setup), a set-up begins with the
 * communicator's first call that such messages are to serve. A non-blocking call may not wait for the
 * other ranks: it waits in a queue, and is started when the set-up is over, or handed to the fallback
 * (calls/coll_flash_held.c).
 *
 *   coll_flash_setup.c        the set-ups under way, and what waits for them
 *   coll_flash_setup_steps.c  one of them
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_SETUP_H
#define COLL_FLASH_SETUP_H

#include "request/coll_flash_module.h"

/* What waits for a set-up. */
typedef struct mca_coll_flash_waiter {
    struct mca_coll_flash_waiter *next;
    /* Once, by an application thread, in the order in which waiters came. */
    void (*go_on)(struct mca_coll_flash_waiter *waiter, bool ready);
} mca_coll_flash_waiter_t;

/* Which set-up an operation needs: of a kind, or of the pairwise form of its kind. */
mca_coll_flash_setup_kind_t mca_coll_flash_setup_for(flash_kind_t kind, bool pairwise);
/*
 * Whether such operations may start: FLASH_SETUP_READY; fall back: FLASH_SETUP_REFUSED; or must wait, in
 * their turn: FLASH_SETUP_PENDING, also where nothing has begun.
 */
mca_coll_flash_setup_state_t mca_coll_flash_setup_look(const mca_coll_flash_module_t *module,
                                                       mca_coll_flash_setup_kind_t kind);
/* Whether calls by messages fall back, as far as this rank knows yet. */
bool mca_coll_flash_setup_is_refused(const mca_coll_flash_module_t *module);
/*
 * Begins the set-up with the first call. The waiter goes on when the set-up is over, and those before
 * it have gone on, perhaps from within. All ranks make these calls in the order of their collectives.
 */
void mca_coll_flash_setup_await(mca_coll_flash_module_t *module, mca_coll_flash_setup_kind_t kind,
                                mca_coll_flash_waiter_t *waiter);
/* Waits, in a call that may wait for other ranks. FLASH_SETUP_READY or FLASH_SETUP_REFUSED. */
mca_coll_flash_setup_state_t mca_coll_flash_setup_wait(mca_coll_flash_module_t *module,
                                                       mca_coll_flash_setup_kind_t kind);

/* For the algorithm's table: 0 if nothing happened; whether there are any; once a second. */
int mca_coll_flash_setups_progress(void);
bool mca_coll_flash_setups_pending(void);
void mca_coll_flash_setups_watch(void);

/* --------------------------------------------------- one set-up: coll_flash_setup_steps.c */

enum { FLASH_SETUP_VALUES = 5 };

/* A rank that this one tells its address, and that tells its own. */
typedef struct mca_coll_flash_introduction {
    int rank;
    char *address;            /* owned: room for its */
    ompi_request_t *in, *out; /* NULL: over */
} mca_coll_flash_introduction_t;

typedef struct mca_coll_flash_setup {
    struct mca_coll_flash_setup *next;
    mca_coll_flash_module_t *module; /* with its communicator, kept */
    mca_coll_flash_setup_kind_t kind;
    mca_coll_flash_waiter_t *first, **last;
    unsigned watches; /* since something has happened */
    /* Of the thread that moves set-ups on. */
    bool begun;
    uint32_t neighbours; /* that are not met */
    mca_coll_flash_introduction_t with[2];
    int64_t values[FLASH_SETUP_VALUES];
    mca_coll_flash_meeting_t meeting;
    mca_coll_flash_rounds_t *rounds;
} mca_coll_flash_setup_t;

/* Moves it on: FLASH_SETUP_PENDING, or how it has ended. */
mca_coll_flash_setup_state_t mca_coll_flash_setup_advance(mca_coll_flash_setup_t *setup);
/* The rank that it waits for. */
int mca_coll_flash_setup_awaited(const mca_coll_flash_setup_t *setup);

#endif /* COLL_FLASH_SETUP_H */
