/*
 * test_meter.c: what counts as under way, and what as waited.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_meter.h"
#include "tap.h"

enum { GAP = FLASH_TRACE_GAP_NS, FAR = 10 * GAP };

static bool holds(const flash_meter_t *meter, uint64_t now, uint64_t busy, uint64_t waited)
{
    bool held = flash_meter_busy(meter, now) == busy && flash_meter_waited(meter) == waited;

    if (!held) {
        printf("# busy %llu, not %llu; waited %llu, not %llu\n",
               (unsigned long long) flash_meter_busy(meter, now), (unsigned long long) busy,
               (unsigned long long) flash_meter_waited(meter), (unsigned long long) waited);
    }
    return held;
}

static void test_off(void)
{
    flash_meter_t meter = {.busy = 0};

    flash_meter_begin(&meter, 0);
    flash_meter_wait(&meter, FAR, FAR + 10);
    flash_meter_end(&meter, 0);
    ok(flash_meter_clock(&meter) == 0 && holds(&meter, FAR, 0, 0), "off: measures nothing");
}

static void test_hidden(void)
{
    flash_meter_t meter = {.busy = 0};

    flash_meter_start(&meter, false, 100);
    flash_meter_begin(&meter, 1000);
    ok(holds(&meter, 1500, 500, 0), "under way so far");
    flash_meter_end(&meter, 3000);
    flash_meter_wait(&meter, FAR, FAR + 10);
    ok(holds(&meter, FAR, 2000, 0), "who comes when all is done has not waited");
    flash_meter_begin(&meter, 2 * FAR);
    flash_meter_end(&meter, 2 * FAR + 7);
    ok(holds(&meter, 3 * FAR, 2007, 0), "what comes later is added");
}

static void test_exposed(void)
{
    flash_meter_t meter = {.busy = 0};

    flash_meter_start(&meter, false, 100);
    flash_meter_begin(&meter, FAR);
    flash_meter_wait(&meter, 3 * FAR, 3 * FAR + 10);
    ok(holds(&meter, 3 * FAR + 10, 2 * FAR + 10, 10), "from the first poll on");
    flash_meter_wait(&meter, 3 * FAR + GAP, 3 * FAR + GAP + 5);
    ok(flash_meter_waited(&meter) == GAP + 5, "what lies between polls counts");
    flash_meter_wait(&meter, 5 * FAR, 5 * FAR + 5);
    ok(flash_meter_waited(&meter) == GAP + 10, "unless it is long");
    flash_meter_end(&meter, 5 * FAR + 20);
    flash_meter_wait(&meter, 5 * FAR + 15, 5 * FAR + 60);
    ok(holds(&meter, 6 * FAR, 4 * FAR + 20, GAP + 25), "no longer than anything was under way");
    flash_meter_wait(&meter, 5 * FAR + 70, 5 * FAR + 90);
    ok(flash_meter_waited(&meter) == GAP + 25, "and not after it");
}

static void test_next(void)
{
    flash_meter_t meter = {.busy = 0};

    flash_meter_start(&meter, false, 100);
    flash_meter_begin(&meter, 1000);
    flash_meter_wait(&meter, 1000, 1010);
    flash_meter_end(&meter, 1020);
    flash_meter_begin(&meter, 1100);
    flash_meter_wait(&meter, 1090, 1150);
    ok(flash_meter_waited(&meter) == 60, "what was before the next operation does not count");
}

static void test_computing(void)
{
    flash_meter_t meter = {.busy = 0};

    flash_meter_start(&meter, false, 100);
    flash_meter_begin(&meter, 1000);
    flash_meter_computes(&meter);
    flash_meter_wait(&meter, 1000, 1500);
    ok(flash_meter_waited(&meter) == 0, "who waits while a piece is computed waits for that");
    flash_meter_computes(&meter);
    flash_meter_computed(&meter, 1600);
    flash_meter_wait(&meter, 1600, 1700);
    ok(flash_meter_waited(&meter) == 0, "likewise while another one still is");
    flash_meter_computed(&meter, 2000);
    flash_meter_wait(&meter, 1000, 2050);
    ok(flash_meter_waited(&meter) == 50, "and no longer from its end on");
}

static void test_late(void)
{
    flash_meter_t meter = {.busy = 0};

    flash_meter_begin(&meter, 0);
    flash_meter_start(&meter, true, 5000);
    flash_meter_wait(&meter, 4000, 5100);
    ok(holds(&meter, 5200, 200, 100), "switched on on the way: from then on");
    flash_meter_start(&meter, true, 6000);
    flash_meter_end(&meter, 7000);
    ok(holds(&meter, 8000, 2000, 100), "and once");
}

int main(void)
{
    test_off();
    test_hidden();
    test_exposed();
    test_next();
    test_computing();
    test_late();
    return tap_done();
}
