/*
 * progress_pair.h: what the tests of the progress share: two ranks whose allgathers rank 0's
 * progress moves, over a transport that sees whether it is called with the lock.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PROGRESS_PAIR_H
#define PROGRESS_PAIR_H

#include <stdbool.h>

#include "fake_transport.h"
#include "progress/flash_progress_state.h"

enum { RANKS = 2, OPERATIONS = 2 };

/* The allgathers are in place: there is nothing to do but to move them. */
typedef struct pair {
    fake_net_t *net;
    flash_engine_t *engines[RANKS];
    flash_progress_t *progress; /* rank 0's */
    uint32_t reserved;          /* by its engine alone */
    char blocks[RANKS][OPERATIONS][RANKS];
    flash_callback_fn *consume; /* of rank 0's operations; or NULL */
    bool no_wakeup;             /* they are */
} pair_t;

void set_up(pair_t *pair);
/* Whether nothing was left to do, or reserved, and all was done with the lock. */
bool tear_down(pair_t *pair);
/* What rank 0's transport does when it is to wake a sleeper. */
void set_arm(int (*arm)(flash_transport_t *transport));

flash_op_params_t params_of(pair_t *pair, uint32_t rank, unsigned operation);
void start_here(pair_t *pair, unsigned operation);  /* on rank 0, */
void start_there(pair_t *pair, unsigned operation); /* on rank 1, */
void start(pair_t *pair, unsigned operation);       /* on both */

/*
 * Rank 0's engine, as the progress thread moves it; and both, until all has ended, and nobody has
 * heard of it.
 */
void move_here(pair_t *pair);
void move_all(pair_t *pair);

/* Operations of rank 0's that a poll has reported, and the status of the latest. */
extern int completed, latest_status;
extern double completed_ms; /* when it was, by now_ms() */
/* When the transport was first asked whether it is settled; 0: it was not. */
double first_settled_ms(pair_t *pair);
bool has_asked(pair_t *pair); /* whether it was */
/* The application moves all operations. Whether the thread has slept until the last one ended. */
bool is_moved_asleep(pair_t *pair);
/* For flash_progress_poll(): of the pair that is `shown`. */
extern pair_t *shown;
void complete(flash_op_t *op);
/* Whether a poll asks the transport, and how much it reports. */
bool poll_is(pair_t *pair, bool moves, int reports);

/* Whether some thread has the lock. Not to be asked by the one that has it. */
bool is_locked(void);
/* Called where the lock is to be had by somebody: tear_down() fails if it was not. */
void see_guard(void);

void sleep_a_while(void);
double now_ms(void);
/* Waits until that is true; false: it is not, for so long that it never will be. */
bool comes_true(bool (*what)(pair_t *pair), pair_t *pair);

enum { SEGMENTS = 5 };

typedef struct side { /* of a broadcast by rank 0, of which messages leave */
    char block[SEGMENTS];
    flash_flow_t flow;
    flash_pair_t exchange;
} side_t;

flash_op_params_t bcast_of(pair_t *pair, uint32_t rank, side_t *side);

#endif /* PROGRESS_PAIR_H */
