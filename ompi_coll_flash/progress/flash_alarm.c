/*
 * flash_alarm.c: see flash_alarm.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_alarm.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/*
 * A thread that waits puts the alarm off to twice this from now, whenever less than this is left:
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

bool flash_alarm_init(flash_alarm_t *alarm)
{
    alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarm->fd < 0) {
        return false;
    }
    pthread_mutex_init(&alarm->lock, NULL);
    return true;
}

void flash_alarm_fini(flash_alarm_t *alarm)
{
    pthread_mutex_destroy(&alarm->lock);
    close(alarm->fd);
}

static void set_timer(flash_alarm_t *alarm, uint64_t when)
{
    struct itimerspec timer = {
        .it_value = {.tv_sec = (time_t) (when / SECOND), .tv_nsec = (long) (when % SECOND)}};

    pthread_mutex_lock(&alarm->lock);
    set(&alarm->when, when);
    timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &timer, NULL);
    pthread_mutex_unlock(&alarm->lock);
}

/* Nanoseconds until the alarm; 0 if there is none to come. */
static uint64_t pending(const flash_alarm_t *alarm, uint64_t now)
{
    uint64_t when = get(&alarm->when);

    return when > now ? when - now : 0;
}

/* Whether an application thread has been polling until a moment ago. */
static bool is_waited(const flash_alarm_t *alarm, uint64_t now)
{
    uint64_t last = get(&alarm->last_close);

    return last != 0 && (last >= now || now - last < CLOSE_NS);
}

/* At once, but for standing back: an alarm that is to come soon enough is not put off. */
static void call_soon(flash_alarm_t *alarm, uint64_t now)
{
    uint64_t left = pending(alarm, now);

    if (left == 0 || left > FLASH_STAND_BACK_NS) {
        set_timer(alarm, now + FLASH_STAND_BACK_NS);
    }
}

static void forget_polls(flash_alarm_t *alarm, uint64_t now)
{
    set(&alarm->called, now);
    set(&alarm->last_poll, 0);
    set(&alarm->last_close, 0);
}

void flash_alarm_call(flash_alarm_t *alarm)
{
    uint64_t now = now_ns();

    forget_polls(alarm, now);
    call_soon(alarm, now);
}

void flash_alarm_recall(flash_alarm_t *alarm, bool brief)
{
    bool at_once = atomic_load_explicit(&alarm->waits_at_once, memory_order_relaxed);
    uint64_t now = now_ns();

    forget_polls(alarm, now);
    if (!brief || !at_once || pending(alarm, now) == 0) {
        call_soon(alarm, now);
    }
}

void flash_alarm_ring(flash_alarm_t *alarm)
{
    uint64_t now = now_ns();

    if (!is_waited(alarm, now)) {
        set_timer(alarm, now);
    }
}

void flash_alarm_polled(flash_alarm_t *alarm, bool leaves)
{
    uint64_t now = now_ns(), called = get(&alarm->called);
    uint64_t last = atomic_exchange_explicit(&alarm->last_poll, now, memory_order_relaxed);
    bool waits;

    if (last == 0) {
        waits = now - called < FLASH_STAND_BACK_NS;
        atomic_store_explicit(&alarm->waits_at_once, waits, memory_order_relaxed);
    } else {
        waits = now - last < CLOSE_NS;
    }
    if (waits) {
        set(&alarm->last_close, now);
    }
    if (!leaves) {
        return;
    }
    if (!waits) {
        call_soon(alarm, now); /* it may have taken an event that would have woken the thread */
    } else if (pending(alarm, now) < STAND_BY_NS) {
        set_timer(alarm, now + 2 * STAND_BY_NS);
    }
}

bool flash_alarm_stands_by(flash_alarm_t *alarm)
{
    uint64_t now = now_ns();

    if (!is_waited(alarm, now)) {
        return false;
    }
    /* What goes off has not been put off for a while: this one has only just been left alone. */
    if (pending(alarm, now) == 0) {
        set_timer(alarm, now + STAND_BY_NS);
    }
    return true;
}

bool flash_alarm_sleep(flash_alarm_t *alarm, int event_fd, int64_t nanoseconds)
{
    struct timespec time = {.tv_sec = (time_t) (nanoseconds / (int64_t) SECOND),
                            .tv_nsec = (long) (nanoseconds % (int64_t) SECOND)};
    struct pollfd fds[2] = {{.fd = alarm->fd, .events = POLLIN},
                            {.fd = event_fd, .events = POLLIN}};
    uint64_t count;
    int ready = ppoll(fds, 2, nanoseconds < 0 ? NULL : &time, NULL);

    if (read(alarm->fd, &count, sizeof(count)) < 0) {
        /* It was an event, the time is over, or the alarm has been put off. */
        return ready > 0 && fds[1].revents != 0;
    }
    return false;
}
