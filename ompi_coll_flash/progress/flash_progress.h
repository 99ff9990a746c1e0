/*
 * flash_progress.h: who moves the data, and when: the lock, the progress thread, and the
 * application threads that wait.
 *
 * One lock orders the engine and the transport. The progress thread sleeps in poll() on the
 * transport's event descriptor, wakes for each arrival, moves data, combines, and sleeps again. As
 * long as operations are in flight, or the transport has something of them to send, it also wakes now
 * and then without an event, in case the transport missed one; at all other times it sleeps. An
 * application thread that waits inside MPI moves the data itself, at polling latency, and keeps putting
 * the thread's timer off: the thread comes back as soon as an operation completes or a callback begins,
 * and a moment after the application has stopped asking.
 *
 * Only application threads, in flash_progress_poll(), hand out completed operations, and they run
 * the callbacks, but of those operations that have a third kind of thread do it: one for all of
 * them, which sleeps until a callback is to be made. Without a progress thread application threads
 * also move all the data.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_PROGRESS_H
#define FLASH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/flash_engine.h"

typedef struct flash_progress flash_progress_t;

/* Whether the calling thread is inside a user's callback, of a ring or of the fallback. */
extern _Thread_local bool flash_in_callback;

/* Takes over neither: the engine and the transport outlive it. NULL if there is no memory. */
flash_progress_t *flash_progress_create(flash_engine_t *engine, flash_transport_t *transport);
/* Stops the threads, if there are any, and frees. */
void flash_progress_destroy(flash_progress_t *progress);

/*
 * Starts the progress thread; `placed` is called in it first, to bind it, and may be NULL.
 * FLASH_OK, FLASH_ERR_TRANSPORT (the transport cannot wake a sleeper), FLASH_ERR_NO_MEMORY.
 */
int flash_progress_start_thread(flash_progress_t *progress, void (*placed)(void *arg), void *arg);
bool flash_progress_has_thread(const flash_progress_t *progress);
/* Returns when the thread has ended. Data moves on in flash_progress_poll() only. */
void flash_progress_stop_thread(flash_progress_t *progress);

/*
 * Before an operation with callbacks on the callback thread: starts that thread, unless it is
 * there. One call at a time. FLASH_OK, FLASH_ERR_NO_MEMORY.
 */
int flash_progress_start_callback_thread(flash_progress_t *progress);

/*
 * From now on the transport moves a device's memory, and wants its context in the thread that has
 * it do so: who has the lock enters it, and leaves it before the lock. The pointer is kept.
 */
typedef struct flash_context {
    void (*enter)(void);
    void (*leave)(void);
} flash_context_t;
void flash_progress_set_context(flash_progress_t *progress, const flash_context_t *context);
/* NULL if there is none. */
const flash_context_t *flash_progress_context(const flash_progress_t *progress);

/* Around all use of the engine and the transport. */
void flash_progress_lock(flash_progress_t *progress);
void flash_progress_unlock(flash_progress_t *progress);

/*
 * Creates and starts an operation, and wakes the thread for it, unless it needs no wake-up: what it
 * can say leaves at once, and while there are none but such ones the thread looks after them now and
 * then at most. As flash_op_create().
 */
int flash_progress_start_op(flash_progress_t *progress, const flash_op_params_t *params);

/* As flash_engine_refuse(). */
bool flash_progress_refuse(flash_progress_t *progress, const flash_op_params_t *params);

/*
 * For application threads: calls `completed` without the lock for each operation that is complete,
 * which destroys it; as long as others are under way, moves data and runs one piece of work, too.
 * Returns how much happened.
 * May be entered again from within a callback, then runs no further callback.
 */
int flash_progress_poll(flash_progress_t *progress, void (*completed)(flash_op_t *op));

/*
 * As flash_engine_end_pending(), in any thread, one of a driver's callbacks included: the driver
 * may let who has the lock wait for that. So it claims the piece, which needs no lock, tries the
 * lock, and otherwise leaves a note. It waits for nothing.
 */
bool flash_progress_end_pending(flash_progress_t *progress, flash_op_t *op, uint64_t number,
                                int status);

/*
 * Something that was begun elsewhere is done: any thread may say so, and does not wait for the
 * lock. `end` is called under it, tells the engine, and frees.
 */
typedef struct flash_ended flash_ended_t;
struct flash_ended {
    int status;
    void (*end)(flash_ended_t *ended);
    flash_ended_t *next; /* flash_progress_ended.c's */
};
void flash_progress_ended(flash_progress_t *progress, flash_ended_t *ended);

/*
 * Where something is under way that ends when nobody notices: threads that move data ask there as
 * well, without the lock. poll() calls flash_progress_ended() for what has ended, and says whether
 * there was any; busy(), which takes no time, whether there may be some later. The pointer is kept.
 */
typedef struct flash_elsewhere {
    bool (*poll)(void);
    bool (*busy)(void);
} flash_elsewhere_t;
void flash_progress_set_elsewhere(flash_progress_t *progress, const flash_elsewhere_t *elsewhere);

/* Destroys an operation that was handed out as completed. */
void flash_progress_destroy_op(flash_progress_t *progress, flash_op_t *op);

/* After a change to what is in flight: has the thread look at it. */
void flash_progress_wake(flash_progress_t *progress);

/* Whether operations are in flight. */
bool flash_progress_busy(const flash_progress_t *progress);

/* From now on measures how long operations are under way; for good. */
void flash_progress_measure(flash_progress_t *progress);
/* Seconds that it found, see flash_meter.h. */
typedef struct flash_times {
    double under_way, exposed;
} flash_times_t;
flash_times_t flash_progress_times(flash_progress_t *progress);

/* How often the thread has woken up. */
uint64_t flash_progress_wakeups(const flash_progress_t *progress);
/* Seconds of CPU time that the thread has used; 0 without one. */
double flash_progress_cpu_time(const flash_progress_t *progress);

#endif /* FLASH_PROGRESS_H */
