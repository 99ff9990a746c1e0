/*
 * flash_progress_state.h: what the parts of the progress share: flash_progress.c, the lock, the
 * application threads and the callback thread; flash_progress_thread.c, the progress thread;
 * flash_progress_ended.c, what has ended elsewhere.
 *
 * Shared between threads, and what orders it:
 *   engine, transport  the lock
 *   callback_thread    see flash_callback_thread.h
 *   has_callback_thread written and read by those who start operations with callbacks on it, whose
 *                      caller lets in one at a time, and by who destroys
 *   stop               written by the thread that joins, read by the progress thread; the lock
 *   in_flight          atomic, relaxed: a hint to poll() that there may be something to do. An
 *                      operation is counted before its starter can wait for it
 *   with_wakeup        likewise: of these, those that the thread is woken for. Seen late, it costs
 *                      the thread a look
 *   timer              see flash_timer.h
 *   contenders         atomic, relaxed: a hint to those who keep coming back for the lock
 *   has_thread         atomic, relaxed: written by whoever starts and joins the thread, which
 *                      order it themselves; another thread may see it late, and then polls
 *   cpu_clock          atomic, relaxed: written by the progress thread. The clock of a thread that
 *                      has ended cannot be read
 *   ended              atomic: whoever adds to the list releases what it adds, whoever takes the
 *                      list acquires it
 *   elsewhere          atomic: released by who sets it, acquired by who asks there
 *   notes              atomic: a list that only grows, under the lock; released with each note that
 *                      comes, acquired by who looks for one. `taken` of each note: acquired by who
 *                      takes it, and released, under the lock, by who has read it
 *   notes_made         the lock
 *   idle_polls, wakeups  atomic, relaxed: counters
 *   vain_events, napped, busy_arms, busy_since, vain_looks  the progress thread's own
 *   unsettled, ended_at, settling_looks  likewise
 *   context            the lock
 *   visitors           atomic: who leaves releases all that it did with the progress, who destroys
 *                      that acquires it
 *   flash_in_callback  one for each thread
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_PROGRESS_STATE_H
#define FLASH_PROGRESS_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "progress/flash_timer.h"
#include "progress/flash_callback_thread.h"
#include "progress/flash_progress.h"

/*
 * The thread has looked at least so many times, over at least this time, the transport could not be
 * armed, and nothing happened: another process does not take what it is sent, or has died while it
 * sent. From then on the thread looks as seldom as after operations without a wake-up.
 */
#define FLASH_BUSY_ARMS 100
#define FLASH_BUSY_NS   UINT64_C(1000000000)

/*
 * How often the thread looks after operations when no event comes: after those without a wake-up,
 * since ranks wait for the rest of such an operation while this one's application stays out of MPI;
 * and after all others, since an event that the transport misses would otherwise delay them as long;
 * and, behind them, after what the transport has still to send.
 */
#define FLASH_LOOK_NS INT64_C(20000000)

/* That a pending piece is done, for who may neither wait for the lock nor ask for memory. */
typedef struct flash_progress_note {
    flash_ended_t ended;
    flash_op_t *op;
    uint64_t number;
    atomic_bool taken;
} flash_progress_note_t;

/* Those of one operation, as many as it has pieces pending at a time. */
typedef struct flash_progress_notes flash_progress_notes_t;
struct flash_progress_notes {
    flash_progress_note_t notes[FLASH_MAX_PENDING];
    flash_progress_notes_t *next;
};

struct flash_progress {
    flash_engine_t *engine;
    flash_transport_t *transport;
    pthread_mutex_t lock;
    pthread_t thread;
    atomic_bool has_thread;
    bool stop;
    flash_callback_thread_t callback_thread;
    bool has_callback_thread;
    flash_timer_t timer;
    atomic_int cpu_clock; /* of the thread; 0: none */
    atomic_uint idle_polls;
    void (*placed)(void *arg);
    void *placed_arg;
    atomic_size_t in_flight, with_wakeup;
    atomic_uint contenders;
    atomic_uint_fast64_t wakeups;
    unsigned vain_events;           /* one behind the other, that nothing came of */
    bool napped;                    /* since the latest */
    unsigned busy_arms;             /* one behind the other, with nothing in between */
    uint64_t busy_since;            /* when the first of them was, by flash_trace_now() */
    _Atomic(flash_ended_t *) ended; /* the latest first */
    _Atomic(flash_progress_notes_t *) notes;
    size_t notes_made;                            /* for so many operations */
    _Atomic(const flash_elsewhere_t *) elsewhere; /* NULL: nothing is */
    unsigned vain_looks;                          /* there, one behind the other */
    bool unsettled;                               /* the transport may have something to send */
    uint64_t ended_at;                            /* the latest operation, by flash_trace_now() */
    unsigned settling_looks;                      /* after that */
    const flash_context_t *context;               /* NULL: none is needed */
    atomic_uint visitors;                         /* that end a pending piece */
};

/* flash_progress_lock.c */
/* As flash_progress_lock(), for who comes back for the lock again and again: others come first. */
void flash_progress_lock_behind(flash_progress_t *progress);
bool flash_progress_try_lock(flash_progress_t *progress);
/* As flash_progress_unlock(), without the context. */
void flash_progress_unlock_alone(flash_progress_t *progress);
/* The application is about to leave, or to come back at once, and has spent `taken` nanoseconds on
   that: see flash_timer_recall(). */
void flash_progress_recall(flash_progress_t *progress, bool brief, uint64_t taken);
/* For a moment, that others may have the lock. */
void flash_progress_stand_back(void);
/* With the lock, but for the work itself. */
void flash_progress_run(flash_progress_t *progress, const flash_work_t *work);

/* flash_progress.c */
/* Whether none is in flight but such as the thread is not woken for. */
bool flash_progress_needs_no_wakeup(const flash_progress_t *progress);
/* With the lock: moves data, and takes note of what has ended elsewhere. */
bool flash_progress_move(flash_progress_t *progress);

/* flash_progress_ended.c */
bool flash_progress_finish_ended(flash_progress_t *progress);
/* Without the lock: whether something has ended. */
bool flash_progress_look_elsewhere(flash_progress_t *progress);
bool flash_progress_busy_elsewhere(flash_progress_t *progress);
/* With the lock: notes for one operation more than are in flight. FLASH_OK, FLASH_ERR_NO_MEMORY. */
int flash_progress_make_notes(flash_progress_t *progress);
void flash_progress_free_notes(flash_progress_t *progress);

#endif /* FLASH_PROGRESS_STATE_H */
