/*
 * orders.c: see orders.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <limits.h>

#include "orders.h"
#include "tap.h"

uint64_t orders_seed;
unsigned long orders_most_runs;
static unsigned long cases, turns;

/* Whether it is this one's turn. The short tier has all cases of two ranks and one segment. */
static bool is_next(const explore_case_t *what)
{
    bool small = what->nranks == 2 && what->specs[0].shape.count <= 1;
    bool all = small && tap_given_stride() == 1;

    return (all || cases++ % tap_stride() == 0) && tap_is_in_part(turns++);
}

explore_case_t orders_case(uint32_t nranks, const fake_options_t *net, const sim_spec_t *specs,
                           uint32_t nspecs, void (*judge)(sim_t *sim))
{
    return (explore_case_t){.nranks = nranks,
                            .seed = orders_seed,
                            .net = net,
                            .specs = specs,
                            .nspecs = nspecs,
                            .judge = judge};
}

void orders_try_most(const char *name, const explore_case_t *what)
{
    explore_result_t result;

    if (!is_next(what)) {
        return;
    }
    result = explore(what, orders_most_runs);
    if (result.complete) {
        ok(result.well, "%s: all orders, %lu states", name, result.states);
    } else {
        ok(result.well, "%s: not all orders, but all with %u delays at most, %lu runs", name,
           result.delays, result.runs);
    }
}

void orders_try_all(const char *name, const explore_case_t *what, uint32_t first, uint32_t end)
{
    bool reduced = tap_given_stride() > 1;
    explore_result_t result;

    if (!is_next(what)) {
        return;
    }
    result = explore_ranks(what, first, end, reduced ? orders_most_runs : ULONG_MAX);
    if (result.complete) {
        ok(result.well, "%s: all orders, %lu states", name, result.states);
    } else {
        ok(result.well && reduced, "%s: reduced, not all orders, %lu runs", name, result.runs);
    }
}

void orders_judge_fine(sim_t *sim)
{
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        for (uint32_t spec = 0; spec < sim->nspecs; spec++) {
            if (sim_runs(sim, rank) && sim_status(sim, rank, spec) != FLASH_OK) {
                sim_complain(sim, "op %u rank %u: status %d", spec, rank,
                             sim_status(sim, rank, spec));
            }
        }
    }
}

const fake_options_t orders_nets[ORDERS_NETS] = {
    {.manual = true, .inline_sends = 100, .unordered = FLASH_TAG_MARKS},
    {.manual = true, .inline_recvs = 100, .unordered = FLASH_TAG_MARKS},
    {.manual = true, .rendezvous = 100, .inline_recvs = 100, .unordered = FLASH_TAG_MARKS},
    {.manual = true,
     .inline_sends = 100,
     .inline_recvs = 100,
     .late_data = 100,
     .unordered = FLASH_TAG_MARKS},
};
const char *const orders_net_names[ORDERS_NETS] = {"inline sends", "eager", "rendezvous",
                                                   "late data"};

sim_spec_t orders_spec(flash_kind_t kind, size_t segments, callback_t callback)
{
    return (sim_spec_t){.kind = kind,
                        .shape = {.count = segments, .pieces = 1, .row = 1, .segment = 1},
                        .depth = 1,
                        .sends = 1,
                        .callback = callback != NO_CALLBACK,
                        .pending = callback == PENDING ? 100 : 0,
                        .mix = true,
                        .name = 1,
                        .odd_rank = SIM_NOBODY,
                        .fail_rank = SIM_NOBODY};
}

const char *orders_title(const sim_spec_t *spec, uint32_t nranks, const char *rest)
{
    static char text[160];

    snprintf(text, sizeof(text), "%s, %u ranks, %zu segments, depth %u, sends %u%s, %s",
             sim_kinds[spec->kind], nranks, spec->shape.count, spec->depth, spec->sends,
             spec->bounded == 3     ? spec->device_sums ? ", bounded, device sums" : ", bounded"
             : spec->bounded > 0    ? ", bounded on some ranks"
             : spec->device_scratch ? ", device scratch"
             : spec->device_sums    ? ", device sums"
             : spec->device_output  ? ", staged"
             : spec->other          ? ", other callback"
             : spec->pending > 0    ? ", pending callback"
             : spec->callback       ? ", callback"
                                    : "",
             rest);
    return text;
}

void orders_try_net(const sim_spec_t *spec, uint32_t nranks, uint32_t net)
{
    explore_case_t what = orders_case(nranks, &orders_nets[net], spec, 1, orders_judge_fine);
    bool small = nranks == 2 || spec->shape.count == 1;
    uint32_t rank = net % nranks;
    char rest[64];

    if (small) {
        orders_try_all(orders_title(spec, nranks, orders_net_names[net]), &what, 0, nranks);
    } else {
        snprintf(rest, sizeof(rest), "%s, rank %u", orders_net_names[net], rank);
        orders_try_all(orders_title(spec, nranks, rest), &what, rank, rank + 1);
    }
}

bool orders_take_long(flash_kind_t kind, uint32_t nranks, size_t segments, bool staged)
{
    size_t most = staged ? 4 : 6;

    return (kind == FLASH_ALLREDUCE || flash_schedule_exchanges(kind)) && nranks * segments > most;
}

size_t orders_few_segments(flash_kind_t kind, uint32_t nranks)
{
    return orders_take_long(kind, nranks, 2, true) ? 1 : 2;
}

int orders_done(void)
{
    return tap_done();
}
