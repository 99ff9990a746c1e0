/*
 * test_engine_errors.c: what an operation that goes wrong still owes to everyone: it completes on
 * each rank, writes nowhere else, never says OK of wrong data, leaves nothing behind, and the next
 * operation works.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "prng.h"
#include "sim.h"
#include "tap.h"

#define MOST_RANKS 8

/* Which statuses are right; complains of the others. Operation 0 is the one that goes wrong. */
typedef void judge_fn(sim_t *sim);

static bool run_case(uint32_t nranks, uint64_t seed, const fake_options_t *net,
                     const sim_spec_t *wrong, judge_fn *judge)
{
    sim_spec_t specs[2] = {*wrong, *wrong};
    sim_t *sim;
    bool well;

    /* The next operation, at once or after this one, is an ordinary one of either kind. */
    specs[1].kind = seed % 2 == 0 ? FLASH_ALLGATHER : FLASH_REDUCE_SCATTER;
    specs[1].users &= specs[1].kind == FLASH_REDUCE_SCATTER;
    specs[1].refuses = wrong->refuses && seed / 8 % 2 == 0;
    specs[1].name = wrong->name + !specs[1].refuses; /* a name once refused is good for no other */
    specs[1].wait = seed / 2 % 4 != 0 || net->failure != FAKE_FAIL_NONE;
    specs[1].odd_rank = SIM_NOBODY;
    specs[1].fail_rank = specs[1].refuses ? wrong->fail_rank : SIM_NOBODY;
    sim = sim_create(nranks, seed, net, specs, 2);
    sim_run_random(sim);
    sim_check_end(sim);
    judge(sim);
    for (uint32_t rank = 0; rank < nranks && sim_all_complete(sim); rank++) {
        if (sim_status(sim, rank, 1) != FLASH_OK && net->failure == FAKE_FAIL_NONE &&
            !specs[1].refuses) {
            sim_complain(sim, "the next operation fails on rank %u", rank);
        }
    }
    well = sim->problem[0] == '\0';
    if (!well) {
        sim_describe(sim);
    }
    sim_destroy(sim);
    return well;
}

static void expect(sim_t *sim, uint32_t rank, int status)
{
    int got = sim_status(sim, rank, 0);

    if (got != status) {
        sim_complain(sim, "rank %u ends with %d, expected %d", rank, got, status);
    }
}

/* Everyone but `rank` is well, or was told of another's failure. */
static void expect_others_told(sim_t *sim, uint32_t rank)
{
    for (uint32_t k = 0; k < sim->nranks; k++) {
        int status = sim_status(sim, k, 0);

        if (k != rank && status != FLASH_OK && status != FLASH_ERR_PEER) {
            sim_complain(sim, "rank %u ends with %d, expected OK or PEER", k, status);
        }
    }
}

/* Those that were told were told who, unless it was by an empty message. */
static void expect_blame(sim_t *sim, uint32_t rank)
{
    for (uint32_t k = 0; k < sim->nranks; k++) {
        uint32_t blamed = sim_blamed(sim, k, 0);

        if (k != rank && sim_status(sim, k, 0) != FLASH_OK && blamed != rank &&
            blamed != FLASH_NOBODY) {
            sim_complain(sim, "rank %u blames %u, not %u", k, sim_blamed(sim, k, 0), rank);
        }
    }
}

/* --- a callback fails --- */

/* The step in which call number `call` happens; the number of steps if there are too few calls. */
static uint32_t step_of_call(const sim_t *sim, const sim_spec_t *spec, uint64_t call)
{
    const sim_instance_t *in = &sim->instances[(size_t) spec->fail_rank * sim->nspecs];

    for (uint32_t step = 0; step < sim->nranks; step++) {
        uint32_t block = sim_block(sim, spec->kind, spec->fail_rank, step);
        uint32_t pieces = flash_schedule_split(&in->schedule, block).pieces;

        if (call <= pieces) {
            return step;
        }
        call -= pieces;
    }
    return sim->nranks;
}

/*
 * A consumer's failure is its own rank's affair. A producer's spoils all blocks from there on, and
 * those before whose pieces were pending.
 */
