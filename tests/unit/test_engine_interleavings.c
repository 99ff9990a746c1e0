/*
 * test_engine_interleavings.c: tiny rings, and every order in which things can happen in them.
 *
 * Where nothing fails, all orders are tried, and a point fails if they are not. Where something
 * does, all orders are tried of what has few enough; of the rest those that differ little from the
 * usual one, and the point's name says so.
 *
 * With FLASH_TEST_STRIDE only each so many-th case is tried, and none of them for long: its name
 * says whether that was all.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <limits.h>
#include <string.h>

#include "explore.h"
#include "tap.h"

static uint64_t data_seed;
static unsigned long most_runs; /* of a case that may be left incomplete */
static unsigned long cases;

/* Whether it is this one's turn. The short tier has all cases of two ranks and one segment. */
static bool is_next(const explore_case_t *what)
{
    bool small = what->nranks == 2 && what->specs[0].shape.count <= 1;
    bool all = small && tap_given_stride() == 1;

    return all || cases++ % tap_stride() == 0;
}

static explore_case_t case_of(uint32_t nranks, const fake_options_t *net, const sim_spec_t *specs,
                              uint32_t nspecs, void (*judge)(sim_t *sim))
{
    return (explore_case_t){.nranks = nranks,
                            .seed = data_seed,
                            .net = net,
                            .specs = specs,
                            .nspecs = nspecs,
                            .judge = judge};
}

/* Whatever fails in it: all orders, or those with few delays. */
static void try_most(const char *name, const explore_case_t *what)
{
    explore_result_t result;

    if (!is_next(what)) {
        return;
    }
    result = explore(what, most_runs);
    if (result.complete) {
        ok(result.well, "%s: all orders, %lu states", name, result.states);
    } else {
        ok(result.well, "%s: not all orders, but all with %u delays at most, %lu runs", name,
           result.delays, result.runs);
    }
}

/* Nothing fails in it: all orders, of ranks from `first` to before `end`. */
static void try_all(const char *name, const explore_case_t *what, uint32_t first, uint32_t end)
{
    bool reduced = tap_given_stride() > 1;
    explore_result_t result;

    if (!is_next(what)) {
        return;
    }
    result = explore_ranks(what, first, end, reduced ? most_runs : ULONG_MAX);
    if (result.complete) {
        ok(result.well, "%s: all orders, %lu states", name, result.states);
    } else {
        ok(result.well && reduced, "%s: reduced, not all orders, %lu runs", name, result.runs);
    }
}

static void judge_fine(sim_t *sim)
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

/* Rank 0 takes no part: that is its status, and all others have it to blame. */
static void judge_refusal(sim_t *sim)
{
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        int status = rank == 0 ? FLASH_ERR_NO_MEMORY : FLASH_ERR_PEER;

        if (sim_status(sim, rank, 0) != status) {
            sim_complain(sim, "rank %u ends with %d", rank, sim_status(sim, rank, 0));
        }
    }
}

static const fake_options_t nets[] = {
    {.manual = true, .inline_sends = 100, .unordered = FLASH_TAG_MARKS},
    {.manual = true, .inline_recvs = 100, .unordered = FLASH_TAG_MARKS},
    {.manual = true, .rendezvous = 100, .inline_recvs = 100, .unordered = FLASH_TAG_MARKS},
    {.manual = true,
     .inline_sends = 100,
     .inline_recvs = 100,
     .late_data = 100,
     .unordered = FLASH_TAG_MARKS},
};
enum { RENDEZVOUS = 2 };
static const char *const net_names[] = {"inline sends", "eager", "rendezvous", "late data"};

typedef enum { NO_CALLBACK, CALLBACK, PENDING } callback_t;

static sim_spec_t tiny(flash_kind_t kind, size_t segments, callback_t callback)
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

