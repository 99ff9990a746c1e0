/*
 * test_engine_errors.c: what an operation that goes wrong still owes to everyone: it completes on
 * each rank, writes nowhere else, never says OK of wrong data, leaves nothing behind, and the next
 * operation works.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "judge.h"
#include "odd_rank.h"
#include "prng.h"
#include "tap.h"

#define MOST_RANKS 8

/* --- a callback fails --- */

/* What the rank's operation calls back for, of one kind. */
static uint64_t calls_of(const sim_t *sim, uint32_t rank, bool produces)
{
    const sim_spec_t *spec = &sim->specs[0];
    const sim_instance_t *in = &sim->instances[(size_t) rank * sim->nspecs];

    return !sim_spec_calls(spec, produces)
               ? 0
               : flash_schedule_pieces(&in->schedule, produces ? FLASH_PRODUCED : FLASH_CONSUMED);
}

/* Where in the order of production a rank's block is, or the piece that a call produces. */
static uint32_t turn_of_rank(const sim_t *sim, uint32_t rank)
{
    const sim_spec_t *spec = &sim->specs[0];
    uint32_t turn = 0;

    while (sim_block(sim, spec->kind, true, spec->fail_rank, turn) % sim->nranks != rank) {
        turn++;
    }
    return turn;
}

static uint32_t turn_of_call(const sim_t *sim, uint64_t call)
{
    const sim_spec_t *spec = &sim->specs[0];
    const sim_instance_t *in = &sim->instances[(size_t) spec->fail_rank * sim->nspecs];
    uint32_t turn = 0, pieces;

    while (call > (pieces = flash_schedule_split(&in->schedule, sim_block(sim, spec->kind, true,
                                                                          spec->fail_rank, turn))
                                .pieces)) {
        call -= pieces;
        turn++;
    }
    return turn;
}

/* Whether the others need of a rank what it produces of its own block. */
static bool needs_own_block(flash_kind_t kind)
{
    return kind == FLASH_ALLGATHER || kind == FLASH_ALLREDUCE || kind == FLASH_BCAST;
}

/* Whether a rank's result lacks what a call was to produce. */
static bool misses(const sim_t *sim, uint32_t rank, uint64_t call)
{
    flash_kind_t kind = sim->specs[0].kind;

    if (kind == FLASH_REDUCE || kind == FLASH_GATHER) {
        return rank == sim_root(sim, &sim->specs[0]);
    }
    return needs_own_block(kind) || turn_of_rank(sim, rank) >= turn_of_call(sim, call);
}

/*
 * A consumer's failure is its own rank's affair. A producer's poisons all that follows, and nothing
 * that came before, though it be pending. In an all-to-all, who misses something produces no more
 * for others.
 */
static void judge_callback(sim_t *sim)
{
    const sim_spec_t *spec = &sim->specs[0];
    uint64_t produced = calls_of(sim, spec->fail_rank, true);
    uint64_t consumed = calls_of(sim, spec->fail_rank, false), call = spec->fail_callback;

    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        if (rank == spec->fail_rank) {
            judge_status(sim, rank, call <= produced + consumed ? SIM_ERR_CALL : FLASH_OK);
        } else if (call <= produced && misses(sim, rank, call)) {
            judge_status(sim, rank, FLASH_ERR_PEER);
        } else if (call > produced || spec->kind != FLASH_ALLTOALL) {
            judge_status(sim, rank, FLASH_OK);
        }
    }
    judge_others_told(sim, spec->fail_rank);
    judge_failed_rank(sim, spec->fail_rank);
}

/* Any call, on any rank; `other`: of either callback, of which there may be one alone. */
static void test_callback(uint64_t seed, flash_kind_t kind, bool other)
{
    bool well = true;

    for (uint32_t k = 0; k < 4 * 16 * 25 && well; k += tap_stride()) {
        uint64_t random = seed + (other ? 19 : 11) * k;
        uint32_t nranks = 2 + k % 4;
        sim_spec_t spec = judge_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        spec.callback |= !other;
        spec.other = other;
        spec.fail_rank = prng_below(&random, nranks);
        spec.fail_callback = 1 + k / 4 % 16;
        well = judge_run(nranks, random, &net, &spec, judge_callback);
    }
    ok(well, "%s: any call of %s fails%s", sim_kinds[kind],
       other ? "either callback" : "the callback", judge_bound());
}

