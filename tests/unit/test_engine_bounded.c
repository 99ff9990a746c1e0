/*
 * test_engine_bounded.c: operations on device memory whose scratch is smaller than a block: the
 * right result, whatever the order of events, beside ranks that have their memory near, or as much
 * scratch as they want; and how much memory they take.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "engine/flash_op.h"
#include "prng.h"
#include "sim.h"
#include "tap.h"

enum { MOST_RANKS = 5, MOST_COUNT = 60 };

static const flash_kind_t kinds[] = {FLASH_ALLGATHER, FLASH_REDUCE_SCATTER, FLASH_ALLREDUCE,
                                     FLASH_ALLTOALL};
enum { BOUNDED_KINDS = sizeof(kinds) / sizeof(kinds[0]) };
/* With a root, most ranks have one block, and need a bound where their window is long alone. */
static const flash_kind_t rooted[] = {FLASH_BCAST, FLASH_REDUCE, FLASH_GATHER, FLASH_SCATTER};

/* Runs it and says whether all of it is well; prints it if not. Adds how many were bounded. */
static bool run_case(uint32_t nranks, uint64_t seed, const fake_options_t *net,
                     const sim_spec_t *specs, uint32_t nspecs, uint64_t *bounded)
{
    sim_t *sim = sim_create(nranks, seed, net, specs, nspecs);
    bool well = sim_runs_well(sim);

    *bounded += sim->bounded;
    sim_destroy(sim);
    return well;
}

typedef enum { EQUAL, UNEQUAL, ZEROS, STEEP, SIZES } sizes_t;

static const char *const size_names[SIZES] = {[EQUAL] = "equal",
                                              [UNEQUAL] = "unequal",
                                              [ZEROS] = "mostly empty",
                                              [STEEP] = "one large, others small"};

static size_t random_count(uint64_t *random, sizes_t sizes, uint32_t block)
{
    switch (sizes) {
    case ZEROS:
        return prng_percent(random, 70) ? 0 : prng_below(random, MOST_COUNT);
    case STEEP:
        return block == 0 ? MOST_COUNT : 1 + prng_below(random, 4);
    default:
        return prng_below(random, MOST_COUNT);
    }
}

static sim_spec_t random_spec(uint64_t *random, flash_kind_t kind, sizes_t sizes, size_t *counts)
{
    sim_spec_t spec = sim_random_spec(random, kind);

    sim_bound(random, &spec);
    spec.shape.count = 1 + prng_below(random, MOST_COUNT);
    spec.shape.pieces = 1 + prng_below(random, 6);
    spec.shape.segment = 1 + prng_below(random, 4);
    spec.shape.longest = prng_below(random, 8);
    spec.depth = flash_schedule_has_root(kind) ? MOST_COUNT : spec.depth;
    for (uint32_t block = 0; block < MOST_RANKS && sizes != EQUAL; block++) {
        counts[block] = random_count(random, sizes, block);
        spec.shape.counts = counts;
    }
    return spec;
}

static void test_random(uint64_t seed, flash_kind_t kind, sizes_t sizes)
{
    uint64_t bounded = 0;
    unsigned tried = 0, least;
    bool well = true;

    for (uint32_t k = 0; k < 2000 && well; k += tap_stride(), tried++) {
        uint64_t random = seed + 43 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        size_t counts[MOST_RANKS];
        sim_spec_t spec = random_spec(&random, kind, sizes, counts);
        fake_options_t net = sim_random_net(&random);

        well = run_case(nranks, random, &net, &spec, 1, &bounded);
    }
    /* But for a reduce, a root means one buffer that travels, and that may be in host memory. */
    least = flash_schedule_has_root(kind) && kind != FLASH_REDUCE ? tried / 2 : tried;
    ok(well && bounded > least, "%s, %s blocks, 2 to %d ranks (%u runs, %llu bounds)",
       sim_kinds[kind], size_names[sizes], MOST_RANKS, tried, (unsigned long long) bounded);
}

