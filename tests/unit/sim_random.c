/*
 * sim_random.c: a simulation by random moves.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "prng.h"
#include "sim.h"

sim_spec_t sim_random_spec(uint64_t *random, flash_kind_t kind)
{
    return (sim_spec_t){
        .kind = kind,
        .shape = {.count = 1 + prng_below(random, 20),
                  .scattered = prng_percent(random, 50),
                  .pieces = 1 + prng_below(random, 3),
                  .row = 1 + prng_below(random, 3),
                  .segment = 1 + prng_below(random, 10),
                  .longest = prng_below(random, 6)},
        .depth = 1 + prng_below(random, 6),
        .sends = prng_below(random, 4),
        .callback = prng_percent(random, 50),
        .pending = 50 * prng_below(random, 3),
        .other = prng_percent(random, 40),
        .in_place = prng_percent(random, 50),
        .mix = prng_percent(random, 50),
        .users = flash_schedule_reduces(kind) && prng_percent(random, 30),
        .on_callback_thread = prng_percent(random, 20),
        .device_input = prng_percent(random, 30),
        .device_output = prng_percent(random, 30),
        .device_sums = prng_percent(random, 50),
        .device_scratch = prng_percent(random, 50) ? prng_below(random, 4) : 0,
        .near = prng_percent(random, 30) ? prng_below(random, 4) : 0,
        .bounded = prng_below(random, 4),
        .bound = prng_below(random, 8),
        .wide = prng_percent(random, 50),
        .name = 1 + prng_below(random, 2),
        .odd_rank = SIM_NOBODY,
        .fail_rank = SIM_NOBODY,
        .root = flash_schedule_has_root(kind) ? prng_below(random, 1 << 16) : 0,
    };
}

void sim_bound(uint64_t *random, sim_spec_t *spec)
{
    spec->device_output = prng_percent(random, 80);
    spec->device_input = !spec->device_output || prng_percent(random, 70);
    spec->device_scratch = 0;
    spec->near = prng_percent(random, 30) ? prng_below(random, 3) : 0;
    spec->bounded = 1 + prng_below(random, 3);
    spec->bound = 1 + prng_below(random, 8);
}

fake_options_t sim_random_net(uint64_t *random)
{
    static const unsigned percents[] = {0, 0, 20, 50, 80, 100, 100};
    fake_options_t options = {.unordered = FLASH_TAG_MARKS};

    options.inline_sends = percents[prng_below(random, 7)];
    options.rendezvous = percents[prng_below(random, 7)];
    options.inline_recvs = percents[prng_below(random, 7)];
    options.late_data = percents[prng_below(random, 7)];
    options.lazy = 40 * prng_below(random, 3);
    options.burst = 1 + prng_below(random, 2) * 7;
    options.leaving = prng_percent(random, 50);
    return options;
}

/* How one run goes: which rank is slow, how long work stays in a thread's hands. */
typedef struct pace {
    uint32_t slow;         /* SIM_NOBODY: none */
    uint32_t hold;         /* percent of the turns that leave held work alone */
    uint32_t most_held;    /* but not beyond so much of it */
    uint32_t start, drain; /* percent of the turns that start something, take completed ones */
} pace_t;

static pace_t random_pace(sim_t *sim)
{
    uint64_t *random = &sim->random;

    return (pace_t){
        .slow = prng_percent(random, 30) ? prng_below(random, sim->nranks) : SIM_NOBODY,
        .hold = 30 * prng_below(random, 4),
        .most_held = 4 * sim->nranks,
        .start = prng_percent(random, 50) ? 100 : 5,
        .drain = prng_percent(random, 50) ? 100 : 20,
    };
}

static bool start_something(sim_t *sim, uint32_t rank)
{
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        if (sim_may_start(sim, rank, k)) {
            sim_start(sim, rank, k);
            return true;
        }
    }
    return false;
}