static const char *title(const sim_spec_t *spec, uint32_t nranks, const char *rest)
{
    static char text[160];

    snprintf(text, sizeof(text), "%s, %u ranks, %zu segments, depth %u, sends %u%s, %s",
             sim_kinds[spec->kind], nranks, spec->shape.count, spec->depth, spec->sends,
             spec->bounded == 3  ? spec->far_sums ? ", bounded, far sums" : ", bounded"
             : spec->bounded > 0 ? ", bounded on some ranks"
             : spec->far_scratch ? ", far scratch"
             : spec->far_sums    ? ", far sums"
             : spec->far_output  ? ", staged"
             : spec->other       ? ", other callback"
             : spec->pending > 0 ? ", pending callback"
             : spec->callback    ? ", callback"
                                 : "",
             rest);
    return text;
}

/*
 * The blocks are equally large, so that what a rank can do differs from what another one can only
 * in the numbers of its blocks. Where all ranks would take too long, each network has another one.
 */
static void test_in_net(const sim_spec_t *spec, uint32_t nranks, uint32_t net)
{
    explore_case_t what = case_of(nranks, &nets[net], spec, 1, judge_fine);
    bool small = nranks == 2 || spec->shape.count == 1;
    uint32_t rank = net % nranks;
    char rest[64];

    if (small) {
        try_all(title(spec, nranks, net_names[net]), &what, 0, nranks);
    } else {
        snprintf(rest, sizeof(rest), "%s, rank %u", net_names[net], rank);
        try_all(title(spec, nranks, rest), &what, rank, rank + 1);
    }
}

static void test_fine(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                      uint32_t depth, uint32_t sends)
{
    sim_spec_t spec = tiny(kind, segments, callback);

    spec.depth = depth;
    spec.sends = sends;
    if (nranks == 4 && segments == 3 && callback != NO_CALLBACK) { /* more would take minutes */
        if (kind == FLASH_ALLGATHER || callback != PENDING) {
            test_in_net(&spec, nranks, RENDEZVOUS);
        }
        return;
    }
    for (uint32_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        test_in_net(&spec, nranks, net);
    }
}

static void test_staged(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                        uint32_t depth, bool far_sums)
{
    sim_spec_t spec = tiny(kind, segments, callback);

    spec.depth = spec.sends = depth;
    spec.far_input = spec.far_output = true;
    spec.far_sums = far_sums;
    for (uint32_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        test_in_net(&spec, nranks, net);
    }
}

/* Kinds of twice as many steps have orders without end. */
static bool takes_long(flash_kind_t kind, uint32_t nranks, size_t segments, bool staged)
{
    size_t most = staged ? 4 : 6;

    return (kind == FLASH_ALLREDUCE || flash_schedule_exchanges(kind)) && nranks * segments > most;
}

/* Two, or one where that would take long. */
static size_t few_segments(flash_kind_t kind, uint32_t nranks)
{
    return takes_long(kind, nranks, 2, true) ? 1 : 2;
}

/* The scratch is far, too, on all ranks or on some. */
static void test_direct(flash_kind_t kind, uint32_t nranks, unsigned ranks)
{
    sim_spec_t spec = tiny(kind, few_segments(kind, nranks), NO_CALLBACK);

    spec.depth = spec.sends = 5;
    spec.far_input = spec.far_output = spec.far_sums = true;
    spec.far_scratch = ranks;
    for (uint32_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        test_in_net(&spec, nranks, net);
    }
}

/* Little scratch, on all ranks or on some, whose neighbours have as much as they want, or near memory. */
static void test_bounded(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                         bool far_sums)
{
    sim_spec_t spec = tiny(kind, segments, callback);

    spec.far_input = spec.far_output = true;
    spec.far_sums = far_sums;
    spec.bound = 1;
    for (uint32_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        spec.bounded = 3;
        test_in_net(&spec, nranks, net);
        spec.bounded = 1 + net % 2;
        spec.near = net < 2 ? 3 - spec.bounded : 0;
        test_in_net(&spec, nranks, net);
        spec.near = 0;
    }
}

