/*
 * orders_device.c: every order of operations on the memory of devices: staged, in scratch that is
 * there, too, and in little of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "orders.h"

static void test_staged(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                        uint32_t depth, bool device_sums)
{
    sim_spec_t spec = orders_spec(kind, segments, callback);

    spec.depth = spec.sends = depth;
    spec.device_input = spec.device_output = true;
    spec.device_sums = device_sums;
    for (uint32_t net = 0; net < ORDERS_NETS; net++) {
        orders_try_net(&spec, nranks, net);
    }
}

/* The scratch is in device memory, too, on all ranks or on some. */
static void test_device_scratch(flash_kind_t kind, uint32_t nranks, unsigned ranks)
{
    sim_spec_t spec = orders_spec(kind, orders_few_segments(kind, nranks), NO_CALLBACK);

    spec.depth = spec.sends = 5;
    spec.device_input = spec.device_output = spec.device_sums = true;
    spec.device_scratch = ranks;
    for (uint32_t net = 0; net < ORDERS_NETS; net++) {
        orders_try_net(&spec, nranks, net);
    }
}

/*
 * Little scratch, on all ranks or on some, whose neighbours have as much as they want, or host
 * memory.
 */
static void test_bounded(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                         bool device_sums)
{
    sim_spec_t spec = orders_spec(kind, segments, callback);

    spec.device_input = spec.device_output = true;
    spec.device_sums = device_sums;
    spec.bound = 1;
    for (uint32_t net = 0; net < ORDERS_NETS; net++) {
        spec.bounded = 3;
        orders_try_net(&spec, nranks, net);
        spec.bounded = 1 + net % 2;
        spec.near = net < 2 ? 3 - spec.bounded : 0;
        orders_try_net(&spec, nranks, net);
        spec.near = 0;
    }
}

/* All that is bounded: the pairwise schedule is not. */
void orders_test_bounds(flash_kind_t kind)
{
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        for (size_t segments = 1; segments <= 2; segments++) {
            if (orders_take_long(kind, nranks, segments, true)) {
                continue;
            }
            test_bounded(kind, nranks, segments, NO_CALLBACK, false);
            if (flash_schedule_reduces(kind)) {
                test_bounded(kind, nranks, segments, NO_CALLBACK, true);
                test_bounded(kind, nranks, segments, PENDING, true);
            }
            if (nranks + segments < 5) {
                test_bounded(kind, nranks, segments, PENDING, false);
            }
        }
        orders_test_bounded_fails(kind, nranks);
    }
}

/* Sums of wider elements. */
void orders_test_wide(uint32_t nranks, bool on_device)
{
    sim_spec_t spec = orders_spec(FLASH_PAIRWISE_REDUCE_SCATTER, 1, PENDING);

    spec.wide = true;
    spec.depth = spec.sends = 5;
    spec.device_input = spec.device_output = on_device;
    for (uint32_t net = 0; net < ORDERS_NETS; net++) {
        orders_try_net(&spec, nranks, net);
    }
}

void orders_test_device(flash_kind_t kind)
{
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        for (size_t segments = 1; segments <= 3; segments++) {
            if (orders_take_long(kind, nranks, segments, true)) {
                continue;
            }
            test_staged(kind, nranks, segments, NO_CALLBACK, 1, false);
            test_staged(kind, nranks, segments, NO_CALLBACK, 5, false);
            if (flash_schedule_reduces(kind)) {
                test_staged(kind, nranks, segments, NO_CALLBACK, 5, true);
                test_staged(kind, nranks, segments, PENDING, 1, true);
                if (nranks + segments < 6) { /* there it would take a minute */
                    test_staged(kind, nranks, segments, PENDING, 1, false);
                }
            }
        }
    }
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        test_device_scratch(kind, nranks, 3);
        test_device_scratch(kind, nranks, 1);
    }
    orders_test_device_scratch_failed_rank(kind);
}