/* --- combining fails --- */

static const sim_instance_t *failing(const sim_t *sim)
{
    return &sim->instances[(size_t) sim->specs[0].fail_rank * sim->nspecs];
}

/* `hit`: the work that fails came about, on the rank where it does, with that error. */
static void judge_work(sim_t *sim, bool hit, int error)
{
    uint32_t rank = sim->specs[0].fail_rank;

    judge_status(sim, rank, hit ? error : FLASH_OK);
    for (uint32_t k = 0; k < sim->nranks && !hit; k++) {
        judge_status(sim, k, FLASH_OK);
    }
    judge_others_told(sim, rank);
    judge_failed_rank(sim, rank);
}

static void judge_combine(sim_t *sim)
{
    judge_work(sim, failing(sim)->combines >= sim->specs[0].fail_combine, SIM_ERR_ADD);
}

static void test_combine(uint64_t seed, flash_kind_t kind)
{
    bool well = true;

    for (uint32_t k = 0; k < 4 * 20 * 25 && well; k += tap_stride()) {
        uint64_t random = seed + 13 * k;
        uint32_t nranks = 2 + k % 4;
        sim_spec_t spec = judge_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        spec.fail_rank = prng_below(&random, nranks);
        spec.fail_combine = 1 + k / 4 % 20;
        well = judge_run(nranks, random, &net, &spec, judge_combine);
    }
    ok(well, "%s: any call of the operation fails%s", sim_kinds[kind], judge_bound());
}

/* --- staging fails --- */

static void judge_stage(sim_t *sim)
{
    judge_work(sim, failing(sim)->stages >= sim->specs[0].fail_stage, SIM_ERR_STAGE);
}

static void test_stage(uint64_t seed, flash_kind_t kind)
{
    bool well = true;

    for (uint32_t k = 0; k < 4 * 20 * 25 && well; k += tap_stride()) {
        uint64_t random = seed + 17 * k;
        uint32_t nranks = 2 + k % 4;
        sim_spec_t spec = judge_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        if (!judge_bounded) {
            spec.device_input = k % 3 != 0;
            spec.device_output = k % 3 != 1;
        }
        spec.fail_rank = prng_below(&random, nranks);
        spec.fail_stage = 1 + k / 4 % 20;
        well = judge_run(nranks, random, &net, &spec, judge_stage);
    }
    ok(well, "%s: any copy to or from the scratch fails%s", sim_kinds[kind], judge_bound());
}

/* --- ranks disagree --- */

static void test_sizes(uint64_t seed, flash_kind_t kind, oddity_t oddity, const char *name)
{
    static size_t counts[MOST_RANKS], odd_counts[MOST_RANKS];
    bool well = true;

    for (uint32_t k = 0; k < 1500 && well; k += tap_stride()) {
        uint64_t random = seed + 17 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = judge_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        odd_rank_make(&random, &spec, oddity, nranks, counts, odd_counts);
        well = judge_run(nranks, random, &net, &spec, odd_rank_judge);
    }
    ok(well, "%s: %s%s", sim_kinds[kind], name, judge_bound());
}

/* --- the transport fails --- */

static fake_options_t failing_net(uint64_t *random, fake_failure_t failure, uint32_t nranks,
                                  uint32_t nth)
{
    fake_options_t net = sim_random_net(random);

    net.failure = failure;
    net.fail_rank = prng_below(random, nranks);
    net.fail_nth = nth;
    return net;
}

static uint32_t injected_rank; /* whose failure judge_transport() judges */

/*
 * The failure may hit the second operation as well as the first: then this is of no interest, but
 * what holds for each run has been checked.
 */