/* What may go wrong there. */
static void test_bounded_fails(flash_kind_t kind, uint32_t nranks)
{
    sim_spec_t spec = tiny(kind, few_segments(kind, nranks), CALLBACK);

    spec.far_input = spec.far_output = true;
    spec.bound = 1;
    spec.bounded = 3;
    spec.fail_rank = 0;
    for (uint32_t far_sums = 0; far_sums <= flash_schedule_reduces(kind); far_sums++) {
        sim_spec_t fails = spec, odd = spec, refuses = spec;
        explore_case_t call = case_of(nranks, &nets[1], &fails, 1, judge_call);
        explore_case_t sizes = case_of(nranks, &nets[RENDEZVOUS], &odd, 1, judge_sizes);
        explore_case_t refusal = case_of(nranks, &nets[1], &refuses, 1, judge_refusal);

        fails.far_sums = odd.far_sums = refuses.far_sums = far_sums;
        fails.fail_callback = 1;
        try_most(title(&fails, nranks, "it fails"), &call);
        odd.fail_rank = SIM_NOBODY;
        odd.odd_rank = 0;
        odd.odd_shape = odd.shape;
        odd.odd_shape.count++;
        try_most(title(&odd, nranks, "on one rank one more"), &sizes);
        odd.odd_shape.count = 0;
        try_most(title(&odd, nranks, "on one rank none"), &sizes);
        refuses.refuses = true;
        try_most(title(&refuses, nranks, "a rank refuses"), &refusal);
    }
}