static void judge_callback(sim_t *sim)
{
    const sim_spec_t *spec = &sim->specs[0];
    uint32_t failed = step_of_call(sim, spec, spec->fail_callback);

    for (uint32_t step = 0; step < sim->nranks; step++) {
        uint32_t block = sim_block(sim, spec->kind, spec->fail_rank, step);

        if (block == spec->fail_rank) {
            expect(sim, block, failed < sim->nranks ? SIM_ERR_CALL : FLASH_OK);
        } else if (spec->kind == FLASH_REDUCE_SCATTER && step >= failed) {
            expect(sim, block, FLASH_ERR_PEER);
        } else if (spec->kind == FLASH_ALLGATHER || spec->pending == 0) {
            expect(sim, block, FLASH_OK);
        }
    }
    expect_others_told(sim, spec->fail_rank);
    expect_blame(sim, spec->fail_rank);
}

static void test_callback(uint64_t seed, flash_kind_t kind, const char *name)
{
    bool well = true;

    for (uint32_t k = 0; k < 4 * 16 * 25 && well; k += tap_stride()) {
        uint64_t random = seed + 11 * k;
        uint32_t nranks = 2 + k % 4;
        sim_spec_t spec = sim_random_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        spec.callback = true;
        spec.fail_rank = prng_below(&random, nranks);
        spec.fail_callback = 1 + k / 4 % 16;
        well = run_case(nranks, random, &net, &spec, judge_callback);
    }
    ok(well, "%s: any call of the callback fails", name);
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

    expect(sim, rank, hit ? error : FLASH_OK);
    for (uint32_t k = 0; k < sim->nranks && !hit; k++) {
        expect(sim, k, FLASH_OK);
    }
    expect_others_told(sim, rank);
    expect_blame(sim, rank);
}

static void judge_combine(sim_t *sim)
{
    judge_work(sim, failing(sim)->combines >= sim->specs[0].fail_combine, SIM_ERR_ADD);
}

static void test_combine(uint64_t seed)
{
    bool well = true;

    for (uint32_t k = 0; k < 4 * 20 * 25 && well; k += tap_stride()) {
        uint64_t random = seed + 13 * k;
        uint32_t nranks = 2 + k % 4;
        sim_spec_t spec = sim_random_spec(&random, FLASH_REDUCE_SCATTER);
        fake_options_t net = sim_random_net(&random);

        spec.fail_rank = prng_below(&random, nranks);
        spec.fail_combine = 1 + k / 4 % 20;
        well = run_case(nranks, random, &net, &spec, judge_combine);
    }
    ok(well, "any call of the operation fails");
}

/* --- staging fails --- */

static void judge_stage(sim_t *sim)
{
    judge_work(sim, failing(sim)->stages >= sim->specs[0].fail_stage, SIM_ERR_STAGE);
}

static void test_stage(uint64_t seed, flash_kind_t kind, const char *name)
{
    bool well = true;

    for (uint32_t k = 0; k < 4 * 20 * 25 && well; k += tap_stride()) {
        uint64_t random = seed + 17 * k;
        uint32_t nranks = 2 + k % 4;
        sim_spec_t spec = sim_random_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        spec.far_input = k % 3 != 0;
        spec.far_output = k % 3 != 1;
        spec.fail_rank = prng_below(&random, nranks);
        spec.fail_stage = 1 + k / 4 % 20;
        well = run_case(nranks, random, &net, &spec, judge_stage);
    }
    ok(well, "%s: any copy to or from the scratch fails", name);
}

/* --- ranks disagree --- */

/* The lengths of the messages that make up a block are the same by both schedules. */
static bool alike(const flash_schedule_t *a, const flash_schedule_t *b, uint32_t block)
{
    flash_split_t x = flash_schedule_split(a, block), y = flash_schedule_split(b, block);
    uint32_t segments = flash_split_segments(&x);

    if (segments != flash_split_segments(&y)) {
        return false;
    }
    for (uint32_t k = 0; k < segments; k++) {
        if (flash_split_segment(&x, k).count != flash_split_segment(&y, k).count) {
            return false;
        }
    }
    return true;
}

/* `rank` gets a message from its left neighbour whose length it does not expect. */
static bool sees_it(const sim_t *sim, uint32_t rank)
{
    uint32_t n = sim->nranks, left = sim_neighbour(sim, rank, n - 1);
    const flash_schedule_t *mine = &sim->instances[(size_t) rank * sim->nspecs].schedule;
    const flash_schedule_t *theirs = &sim->instances[(size_t) left * sim->nspecs].schedule;

    for (uint32_t step = 1; step < n; step++) {
        if (!alike(mine, theirs, sim_block(sim, mine->kind, rank, step))) {
            return true;
        }
    }
    return false;
}

/*
 * A rank that sees a wrong length fails by it, unless another one failed before: that one's
 * spoiled messages have no length to be compared, and in a reduce-scatter they may pass without
 * any harm to this rank's result.
 */
