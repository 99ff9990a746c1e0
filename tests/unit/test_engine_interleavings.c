/*
 * test_engine_interleavings.c: tiny rings, and every order in which things can happen in them; of
 * those that have too many, the orders that differ little from the usual one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "explore.h"
#include "tap.h"

static uint64_t data_seed;

static void try_all(const char *name, uint32_t nranks, const fake_options_t *net,
                    const sim_spec_t *specs, uint32_t nspecs, explore_judge_fn *judge,
                    unsigned long most)
{
    explore_result_t result = explore(nranks, data_seed, net, specs, nspecs, judge, most);

    if (result.complete) {
        ok(result.well, "%s: all %lu orders", name, result.runs);
    } else {
        ok(result.well, "%s: %lu orders, all with %u delays at most", name, result.runs,
           result.delays);
    }
}

static void judge_fine(sim_t *sim)
{
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        for (uint32_t spec = 0; spec < sim->nspecs; spec++) {
            if (sim_status(sim, rank, spec) != FLASH_OK) {
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

static const char *title(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                         const char *rest)
{
    static const char *const names[] = {"", ", callback", ", pending callback"};
    static char text[128];

    snprintf(text, sizeof(text), "%s, %u ranks, %zu segments%s, %s",
             kind == FLASH_ALLGATHER ? "allgather" : "reduce-scatter", nranks, segments,
             names[callback], rest);
    return text;
}

static void test_fine(flash_kind_t kind, uint32_t nranks, size_t segments, callback_t callback,
                      unsigned long most)
{
    for (size_t net = 0; net < sizeof(nets) / sizeof(nets[0]); net++) {
        sim_spec_t spec = tiny(kind, segments, callback);

        try_all(title(kind, nranks, segments, callback, net_names[net]), nranks, &nets[net], &spec,
                1, judge_fine, most);
    }
}

static void test_wrong(flash_kind_t kind, unsigned long most)
{
    static const size_t odd_counts[] = {0, 1, 3};
    sim_spec_t spec;

    for (callback_t callback = CALLBACK; callback <= PENDING; callback++) {
        for (uint64_t call = 1; call <= 2; call++) {
            spec = tiny(kind, 1, callback);
            spec.fail_rank = 0;
            spec.fail_callback = call;
            try_all(title(kind, 2, 1, callback, "it fails"), 2, &nets[call], &spec, 1, judge_call,
                    most);
        }
    }
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        for (size_t k = 0; k < 3; k++) {
            spec = tiny(kind, 2, NO_CALLBACK);
            spec.odd_rank = 0;
            spec.odd_shape = spec.shape;
            spec.odd_shape.count = odd_counts[k];
            try_all(title(kind, nranks, 2, NO_CALLBACK, "one rank has another size"), nranks,
                    &nets[k], &spec, 1, judge_sizes, most);
        }
    }
}

static void test_two(flash_kind_t first, flash_kind_t second, uint64_t second_name,
                     const char *name, unsigned long most)
{
    sim_spec_t specs[2] = {tiny(first, 1, NO_CALLBACK), tiny(second, 1, CALLBACK)};

    specs[1].name = second_name;
    try_all(name, 2, &nets[0], specs, 2, judge_fine, most);
}

int main(int argc, char **argv)
{
    /* Nothing is random here but the data. A second number is how many runs a case may take. */
    unsigned long most = argc > 2 ? strtoul(argv[2], NULL, 0) : 40000 / tap_stride();

    data_seed = tap_seed(argc, argv);
    for (flash_kind_t kind = FLASH_ALLGATHER; kind <= FLASH_REDUCE_SCATTER; kind++) {
        test_fine(kind, 2, 1, NO_CALLBACK, most);
        test_fine(kind, 2, 1, CALLBACK, most);
        test_fine(kind, 2, 1, PENDING, most);
        test_fine(kind, 2, 2, NO_CALLBACK, most);
        test_fine(kind, 2, 2, CALLBACK, most);
        test_fine(kind, 2, 2, PENDING, most);
        test_fine(kind, 3, 1, NO_CALLBACK, most);
        test_wrong(kind, most);
    }
    test_two(FLASH_ALLGATHER, FLASH_REDUCE_SCATTER, 2, "two operations at a time", most);
    test_two(FLASH_REDUCE_SCATTER, FLASH_ALLGATHER, 1, "two operations of one name", most);
    return tap_done();
}