static void judge_transport(sim_t *sim)
{
    if (sim_status(sim, injected_rank, 0) == FLASH_OK) {
        if (fake_net_failed(sim->net)) {
            int next = sim_status(sim, injected_rank, 1);

            if (next != FLASH_ERR_TRANSPORT) {
                sim_complain(sim, "the failure shows nowhere");
            }
        }
        return;
    }
    judge_status(sim, injected_rank, FLASH_ERR_TRANSPORT);
    judge_others_told(sim, injected_rank);
    if (sim->options.failure == FAKE_FAIL_RECV && sim_exchanges_with_all(sim)) {
        return; /* any of them may have failed */
    }
    /* Whoever failed to receive takes it for the sender's fault. */
    judge_failed_rank(sim, sim->options.failure == FAKE_FAIL_RECV
                               ? sim_neighbour(sim, injected_rank, sim->nranks - 1)
                               : injected_rank);
}

static void test_transport(uint64_t seed, flash_kind_t kind, fake_failure_t failure,
                           const char *name)
{
    bool well = true;

    for (uint32_t k = 0; k < 1000 && well; k += tap_stride()) {
        uint64_t random = seed + 19 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = judge_spec(&random, kind);
        fake_options_t net = failing_net(&random, failure, nranks, 1 + k / 7 % 20);

        injected_rank = net.fail_rank;
        well = judge_run(nranks, random, &net, &spec, judge_transport);
    }
    ok(well, "%s: %s%s", sim_kinds[kind], name, judge_bound());
}

/* --- everything at once --- */

static void judge_nothing(sim_t *sim)
{
    (void) sim;
}

static void test_chaos(uint64_t seed)
{
    static size_t counts[MOST_RANKS], odd_counts[MOST_RANKS];
    bool well = true;

    for (uint32_t k = 0; k < 3000 && well; k += tap_stride()) {
        uint64_t random = seed + 23 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = judge_spec(&random, k % FLASH_KINDS);
        fake_options_t net = sim_random_net(&random);

        if (prng_percent(&random, 50)) {
            net = failing_net(&random, prng_percent(&random, 50) ? FAKE_FAIL_SEND : FAKE_FAIL_RECV,
                              nranks, 1 + prng_below(&random, 20));
        }
        /* A failed receive loses the mark that a step of another length has ended. */
        if (net.failure != FAKE_FAIL_RECV && prng_percent(&random, 60)) {
            odd_rank_make(&random, &spec, OTHER_ALL, nranks, counts, odd_counts);
        }
        if (prng_percent(&random, 60)) {
            spec.fail_rank = prng_below(&random, nranks);
            spec.fail_callback = prng_below(&random, 8);
            spec.fail_combine = prng_below(&random, 8);
        }
        well = judge_run(nranks, random, &net, &spec, judge_nothing);
    }
    ok(well, "several of these at a time: all complete, nothing is left over%s", judge_bound());
}

static void test_all(uint64_t seed)
{
    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        if (judge_bounded && kind == FLASH_PAIRWISE_REDUCE_SCATTER) {
            continue; /* it has no such way */
        }
        test_callback(seed, kind, false);
        test_callback(seed, kind, true);
        test_stage(seed, kind);
        if (flash_schedule_reduces(kind)) {
            test_combine(seed, kind);
        }
        test_sizes(seed, kind, OTHER_COUNT, "one rank has all blocks of another size");
        test_sizes(seed, kind, OTHER_BLOCK, "one rank has one block of another size");
        test_sizes(seed, kind, OTHER_SEGMENT, "one rank cuts into other segments");
        test_sizes(seed, kind, OTHER_PIECES, "one rank cuts into other pieces");
        test_sizes(seed, kind, OTHER_ALL, "one rank differs in all of this");
        test_transport(seed, kind, FAKE_FAIL_SEND, "a send fails");
        test_transport(seed, kind, FAKE_FAIL_RECV, "a receive fails");
    }
    test_chaos(seed);
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    test_all(seed);
    judge_bounded = true;
    test_all(seed);
    return tap_done();
}