static void judge_sizes(sim_t *sim)
{
    uint32_t seeing = 0, truncated = 0;

    for (uint32_t k = 0; k < sim->nranks; k++) {
        seeing += sees_it(sim, k);
        truncated += sim_status(sim, k, 0) == FLASH_ERR_TRUNCATED;
    }
    for (uint32_t k = 0; k < sim->nranks; k++) {
        int status = sim_status(sim, k, 0);

        if (seeing == 0) {
            expect(sim, k, FLASH_OK);
        } else if (seeing == 1 && sees_it(sim, k)) {
            expect(sim, k, FLASH_ERR_TRUNCATED);
        } else if (status != FLASH_OK && status != FLASH_ERR_PEER &&
                   !(status == FLASH_ERR_TRUNCATED && sees_it(sim, k))) {
            sim_complain(sim, "rank %u ends with %d", k, status);
        }
    }
    if (seeing > 0 && truncated == 0) {
        sim_complain(sim, "nobody sees the wrong length");
    }
}

typedef enum { OTHER_COUNT, OTHER_BLOCK, OTHER_SEGMENT, OTHER_PIECES, OTHER_ALL } oddity_t;

/* Changes the shape of the odd rank in one way. */
static void make_odd(uint64_t *random, sim_spec_t *spec, oddity_t oddity, uint32_t nranks,
                     size_t *counts, size_t *odd_counts)
{
    sim_shape_t *odd = &spec->odd_shape;

    spec->odd_rank = prng_below(random, nranks);
    *odd = spec->shape;
    if (oddity == OTHER_BLOCK || (oddity == OTHER_ALL && prng_percent(random, 50))) {
        for (uint32_t k = 0; k < nranks; k++) {
            odd_counts[k] = counts[k] = prng_percent(random, 25) ? 0 : prng_below(random, 20);
        }
        odd_counts[prng_below(random, nranks)] = prng_below(random, 40);
        spec->shape.counts = counts;
        odd->counts = odd_counts;
    }
    if (oddity == OTHER_COUNT || oddity == OTHER_ALL) {
        odd->count = prng_below(random, 40); /* 0 too */
    }
    if (oddity == OTHER_SEGMENT || oddity == OTHER_ALL) {
        odd->segment = 1 + prng_below(random, 10);
    }
    if (oddity == OTHER_PIECES || oddity == OTHER_ALL) {
        odd->pieces = 1 + prng_below(random, 5);
        odd->row = 1 + prng_below(random, 3);
    }
}

static void test_sizes(uint64_t seed, flash_kind_t kind, oddity_t oddity, const char *name)
{
    static size_t counts[MOST_RANKS], odd_counts[MOST_RANKS];
    bool well = true;

    for (uint32_t k = 0; k < 1500 && well; k += tap_stride()) {
        uint64_t random = seed + 17 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = sim_random_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        make_odd(&random, &spec, oddity, nranks, counts, odd_counts);
        well = run_case(nranks, random, &net, &spec, judge_sizes);
    }
    ok(well, "%s: %s", kind == FLASH_ALLGATHER ? "allgather" : "reduce-scatter", name);
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
    expect(sim, injected_rank, FLASH_ERR_TRANSPORT);
    expect_others_told(sim, injected_rank);
    /* Whoever failed to receive takes it for the sender's fault. */
    expect_blame(sim, sim->options.failure == FAKE_FAIL_RECV
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
        sim_spec_t spec = sim_random_spec(&random, kind);
        fake_options_t net = failing_net(&random, failure, nranks, 1 + k / 7 % 20);

        injected_rank = net.fail_rank;
        well = run_case(nranks, random, &net, &spec, judge_transport);
    }
    ok(well, "%s: %s", kind == FLASH_ALLGATHER ? "allgather" : "reduce-scatter", name);
}

/* --- a rank is lost --- */

/* Whoever's result lacks something says so, and says that it is the lost rank's fault. */
static void judge_loss(sim_t *sim)
{
    uint32_t lost = sim->loss.rank, n = sim->nranks;

    for (uint32_t k = 0; k < n; k++) {
        int status = sim_status(sim, k, 0);
        bool neighbour =
            k == lost || k == sim_neighbour(sim, lost, 1) || k == sim_neighbour(sim, lost, n - 1);

        if (status != FLASH_OK && status != FLASH_ERR_PEER &&
            !(status == FLASH_ERR_LOST && neighbour)) {
            sim_complain(sim, "rank %u ends with %d", k, status);
        }
    }
    expect_blame(sim, lost);
}

