/*
 * flash_timer.c: see flash_timer.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_timer.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/*
 * A thread that waits puts the timer off to twice this from now, whenever less than this is left:
 * setting a timer takes microseconds on some virtual machines.
 */
#define STAND_BY_NS UINT64_C(500000)

/* Polls that are closer than this are those of a thread that waits. */
#define CLOSE_NS UINT64_C(400000)

static uint64_t get(const atomic_uint_fast64_t *time)
{
    return atomic_load_explicit(time, memory_order_relaxed);
}

static void set(atomic_uint_fast64_t *time, uint64_t value)
{
    atomic_store_explicit(time, value, memory_order_relaxed);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * SECOND + (uint64_t) now.tv_nsec;
}

bool flash_timer_init(flash_timer_t *timer)
{
    timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer->fd < 0) {
        return false;
    }
    pthread_mutex_init(&timer->lock, NULL);
    set(&timer->stand_back, FLASH_STAND_BACK_NS);
    return true;
}

void flash_timer_fini(flash_timer_t *timer)
{
    pthread_mutex_destroy(&timer->lock);
    close(timer->fd);
}

static void set_timer(flash_timer_t *timer, uint64_t when)
{
    struct itimerspec spec = {
        .it_value = {.tv_sec = (time_t) (when / SECOND), .tv_nsec = (long) (when % SECOND)}};

    pthread_mutex_lock(&timer->lock);
    set(&timer->when, when);
    timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &spec, NULL);
    pthread_mutex_unlock(&timer->lock);
}

/* Nanoseconds until the timer expires; 0 if it is not set. */
static uint64_t pending(const flash_timer_t *timer, uint64_t now)
{
    uint64_t when = get(&timer->when);

    return when > now ? when - now : 0;
}

/* Whether it is about to: one that is set for a look may be much later. */
static bool expires_soon(const flash_timer_t *timer, uint64_t now)
{
    uint64_t left = pending(timer, now);

    return left > 0 && left <= FLASH_LONGEST_STAND_BACK_NS;
}

/* Whether an application thread has been polling until a moment ago. */
static bool is_waited(const flash_timer_t *timer, uint64_t now)
{
    uint64_t last = get(&timer->last_close);

    return last != 0 && (last >= now || now - last < CLOSE_NS);
}

/* At once, but for standing back: a timer that expires soon enough is not put off. */
static void call_soon(flash_timer_t *timer, uint64_t now)
{
    uint64_t left = pending(timer, now), stand_back = get(&timer->stand_back);

    if (left == 0 || left > stand_back) {
        set_timer(timer, now + stand_back);
    }
}

static void forget_polls(flash_timer_t *timer, uint64_t now, uint64_t stand_back)
{
    set(&timer->called, now);
    set(&timer->stand_back, stand_back);
    set(&timer->last_poll, 0);
    set(&timer->last_close, 0);
}

void flash_timer_call(flash_timer_t *timer)
{
    uint64_t now = now_ns();

    forget_polls(timer, now, FLASH_STAND_BACK_NS);
    call_soon(timer, now);
}

static uint64_t stand_back_after(uint64_t taken)
{
    uint64_t twice =
        taken < FLASH_LONGEST_STAND_BACK_NS / 2 ? 2 * taken : FLASH_LONGEST_STAND_BACK_NS;

    return twice > FLASH_STAND_BACK_NS ? twice : FLASH_STAND_BACK_NS;
}

void flash_timer_recall(flash_timer_t *timer, bool brief, uint64_t taken)
{
    bool at_once = atomic_load_explicit(&timer->waits_at_once, memory_order_relaxed);
    uint64_t now = now_ns();

    forget_polls(timer, now, stand_back_after(taken));
    if (!brief || !at_once || !expires_soon(timer, now)) {
        call_soon(timer, now);
    }
}

void flash_timer_before(flash_timer_t *timer, uint64_t nanoseconds)
{
    uint64_t now = now_ns(), left = pending(timer, now);

    if (left == 0 || left > nanoseconds) {
        set_timer(timer, now + nanoseconds);
    }
}

void flash_timer_fire(flash_timer_t *timer)
{
    uint64_t now = now_ns();

    if (!is_waited(timer, now)) {
        set_timer(timer, now);
    }
}

void flash_timer_polled(flash_timer_t *timer, bool leaves)
{
    uint64_t now = now_ns(), called = get(&timer->called);
    uint64_t last = atomic_exchange_explicit(&timer->last_poll, now, memory_order_relaxed);
    bool waits;

    if (last == 0) {
        waits = now - called < get(&timer->stand_back);
        atomic_store_explicit(&timer->waits_at_once, waits, memory_order_relaxed);
    } else {
        waits = now - last < CLOSE_NS;
    }
    if (waits) {
        set(&timer->last_close, now);
    }
    if (!leaves) {
        return;
    }
    if (!waits) {
        call_soon(timer, now); /* it may have taken an event that would have woken the thread */
    } else if (pending(timer, now) < STAND_BY_NS || !expires_soon(timer, now)) {
        set_timer(timer, now + 2 * STAND_BY_NS);
    }
}

bool flash_timer_stands_by(flash_timer_t *timer)
{
    uint64_t now = now_ns();

    if (!is_waited(timer, now)) {
        return false;
    }
    /*
     * A timer that expires has not been put off for a while: this one has only just been left
     * alone.
     */
    if (!expires_soon(timer, now)) {
        set_timer(timer, now + STAND_BY_NS);
    }
    return true;
}

bool flash_timer_sleep(flash_timer_t *timer, int event_fd, int64_t nanoseconds)
{
    struct timespec time = {.tv_sec = (time_t) (nanoseconds / (int64_t) SECOND),
                            .tv_nsec = (long) (nanoseconds % (int64_t) SECOND)};
    struct pollfd fds[2] = {{.fd = timer->fd, .events = POLLIN},
                            {.fd = event_fd, .events = POLLIN}};
    uint64_t count;
    int ready = ppoll(fds, 2, nanoseconds < 0 ? NULL : &time, NULL);

    if (read(timer->fd, &count, sizeof(count)) < 0) {
        /* It was an event, the time is over, or the timer has been put off. */
        return ready > 0 && fds[1].revents != 0;
    }
    return false;
}
