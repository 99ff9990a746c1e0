/*
 * flash_timer.h: when the progress thread is to look after what is in flight.
 *
 * The application is about to leave MPI: the timer expires 50 us later, or twice the time that the call
 * has taken, where that is longer, up to a millisecond. The application waits
 * inside MPI and moves the data itself: as long as it does, it keeps putting the timer off. So the
 * thread wakes when it is needed, and an operation that is waited for at once wakes nobody, unless
 * something of it is still to be sent (flash_op_has_tail()). A
 * single call such as MPI_Test() is no waiting, and leaves the thread on duty.
 *
 * Any thread may call any of these.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_TIMER_H
#define FLASH_TIMER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * How long the thread stands back from others: from whoever gives it something to do, who is about
 * to leave MPI for its computation (an accelerator, say, is to be started before its data moves) or
 * to wait inside MPI and do it itself, and from whoever waits for the lock. Where they share a
 * core, they come first. Not sched_yield(), which Linux's scheduler may answer with a pause of
 * several milliseconds.
 */
#define FLASH_STAND_BACK_NS         UINT64_C(50000)
#define FLASH_LONGEST_STAND_BACK_NS UINT64_C(1000000)

/*
 * `lock` orders those who set the timer: a `when` to come means that the timer is set. The rest is
 * atomic, relaxed: hints, of which a stale one makes a wake-up early, or late by what a thread stands
 * back at most; none is lost by it.
 */
typedef struct flash_timer {
    pthread_mutex_t lock;
    int fd;                          /* a timer, readable when it has expired */
    atomic_uint_fast64_t when;       /* nanoseconds, as all times here */
    atomic_uint_fast64_t called;     /* when the application was last about to leave */
    atomic_uint_fast64_t stand_back; /* how long the thread stands back since then */
    atomic_uint_fast64_t last_poll;  /* since then; 0: none */
    atomic_uint_fast64_t last_close; /* the latest poll that came close after another; likewise */
    atomic_bool waits_at_once;       /* a guess at what the application does next */
} flash_timer_t;

bool flash_timer_init(flash_timer_t *timer);
void flash_timer_fini(flash_timer_t *timer);

/* The application leaves, or has left something to do. */
void flash_timer_call(flash_timer_t *timer);

/*
 * Likewise, where it may also come back at once: with an operation started, or one of several
 * completed. `brief`: little data, which is not worth a timer if the application is expected back.
 * `taken`: nanoseconds that it has spent on that. On a slow machine it needs longer to leave.
 */
void flash_timer_recall(flash_timer_t *timer, bool brief, uint64_t taken);

/* There is something to look after, in so many nanoseconds at the latest: what is set may come before. */
void flash_timer_before(flash_timer_t *timer, uint64_t nanoseconds);

/* Something has happened that no event tells of. Who waits inside MPI sees it by itself. */
void flash_timer_fire(flash_timer_t *timer);

/* An application thread polls. `leaves`: anything that the thread may be needed for, if it goes. */
void flash_timer_polled(flash_timer_t *timer, bool leaves);

/* Whether application threads keep polling, so that the progress thread is to stay away. */
bool flash_timer_stands_by(flash_timer_t *timer);

/*
 * Sleeps until the timer expires, until event_fd is readable unless that is negative, or for so
 * many nanoseconds unless these are. Whether event_fd is readable, and the timer has not expired.
 */
bool flash_timer_sleep(flash_timer_t *timer, int event_fd, int64_t nanoseconds);

#endif /* FLASH_TIMER_H */