static bool use_held(sim_t *sim, const pace_t *pace)
{
    size_t k;

    if (sim->nheld == 0 ||
        (sim->nheld < pace->most_held && prng_percent(&sim->random, pace->hold))) {
        return false;
    }
    k = prng_below(&sim->random, (uint32_t) sim->nheld);
    if (prng_percent(&sim->random, 30)) {
        sim_run_held(sim, k); /* running and finishing are two moves: others come between */
    } else {
        sim_finish_held(sim, k);
    }
    return true;
}

static bool move(sim_t *sim, uint32_t rank, const pace_t *pace)
{
    uint64_t *random = &sim->random;
    bool moved = false;

    if (prng_percent(random, pace->start)) {
        moved = start_something(sim, rank);
    }
    switch (prng_below(random, 8)) {
    case 0:
        moved |= sim_take(sim, rank, FLASH_WORK_STAGE | FLASH_WORK_COMBINE | FLASH_WORK_COPY);
        break;
    case 1:
        moved |= sim_take(sim, rank, FLASH_WORK_CALLBACK | FLASH_WORK_USERS_COMBINE);
        break;
    case 2:
        while (sim_take(sim, rank, SIM_ALL_WORK)) {
            moved = true;
        }
        break;
    case 3:
        moved |= sim_take(sim, rank, FLASH_WORK_CALLBACK_ON_THREAD);
        break;
    default:
        moved |= sim_progress(sim, rank);
    }
    if (prng_percent(random, pace->drain)) {
        moved |= sim_drain(sim, rank);
    }
    return use_held(sim, pace) || moved;
}

/* True if nothing will ever happen again. Only asked after a long time without a move. */
static bool stuck(sim_t *sim)
{
    bool moved = fake_net_pending(sim->net) > 0 || sim->nheld > 0;

    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        moved |= start_something(sim, rank) || sim_progress(sim, rank) ||
                 sim_take(sim, rank, SIM_ALL_WORK) || sim_drain(sim, rank);
    }
    return !moved;
}

/*
 * Progress that moves nothing forward would be an endless run too: so there is a bound, far
 * beyond what the work needs.
 */
static uint64_t enough_turns(const sim_t *sim)
{
    uint64_t messages = 0;

    for (uint32_t k = 0; k < sim->nspecs; k++) {
        flash_schedule_t schedule = sim->instances[k].schedule;
        uint64_t segments = flash_schedule_max_segments(&schedule);

        messages += (2 + segments) * sim->nranks * sim->nranks;
    }
    return 100000 + 1000 * messages;
}

/* All that exchange anything with it. */
static void lose(sim_t *sim)
{
    uint32_t rank = sim->loss.rank, n = sim->nranks;

    for (uint32_t ahead = 1; ahead < n; ahead++) {
        uint32_t other = sim_neighbour(sim, rank, ahead);

        if (ahead == 1 || ahead == n - 1 || sim_exchanges_with_all(sim)) {
            fake_net_lose(sim->net, rank, other);
            fake_net_lose(sim->net, other, rank);
        }
    }
}

void sim_run_random(sim_t *sim)
{
    pace_t pace = random_pace(sim);
    uint64_t idle = 0, turns = 0, bound = enough_turns(sim);

    while (!sim_all_complete(sim)) {
        uint32_t rank = prng_below(&sim->random, sim->nranks);

        if (rank == pace.slow && !prng_percent(&sim->random, 5)) {
            continue;
        }
        idle = move(sim, rank, &pace) ? 0 : idle + 1;
        if (idle > 100 * (uint64_t) sim->nranks) {
            if (stuck(sim) && !sim_all_complete(sim)) {
                sim_complain(sim, "hangs after %llu turns", (unsigned long long) turns);
                return;
            }
            idle = 0;
        }
        if (turns == sim->loss.turn && sim->loss.rank != SIM_NOBODY) {
            lose(sim);
        }
        if (++turns > bound) {
            sim_complain(sim, "not complete after %llu turns", (unsigned long long) turns);
            return;
        }
    }
    /* What the completed operations no longer wait for: nothing, but the end checks that. */
}
