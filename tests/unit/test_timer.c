/*
 * test_timer.c: a timer that is set for a look, milliseconds away, does not pass for one that is about
 * to expire: who wants the thread soon gets it soon.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <time.h>

#include "progress/flash_timer.h"
#include "tap.h"

#define LOOK_NS UINT64_C(20000000)

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

static void store(atomic_uint_fast64_t *time, uint64_t value)
{
    atomic_store_explicit(time, value, memory_order_relaxed);
}

/* It is set for no later than what a thread stands back at most. */
static bool is_soon(const flash_timer_t *timer)
{
    return atomic_load_explicit(&timer->when, memory_order_relaxed) <=
           now_ns() + FLASH_LONGEST_STAND_BACK_NS;
}

static void set_up(flash_timer_t *timer)
{
    *timer = (flash_timer_t){.fd = -1};
    must(flash_timer_init(timer), "a timer");
    flash_timer_before(timer, LOOK_NS);
}

int main(void)
{
    flash_timer_t timer;
    uint64_t began = now_ns(), when;

    set_up(&timer);
    when = atomic_load_explicit(&timer.when, memory_order_relaxed);
    ok(when >= began + LOOK_NS && when <= now_ns() + LOOK_NS, "a look is set for later");
    flash_timer_before(&timer, 2 * LOOK_NS);
    ok(atomic_load_explicit(&timer.when, memory_order_relaxed) == when || when < now_ns(),
       "and is not put off by another one");
    atomic_store_explicit(&timer.waits_at_once, true, memory_order_relaxed);
    flash_timer_recall(&timer, true, 0);
    ok(is_soon(&timer), "a little operation, of an application that is expected back");
    flash_timer_fini(&timer);

    set_up(&timer);
    store(&timer.last_close, now_ns() + LOOK_NS); /* whatever else this machine does */
    ok(flash_timer_stands_by(&timer) && is_soon(&timer), "a thread that has been polling");
    flash_timer_fini(&timer);

    set_up(&timer);
    store(&timer.last_poll, now_ns());
    flash_timer_polled(&timer, true);
    ok(is_soon(&timer), "a thread that polls");
    flash_timer_fini(&timer);
    return tap_done();
}