static void test_loss(uint64_t seed, flash_kind_t kind, const char *name)
{
    bool well = true;
    unsigned failed = 0;

    for (uint32_t k = 0; k < 3000 && well; k++) {
        uint64_t random = seed + 29 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = sim_random_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);
        sim_t *sim;

        net.rendezvous = 0;
        sim = sim_create(nranks, random, &net, &spec, 1);
        sim->loss.rank = prng_below(&random, nranks);
        sim->loss.turn = prng_below(&random, 40 * nranks);
        sim_run_random(sim);
        sim_check_end(sim);
        judge_loss(sim);
        failed += sim_status(sim, sim_neighbour(sim, sim->loss.rank, 1), 0) != FLASH_OK;
        well = sim->problem[0] == '\0';
        if (!well) {
            sim_describe(sim);
        }
        sim_destroy(sim);
    }
    ok(well && failed > 1000, "%s: a rank is lost (%u of 3000 fail by it)", name, failed);
}

/* --- a rank refuses --- */

/* Its own block, or its part of each block, is missing everywhere else. */
static void judge_refusal(sim_t *sim)
{
    uint32_t refuser = sim->specs[0].fail_rank;

    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        expect(sim, rank, rank == refuser ? FLASH_ERR_NO_MEMORY : FLASH_ERR_PEER);
        if (sim_blamed(sim, rank, 0) != refuser) {
            sim_complain(sim, "rank %u blames %u, not %u", rank, sim_blamed(sim, rank, 0), refuser);
        }
    }
}

static void test_refusal(uint64_t seed, flash_kind_t kind, const char *name)
{
    bool well = true;

    for (uint32_t k = 0; k < 3000 && well; k += tap_stride()) {
        uint64_t random = seed + 31 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = sim_random_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        spec.fail_rank = prng_below(&random, nranks);
        spec.refuses = true;
        well = run_case(nranks, random, &net, &spec, judge_refusal);
    }
    ok(well, "%s: a rank refuses", name);
}

/*
 * Two ranks refuse three times as much as they have memory set aside for; one finds no more, once.
 * When that is through, as much again.
 */
static void test_all_refusals(void)
{
    static const fake_options_t options = {.rendezvous = 100,
                                           .unordered = FLASH_TAG_MARKS,
                                           .failure = FAKE_FAIL_RESERVE,
                                           .fail_rank = 1,
                                           .fail_nth = 2}; /* the first time it is set aside */
    fake_net_t *net = fake_net_create(2, 1, &options);
    flash_engine_t *engines[2];
    unsigned failed = 0, wrong = 0;

    for (uint32_t rank = 0; rank < 2; rank++) {
        engines[rank] = flash_engine_create(fake_net_transport(net, rank));
    }
    for (uint64_t name = 0; name < 6 * FLASH_REFUSALS; name++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            flash_op_params_t params = {.schedule = {.ring = {.nranks = 2, .place = rank}},
                                        .left = fake_net_peer(net, rank, 1 - rank),
                                        .right = fake_net_peer(net, rank, 1 - rank),
                                        .recv_tag = name << FLASH_TAG_SHIFT,
                                        .send_tag = name << FLASH_TAG_SHIFT};

            if (!flash_engine_refuse(engines[rank], &params)) {
                failed++;
                wrong += rank != 1 || name != FLASH_REFUSALS;
                wrong += !flash_engine_refuse(engines[rank], &params);
            }
        }
        while (name == 3 * FLASH_REFUSALS - 1 &&
               (flash_engine_progress(engines[0]) != 0 || flash_engine_progress(engines[1]) != 0)) {
        }
    }
    ok(failed == 1 && wrong == 0, "memory is set aside for %d refusals at a time, and more is had",
       FLASH_REFUSALS);
    while (flash_engine_progress(engines[0]) != 0 || flash_engine_progress(engines[1]) != 0) {
    }
    ok(fake_net_leftovers(net) == 0, "they leave nothing behind");
    for (uint32_t rank = 0; rank < 2; rank++) {
        flash_engine_destroy(engines[rank]);
    }
    fake_net_destroy(net);
}

/* --- a rank is silent --- */

