/*
 * orders_failures.c: orders of operations in which something goes wrong: all, or those that differ
 * little from the usual one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include "orders.h"

/* Rank 0 fails in its callback: that is its status, and nobody hangs. */
static void judge_call(sim_t *sim)
{
    if (sim_status(sim, 0, 0) != SIM_ERR_CALL) {
        sim_complain(sim, "rank 0 ends with %d", sim_status(sim, 0, 0));
    }
}

static void judge_sizes(sim_t *sim)
{
    if (sim_status(sim, 0, 0) == FLASH_OK && sim_status(sim, 1, 0) == FLASH_OK) {
        sim_complain(sim, "nobody sees that the sizes differ");
    }
}

/* Rank 0's transport fails it: it says so. */
static void judge_transport(sim_t *sim)
{
    if (fake_net_failed(sim->net) && sim_status(sim, 0, 0) == FLASH_OK) {
        sim_complain(sim, "rank 0 does not see that its transport failed");
    }
}

/* Rank 0 takes no part: that is its status, and all others that lack something name it. */
static void judge_refusal(sim_t *sim)
{
    sim_check_refused(sim, 0, 0);
}

/* What may go wrong there. */
void orders_test_bounded_fails(flash_kind_t kind, uint32_t nranks)
{
    sim_spec_t spec = orders_spec(kind, orders_few_segments(kind, nranks), CALLBACK);

    spec.device_input = spec.device_output = true;
    spec.bound = 1;
    spec.bounded = 3;
    spec.fail_rank = 0;
    for (uint32_t device_sums = 0; device_sums <= flash_schedule_reduces(kind); device_sums++) {
        sim_spec_t fails = spec, odd = spec, refuses = spec;
        explore_case_t call = orders_case(nranks, &orders_nets[1], &fails, 1, judge_call);
        explore_case_t sizes =
            orders_case(nranks, &orders_nets[ORDERS_RENDEZVOUS], &odd, 1, judge_sizes);
        explore_case_t refusal = orders_case(nranks, &orders_nets[1], &refuses, 1, judge_refusal);

        fails.device_sums = odd.device_sums = refuses.device_sums = device_sums;
        fails.fail_callback = 1;
        orders_try_most(orders_title(&fails, nranks, "it fails"), &call);
        odd.fail_rank = SIM_NOBODY;
        odd.odd_rank = 0;
        odd.odd_shape = odd.shape;
        odd.odd_shape.count++;
        orders_try_most(orders_title(&odd, nranks, "on one rank one more"), &sizes);
        odd.odd_shape.count = 0;
        orders_try_most(orders_title(&odd, nranks, "on one rank none"), &sizes);
        refuses.refuses = true;
        orders_try_most(orders_title(&refuses, nranks, "a rank refuses"), &refusal);
    }
}

/* What it says comes to where the processor cannot read it. */
void orders_test_device_scratch_failed_rank(flash_kind_t kind)
{
    sim_spec_t spec = orders_spec(kind, 1, CALLBACK);
    explore_case_t what = orders_case(3, &orders_nets[1], &spec, 1, judge_call);

    spec.device_input = spec.device_output = spec.device_sums = true;
    spec.device_scratch = 3;
    spec.fail_rank = 0;
    spec.fail_callback = 1;
    orders_try_most(orders_title(&spec, 3, "it fails"), &what);
}

/* Rank 0 is the root, where there is one: it has one block to consume, of a scatter, too. */
static void test_fails(flash_kind_t kind, uint32_t nranks, size_t segments)
{
    uint64_t calls = flash_schedule_chains(kind) || kind == FLASH_SCATTER ? 1 : 2;

    for (callback_t callback = CALLBACK; callback <= PENDING; callback++) {
        for (uint64_t call = 1; call <= calls; call++) {
            sim_spec_t spec = orders_spec(kind, segments, callback);
            explore_case_t what = orders_case(nranks, &orders_nets[call], &spec, 1, judge_call);

            spec.fail_rank = 0;
            spec.fail_callback = call;
            orders_try_most(orders_title(&spec, nranks, "it fails"), &what);
        }
    }
}

static void test_odd(flash_kind_t kind, uint32_t nranks)
{
    static const size_t odd_counts[] = {0, 1, 3};

    for (size_t k = 0; k < 3; k++) {
        sim_spec_t spec = orders_spec(kind, 2, NO_CALLBACK);
        explore_case_t what = orders_case(nranks, &orders_nets[k], &spec, 1, judge_sizes);
        char rest[64];

        spec.odd_rank = 0;
        spec.odd_shape = spec.shape;
        spec.odd_shape.count = odd_counts[k];
        snprintf(rest, sizeof(rest), "on one rank %zu", odd_counts[k]);
        orders_try_most(orders_title(&spec, nranks, rest), &what);
    }
}

static void test_transport(flash_kind_t kind, uint32_t nranks)
{
    static const char *const names[] = {"", "a send fails", "a receive fails"};

    for (fake_failure_t failure = FAKE_FAIL_SEND; failure <= FAKE_FAIL_RECV; failure++) {
        for (size_t net = 1; net <= 2; net++) {
            sim_spec_t spec = orders_spec(kind, 1, NO_CALLBACK);
            fake_options_t options = orders_nets[net];
            explore_case_t what = orders_case(nranks, &options, &spec, 1, judge_transport);

            options.failure = failure;
            options.fail_rank = 0;
            options.fail_nth = 1;
            orders_try_most(orders_title(&spec, nranks, names[failure]), &what);
        }
    }
}

static void test_refuses(flash_kind_t kind, uint32_t nranks)
{
    for (size_t net = 1; net <= 2; net++) {
        sim_spec_t spec = orders_spec(kind, 1, NO_CALLBACK);
        explore_case_t what = orders_case(nranks, &orders_nets[net], &spec, 1, judge_refusal);

        spec.fail_rank = 0;
        spec.refuses = true;
        orders_try_most(orders_title(&spec, nranks, "a rank refuses"), &what);
    }
}

void orders_test_failures(flash_kind_t kind)
{
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        test_fails(kind, nranks, 1);
        test_odd(kind, nranks);
        test_transport(kind, nranks);
        test_refuses(kind, nranks);
    }
}