/* As few as there may be, for each use one, and blocks that are long beside that. */
static void test_least(uint64_t seed, flash_kind_t kind)
{
    bool well = true;
    uint64_t bounded = 0;

    for (uint32_t k = 0; k < 1000 && well; k += tap_stride()) {
        uint64_t random = seed + 47 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        size_t counts[MOST_RANKS];
        sim_spec_t spec = random_spec(&random, kind, k / 4 % 2 == 0 ? EQUAL : STEEP, counts);
        fake_options_t net = sim_random_net(&random);

        spec.bound = 1;
        spec.bounded = 3;
        spec.near = 0;
        spec.depth = flash_schedule_has_root(kind) ? MOST_COUNT : 1;
        spec.sends = 1;
        spec.shape.segment = 1;
        net.rendezvous = 100;
        net.inline_sends = 0;
        well = run_case(nranks, random, &net, &spec, 1, &bounded);
    }
    ok(well, "%s: one segment of scratch for each use", sim_kinds[kind]);
}

/*
 * Each of two ranks takes what it sends for long, and what comes for short: the other way round.
 * Before that shows, at the end of a block, what comes waits for what is produced of it, and that
 * for what is sent before.
 */
static void test_disagreement(uint64_t seed)
{
    static const size_t counts[] = {20, 100}, odd_counts[] = {100, 20};
    bool well = true;

    for (uint32_t k = 0; k < 200 && well; k += tap_stride()) {
        uint64_t random = seed + 59 * k;
        fake_options_t net = sim_random_net(&random);
        sim_shape_t shape = {.counts = counts, .pieces = 10, .row = 1, .segment = 1};
        sim_spec_t spec = {.kind = FLASH_REDUCE_SCATTER,
                           .shape = shape,
                           .depth = 1,
                           .callback = true,
                           .device_output = true,
                           .bounded = 3,
                           .bound = 1,
                           .name = 1,
                           .odd_rank = 1,
                           .odd_shape = shape,
                           .fail_rank = SIM_NOBODY};
        sim_t *sim;

        spec.odd_shape.counts = odd_counts;
        spec.device_input = k / 2 % 2 == 0;
        sim = sim_create(2, random, &net, &spec, 1);
        sim_run_random(sim);
        sim_check_end(sim);
        for (uint32_t rank = 0; rank < 2; rank++) {
            if (sim_status(sim, rank, 0) != FLASH_ERR_TRUNCATED &&
                sim_status(sim, rank, 0) != FLASH_ERR_PEER) {
                sim_complain(sim, "rank %u ends with %d", rank, sim_status(sim, rank, 0));
            }
        }
        well = sim->problem[0] == '\0';
        if (!well) {
            sim_describe(sim);
        }
        sim_destroy(sim);
    }
    ok(well, "a producer, and ranks that disagree about both blocks");
}

/* Several at a time, of any kinds. */
static void test_together(uint64_t seed)
{
    enum { MOST = 4 };
    bool well = true;
    uint64_t bounded = 0;

    for (uint32_t k = 0; k < 1000 && well; k += tap_stride()) {
        uint64_t random = seed + 53 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1), nspecs = 2 + prng_below(&random, MOST - 1);
        static size_t counts[MOST][MOST_RANKS];
        sim_spec_t specs[MOST];
        fake_options_t net = sim_random_net(&random);

        for (uint32_t op = 0; op < nspecs; op++) {
            specs[op] = random_spec(&random, kinds[prng_below(&random, BOUNDED_KINDS)],
                                    prng_below(&random, SIZES), counts[op]);
        }
        well = run_case(nranks, random, &net, specs, nspecs, &bounded);
    }
    ok(well, "several operations at a time");
}

/* --------------------------------------------------------------------- memory */

static const uint32_t few_ranks[] = {2, 3};

/* Of one rank's operation on device memory, with a callback or without. */
static flash_op_params_t device_params(flash_kind_t kind, uint32_t nranks, size_t count,
                                       size_t bound)
{
    return (flash_op_params_t){.schedule = {.kind = kind,
                                            .ring = {.nranks = nranks},
                                            .pieces = 1,
                                            .row = 1,
                                            .segment_elements = 128,
                                            .blocks = {.count = count},
                                            .out = {.count = count}},
                               .element = SIM_ELEMENT,
                               .stage_in = true,
                               .stage_out = true,
                               .bound = bound};
}