static void test_silence(flash_kind_t kind, const char *name)
{
    sim_spec_t spec = {.kind = kind,
                       .shape = {.count = 10, .pieces = 1, .row = 1, .segment = 4},
                       .depth = 8, /* all of the second rank's segments may come */
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    fake_options_t net = {.rendezvous = 100, .unordered = FLASH_TAG_MARKS};
    sim_t *sim = sim_create(3, 1, &net, &spec, 1);
    uint32_t right = sim_neighbour(sim, 0, 1), left = sim_neighbour(sim, 0, 2);
    flash_silence_t silence[2];
    size_t at_first, then, still, afterwards;

    sim_start(sim, 0, 0);
    sim_progress(sim, 0);
    at_first = flash_engine_watch(sim->engines[0], silence, 2);
    flash_engine_watch(sim->engines[0], silence, 2);
    then = flash_engine_watch(sim->engines[0], silence, 2);
    ok(at_first == 0 && then == 1 && silence[0].watches == 2 && silence[0].sending &&
           silence[0].rank == right && silence[0].step == 0 && silence[0].segment == 0 &&
           silence[0].block == sim_block(sim, kind, 0, 0) && silence[0].user != NULL &&
           silence[0].peer == fake_net_peer(sim->net, 0, right),
       "%s: nobody takes the first segment, and it shows", name);
    sim_start(sim, right, 0);
    for (int k = 0; k < 100; k++) {
        sim_progress(sim, 0);
        sim_progress(sim, right);
        if (sim_take(sim, 0, SIM_ALL_WORK)) {
            sim_finish_held(sim, 0);
        }
    }
    flash_engine_watch(sim->engines[0], silence, 2);
    still = flash_engine_watch(sim->engines[0], silence, 2);
    ok(still == 1 && silence[0].watches == 1 && !silence[0].sending && silence[0].rank == left &&
           silence[0].step == 1,
       "%s: nothing comes from the left, and it shows", name);
    sim_start(sim, left, 0);
    sim_run_random(sim);
    sim_check_end(sim);
    afterwards = flash_engine_watch(sim->engines[0], silence, 2);
    ok(afterwards == 0 && sim->problem[0] == '\0', "%s: it goes on, and ends", name);
    sim_destroy(sim);
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
        sim_spec_t spec = sim_random_spec(&random, k % 2 ? FLASH_ALLGATHER : FLASH_REDUCE_SCATTER);
        fake_options_t net = sim_random_net(&random);

        if (prng_percent(&random, 50)) {
            net = failing_net(&random, prng_percent(&random, 50) ? FAKE_FAIL_SEND : FAKE_FAIL_RECV,
                              nranks, 1 + prng_below(&random, 20));
        }
        /* A failed receive loses the mark that a step of another length has ended. */
        if (net.failure != FAKE_FAIL_RECV && prng_percent(&random, 60)) {
            make_odd(&random, &spec, OTHER_ALL, nranks, counts, odd_counts);
        }
        if (prng_percent(&random, 60)) {
            spec.fail_rank = prng_below(&random, nranks);
            spec.fail_callback = prng_below(&random, 8);
            spec.fail_combine = prng_below(&random, 8);
        }
        well = run_case(nranks, random, &net, &spec, judge_nothing);
    }
    ok(well, "several of these at a time: all complete, nothing is left over");
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    test_callback(seed, FLASH_ALLGATHER, "allgather");
    test_callback(seed, FLASH_REDUCE_SCATTER, "reduce-scatter");
    test_stage(seed, FLASH_ALLGATHER, "allgather");
    test_stage(seed, FLASH_REDUCE_SCATTER, "reduce-scatter");
    test_combine(seed);
    for (flash_kind_t kind = FLASH_ALLGATHER; kind <= FLASH_REDUCE_SCATTER; kind++) {
        test_sizes(seed, kind, OTHER_COUNT, "one rank has all blocks of another size");
        test_sizes(seed, kind, OTHER_BLOCK, "one rank has one block of another size");
        test_sizes(seed, kind, OTHER_SEGMENT, "one rank cuts into other segments");
        test_sizes(seed, kind, OTHER_PIECES, "one rank cuts into other pieces");
        test_sizes(seed, kind, OTHER_ALL, "one rank differs in all of this");
        test_transport(seed, kind, FAKE_FAIL_SEND, "a send fails");
        test_transport(seed, kind, FAKE_FAIL_RECV, "a receive fails");
    }
    test_loss(seed, FLASH_ALLGATHER, "allgather");
    test_loss(seed, FLASH_REDUCE_SCATTER, "reduce-scatter");
    test_refusal(seed, FLASH_ALLGATHER, "allgather");
    test_refusal(seed, FLASH_REDUCE_SCATTER, "reduce-scatter");
    test_all_refusals();
    test_silence(FLASH_ALLGATHER, "allgather");
    test_silence(FLASH_REDUCE_SCATTER, "reduce-scatter");
    test_chaos(seed);
    return tap_done();
}
