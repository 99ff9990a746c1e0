/*
 * flash_meter.c: see flash_meter.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_meter.h"

void flash_meter_start(flash_meter_t *meter, bool active, uint64_t now)
{
    if (!flash_meter_is_on(meter)) {
        atomic_store_explicit(&meter->on, true, memory_order_relaxed);
        meter->began = meter->ended = meter->settled = now;
        meter->under_way = active;
    }
}

void flash_meter_begin(flash_meter_t *meter, uint64_t now)
{
    if (flash_meter_is_on(meter)) {
        meter->under_way = true;
        meter->began = now;
    }
}

void flash_meter_end(flash_meter_t *meter, uint64_t now)
{
    if (meter->under_way) {
        meter->busy = flash_meter_busy(meter, now);
        meter->under_way = false;
        meter->ended = now;
    }
}

void flash_meter_computes(flash_meter_t *meter)
{
    meter->computing++;
}

/* What comes between it and the next poll is waiting, not what came before. */
void flash_meter_computed(flash_meter_t *meter, uint64_t now)
{
    meter->computing--;
    meter->settled = now;
}

void flash_meter_wait(flash_meter_t *meter, uint64_t begin, uint64_t now)
{
    uint64_t from = begin < meter->settled + FLASH_TRACE_GAP_NS ? meter->settled : begin;
    uint64_t to = meter->under_way || meter->ended > now ? now : meter->ended;

    from = from < meter->began ? meter->began : from;
    if (meter->computing == 0 && from < to) {
        meter->waited += to - from;
    }
    meter->settled = now;
}

uint64_t flash_meter_busy(const flash_meter_t *meter, uint64_t now)
{
    return meter->busy + (meter->under_way && now > meter->began ? now - meter->began : 0);
}

uint64_t flash_meter_waited(const flash_meter_t *meter)
{
    return meter->waited;
}
