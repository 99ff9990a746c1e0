/*
 * test_engine_interleavings.c: tiny rings, and every order in which things can happen in them.
 *
 * Where nothing fails, all orders are tried, and a point fails if they are not. Where something
 * does, all orders are tried of what has few enough; of the rest those that differ little from the
 * usual one, and the point's name says so.
 *
 * Here are the kinds of operations, and two at a time; orders_device.c has the memory of devices,
 * orders_failures.c what goes wrong.
 *
 * With FLASH_TEST_STRIDE only each so many-th case is tried, and none of them for long: its name
 * says whether that was all.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "orders.h"
#include "tap.h"

static void test_fine(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                      uint32_t depth, uint32_t sends)
{
    sim_spec_t spec = orders_spec(kind, segments, callback);

    spec.depth = depth;
    spec.sends = sends;
    if (nranks == 4 && segments == 3 && callback != NO_CALLBACK) { /* more would take minutes */
        if (kind == FLASH_ALLGATHER || callback != PENDING) {
            orders_try_net(&spec, nranks, ORDERS_RENDEZVOUS);
        }
        return;
    }
    for (uint32_t net = 0; net < ORDERS_NETS; net++) {
        orders_try_net(&spec, nranks, net);
    }
}

/* The other callback, alone and beside the first one. */
static void test_other(flash_kind_t kind, uint32_t nranks, callback_t callback)
{
    sim_spec_t spec = orders_spec(kind, orders_few_segments(kind, nranks), callback);

    spec.other = true;
    spec.pending = callback == NO_CALLBACK ? 100 : spec.pending;
    for (uint32_t net = 0; net < ORDERS_NETS; net++) {
        orders_try_net(&spec, nranks, net);
    }
}

static void test_two(uint32_t nranks, flash_kind_t first, flash_kind_t second, uint64_t second_name,
                     const char *name)
{
    sim_spec_t specs[2] = {orders_spec(first, 1, NO_CALLBACK), orders_spec(second, 1, CALLBACK)};
    explore_case_t what = orders_case(nranks, &orders_nets[0], specs, 2, orders_judge_fine);
    char text[80];

    specs[1].name = second_name;
    snprintf(text, sizeof(text), "%s, %u ranks", name, nranks);
    orders_try_all(text, &what, 0, nranks);
    if (nranks == 2) {
        strcat(text, ", together");
        orders_try_most(text, &what);
    }
}

/* The reduction to one rank at a time, where it can be done without. */
static void test_together(flash_kind_t kind, size_t segments, callback_t callback)
{
    for (size_t net = 0; net < ORDERS_NETS; net++) {
        sim_spec_t spec = orders_spec(kind, segments, callback);
        explore_case_t what = orders_case(2, &orders_nets[net], &spec, 1, orders_judge_fine);
        char rest[64];

        snprintf(rest, sizeof(rest), "%s, both together", orders_net_names[net]);
        orders_try_most(orders_title(&spec, 2, rest), &what);
    }
}

static void test_near(flash_kind_t kind)
{
    for (uint32_t nranks = 2; nranks <= 4; nranks++) {
        for (size_t segments = 1; segments <= 3; segments++) {
            if (orders_take_long(kind, nranks, segments, false)) {
                continue;
            }
            for (callback_t callback = NO_CALLBACK; callback <= PENDING; callback++) {
                test_fine(kind, nranks, segments, callback, 1, 1);
                if (nranks == 2 || segments < 3) {
                    test_fine(kind, nranks, segments, callback, 5, 3);
                }
            }
        }
    }
}

static void test_kind(flash_kind_t kind)
{
    test_near(kind);
    orders_test_device(kind);
    for (callback_t callback = NO_CALLBACK; callback <= PENDING; callback++) {
        test_other(kind, 2, callback);
        test_other(kind, 3, callback);
    }
    for (callback_t callback = NO_CALLBACK; callback <= PENDING; callback++) {
        test_together(kind, 1, callback);
        test_together(kind, 2, callback);
    }
    orders_test_failures(kind);
}

int main(int argc, char **argv)
{
    /* Nothing is random here but the data. A second number is how many runs a case may take. */
    orders_most_runs = argc > 2 ? strtoul(argv[2], NULL, 0) : 40000 / tap_stride();
    orders_seed = tap_seed(argc, argv);
    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        test_kind(kind);
        if (kind != FLASH_PAIRWISE_REDUCE_SCATTER) {
            orders_test_bounds(kind);
        }
    }
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        orders_test_wide(nranks, false);
        orders_test_wide(nranks, true);
    }
    test_two(2, FLASH_PAIRWISE_REDUCE_SCATTER, FLASH_ALLTOALL, 2, "two that exchange with all");
    test_two(2, FLASH_PAIRWISE_REDUCE_SCATTER, FLASH_ALLTOALL, 1, "two of these, of one name");
    for (uint32_t nranks = 2; nranks <= 4; nranks++) {
        test_two(nranks, FLASH_ALLGATHER, FLASH_REDUCE_SCATTER, 2, "two operations at a time");
        test_two(nranks, FLASH_REDUCE_SCATTER, FLASH_ALLGATHER, 1, "two operations of one name");
    }
    return orders_done();
}