/* All that is bounded: the direct schedule is not. */
static void test_bounds(flash_kind_t kind)
{
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        for (size_t segments = 1; segments <= 2; segments++) {
            if (takes_long(kind, nranks, segments, true)) {
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
        test_bounded_fails(kind, nranks);
    }
}

/* Sums of wider elements. */
static void test_wide(uint32_t nranks, bool far)
{
    sim_spec_t spec = tiny(FLASH_DIRECT_REDUCE_SCATTER, 1, PENDING);

    spec.wide = true;
    spec.depth = spec.sends = 5;
    spec.far_input = spec.far_output = far;
    for (uint32_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        test_in_net(&spec, nranks, net);
    }
}

/* The other callback, alone and beside the first one. */
static void test_other(flash_kind_t kind, uint32_t nranks, callback_t callback)
{
    sim_spec_t spec = tiny(kind, few_segments(kind, nranks), callback);

    spec.other = true;
    spec.pending = callback == NO_CALLBACK ? 100 : spec.pending;
    for (uint32_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        test_in_net(&spec, nranks, net);
    }
}

/* What it says comes to where the processor cannot read it. */
static void test_direct_blame(flash_kind_t kind)
{
    sim_spec_t spec = tiny(kind, 1, CALLBACK);
    explore_case_t what = case_of(3, &nets[1], &spec, 1, judge_call);

    spec.far_input = spec.far_output = spec.far_sums = true;
    spec.far_scratch = 3;
    spec.fail_rank = 0;
    spec.fail_callback = 1;
    try_most(title(&spec, 3, "it fails"), &what);
}

static void test_fails(flash_kind_t kind, uint32_t nranks, size_t segments)
{
    for (callback_t callback = CALLBACK; callback <= PENDING; callback++) {
        for (uint64_t call = 1; call <= 2; call++) {
            sim_spec_t spec = tiny(kind, segments, callback);
            explore_case_t what = case_of(nranks, &nets[call], &spec, 1, judge_call);

            spec.fail_rank = 0;
            spec.fail_callback = call;
            try_most(title(&spec, nranks, "it fails"), &what);
        }
    }
}

static void test_odd(flash_kind_t kind, uint32_t nranks)
{
    static const size_t odd_counts[] = {0, 1, 3};

    for (size_t k = 0; k < 3; k++) {
        sim_spec_t spec = tiny(kind, 2, NO_CALLBACK);
        explore_case_t what = case_of(nranks, &nets[k], &spec, 1, judge_sizes);
        char rest[64];

        spec.odd_rank = 0;
        spec.odd_shape = spec.shape;
        spec.odd_shape.count = odd_counts[k];
        snprintf(rest, sizeof(rest), "on one rank %zu", odd_counts[k]);
        try_most(title(&spec, nranks, rest), &what);
    }
}

static void test_transport(flash_kind_t kind, uint32_t nranks)
{
    static const char *const names[] = {"", "a send fails", "a receive fails"};

    for (fake_failure_t failure = FAKE_FAIL_SEND; failure <= FAKE_FAIL_RECV; failure++) {
        for (size_t net = 1; net <= 2; net++) {
            sim_spec_t spec = tiny(kind, 1, NO_CALLBACK);
            fake_options_t options = nets[net];
            explore_case_t what = case_of(nranks, &options, &spec, 1, judge_transport);

            options.failure = failure;
            options.fail_rank = 0;
            options.fail_nth = 1;
            try_most(title(&spec, nranks, names[failure]), &what);
        }
    }
}

static void test_refuses(flash_kind_t kind, uint32_t nranks)
{
    for (size_t net = 1; net <= 2; net++) {
        sim_spec_t spec = tiny(kind, 1, NO_CALLBACK);
        explore_case_t what = case_of(nranks, &nets[net], &spec, 1, judge_refusal);

        spec.fail_rank = 0;
        spec.refuses = true;
        try_most(title(&spec, nranks, "a rank refuses"), &what);
    }
}

static void test_two(uint32_t nranks, flash_kind_t first, flash_kind_t second, uint64_t second_name,
                     const char *name)
{
    sim_spec_t specs[2] = {tiny(first, 1, NO_CALLBACK), tiny(second, 1, CALLBACK)};
    explore_case_t what = case_of(nranks, &nets[0], specs, 2, judge_fine);
    char text[80];

    specs[1].name = second_name;
    snprintf(text, sizeof(text), "%s, %u ranks", name, nranks);
    try_all(text, &what, 0, nranks);
    if (nranks == 2) {
        strcat(text, ", together");
        try_most(text, &what);
    }
}

/* The reduction to one rank at a time, where it can be done without. */
static void test_together(flash_kind_t kind, size_t segments, callback_t callback)
{
    for (size_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        sim_spec_t spec = tiny(kind, segments, callback);
        explore_case_t what = case_of(2, &nets[net], &spec, 1, judge_fine);
        char rest[64];

        snprintf(rest, sizeof(rest), "%s, both together", net_names[net]);
        try_most(title(&spec, 2, rest), &what);
    }
}

static void test_kind(flash_kind_t kind)
{
    for (uint32_t nranks = 2; nranks <= 4; nranks++) {
        for (size_t segments = 1; segments <= 3; segments++) {
            if (takes_long(kind, nranks, segments, false)) {
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
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        for (size_t segments = 1; segments <= 3; segments++) {
            if (takes_long(kind, nranks, segments, true)) {
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
        test_direct(kind, nranks, 3);
        test_direct(kind, nranks, 1);
    }
    test_direct_blame(kind);
    for (callback_t callback = NO_CALLBACK; callback <= PENDING; callback++) {
        test_other(kind, 2, callback);
        test_other(kind, 3, callback);
    }
    for (callback_t callback = NO_CALLBACK; callback <= PENDING; callback++) {
        test_together(kind, 1, callback);
        test_together(kind, 2, callback);
    }
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        test_fails(kind, nranks, 1);
        test_odd(kind, nranks);
        test_transport(kind, nranks);
        test_refuses(kind, nranks);
    }
}

int main(int argc, char **argv)
{
    /* Nothing is random here but the data. A second number is how many runs a case may take. */
    most_runs = argc > 2 ? strtoul(argv[2], NULL, 0) : 40000 / tap_stride();
    data_seed = tap_seed(argc, argv);
    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        test_kind(kind);
        if (kind != FLASH_DIRECT_REDUCE_SCATTER) {
            test_bounds(kind);
        }
    }
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        test_wide(nranks, false);
        test_wide(nranks, true);
    }
    test_two(2, FLASH_DIRECT_REDUCE_SCATTER, FLASH_ALLTOALL, 2, "two that exchange with all");
    test_two(2, FLASH_DIRECT_REDUCE_SCATTER, FLASH_ALLTOALL, 1, "two of these, of one name");
    for (uint32_t nranks = 2; nranks <= 4; nranks++) {
        test_two(nranks, FLASH_ALLGATHER, FLASH_REDUCE_SCATTER, 2, "two operations at a time");
        test_two(nranks, FLASH_REDUCE_SCATTER, FLASH_ALLGATHER, 1, "two operations of one name");
    }
    return tap_done();
}