static void test_memory(flash_kind_t kind)
{
    enum { SEGMENT = 1024, BOUND = 10 * SEGMENT, FEW = 128 * 4, MANY = 128 * 100000 };
    bool bounded = true, same = true, least = true;

    for (uint32_t device_sums = 0; device_sums <= flash_schedule_reduces(kind); device_sums++) {
        for (size_t k = 0; k < 2; k++) {
            flash_op_params_t few = device_params(kind, few_ranks[k], FEW, BOUND);
            flash_op_params_t many = device_params(kind, few_ranks[k], MANY, BOUND);
            size_t size, without;

            few.combine_on_device = many.combine_on_device = device_sums;
            size = flash_op_scratch_size(&many);
            bounded &= size <= BOUND && size > BOUND - 3 * SEGMENT;
            many.bound = 1;
            least &= flash_op_scratch_size(&many) <= 3 * SEGMENT;
            many.bound = few.bound = 0;
            without = flash_op_scratch_size(&many);
            many.bound = without;
            few.bound = flash_op_scratch_size(&few);
            same &= flash_op_scratch_size(&many) == without && without > MANY * SIM_ELEMENT &&
                    flash_op_scratch_size(&few) == few.bound && flash_op_store_size(&few) == 0;
        }
    }
    ok(bounded, "%s: blocks of any length take as much scratch as they may", sim_kinds[kind]);
    ok(least, "%s: but one segment for each use", sim_kinds[kind]);
    ok(same, "%s: what is enough is as without a bound", sim_kinds[kind]);
}

/* What is on a device beside the scratch: sums of ranks between the first and the last. */
static void test_store(void)
{
    enum { BLOCK = 128 * 100 };
    flash_op_params_t two = device_params(FLASH_REDUCE_SCATTER, 2, BLOCK, 1);
    flash_op_params_t three = device_params(FLASH_REDUCE_SCATTER, 3, BLOCK, 1);
    flash_op_params_t gather = device_params(FLASH_ALLGATHER, 3, BLOCK, 1);

    two.combine_on_device = three.combine_on_device = true;
    ok(flash_op_store_size(&two) == 0 && flash_op_store_size(&gather) == 0,
       "no sums are kept between two ranks, nor by an allgather");
    ok(flash_op_store_size(&three) >= BLOCK * SIM_ELEMENT &&
           flash_op_store_size(&three) < 2 * BLOCK * SIM_ELEMENT,
       "between three a block of them is");
    three.combine_on_device = false;
    ok(flash_op_store_size(&three) == 0, "where the host adds, they are kept near");
    three.scratch_on_device = three.combine_on_device = true;
    ok(flash_op_store_size(&three) == 0, "device scratch needs no store");
}

/* What an operation says of its memory is what the engine has made for it. */
static void test_told(void)
{
    sim_spec_t spec = {.kind = FLASH_REDUCE_SCATTER,
                       .shape = {.count = 100, .pieces = 1, .row = 1, .segment = 1},
                       .depth = 1,
                       .device_input = true,
                       .device_output = true,
                       .bounded = 3,
                       .bound = 6,
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    fake_options_t net = {.rendezvous = 100, .burst = 1};
    sim_t *sim = sim_create(3, 1, &net, &spec, 1);
    flash_op_params_t params = sim_instance_params(&sim->instances[0]);
    size_t segment = flash_op_segment_bytes(&params), slots, wanted;
    flash_op_t *op = NULL;
    bool made = flash_op_create(sim->engines[0], &params, &op) == FLASH_OK;

    slots = flash_op_window(&params) * sizeof(flash_slot_t);
    wanted = sizeof(*op) + slots + 6 * segment + 6 * sizeof(uint32_t) +
             flash_op_window(&params) * segment;
    ok(made && flash_op_memory(op) == wanted,
       "the host's sums, and the segments that are borrowed, count as its memory");
    flash_op_destroy(op);
    sim_destroy(sim);
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    for (size_t k = 0; k < BOUNDED_KINDS; k++) {
        for (sizes_t sizes = EQUAL; sizes < SIZES; sizes++) {
            test_random(seed, kinds[k], sizes);
        }
        test_least(seed, kinds[k]);
        test_memory(kinds[k]);
    }
    for (size_t k = 0; k < sizeof(rooted) / sizeof(rooted[0]); k++) {
        test_random(seed, rooted[k], EQUAL);
        test_random(seed, rooted[k], STEEP);
        test_least(seed, rooted[k]);
    }
    test_disagreement(seed);
    test_together(seed);
    test_store();
    test_told();
    return tap_done();
}
