/*
 * test_shm.c: shared-memory channels: random programs on one, in any interleaving; one after
 * another on the same sides; and threads that share them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "shm_rig.h"
#include "prng.h"
#include "tap.h"

enum { OPS = 24, PROCESSES = 6, COMMS = 40, N = 3, READ_ABOVE = 10 };

/* ------------------------------------------------------------------- one channel */

/* `above`: allgathers of longer blocks, in bytes, are read. */
static bool run_one(uint32_t nranks, size_t above, uint64_t *random)
{
    flash_shm_side_t *memory = shm_sides(nranks), *sides[SHM_RANKS];
    flash_shm_t *shms[SHM_RANKS];
    static shm_call_t calls[SHM_RANKS][OPS];
    shm_plan_t plans[OPS];
    uint32_t started[SHM_RANKS] = {0}, left = nranks * OPS;
    bool right = true;

    for (uint32_t rank = 0; rank < nranks; rank++) {
        sides[rank] = &memory[rank];
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        shms[rank] = flash_shm_create(nranks, rank, sides);
        flash_shm_read_by(shms[rank], shm_read, NULL);
    }
    for (uint32_t k = 0; k < OPS; k++) {
        plans[k] = shm_plan(random, nranks);
    }
    for (uint64_t steps = 0; left > 0 && steps < 1000000; steps++) {
        uint32_t rank = prng_below(random, nranks);

        if (started[rank] < OPS && prng_percent(random, 20)) {
            shm_call_t *call = &calls[rank][started[rank]];
            flash_op_params_t params = shm_params(call, &plans[started[rank]], nranks, rank);

            flash_shm_start(shms[rank], &call->op, &params, above);
            started[rank]++;
        }
        flash_shm_progress(shms[rank]);
        shm_collect(shms[rank]);
        for (uint32_t k = 0; k < started[rank]; k++) {
            if (calls[rank][k].ended) {
                right &= shm_is_right(&calls[rank][k], nranks, rank);
                shm_free_call(&calls[rank][k]);
                left--;
            }
        }
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        right &= !flash_shm_is_busy(shms[rank]);
        flash_shm_destroy(shms[rank]);
    }
    free(memory);
    return right && left == 0;
}

/* ------------------------------------------------------ one channel after another */

/* A process goes from communicator to communicator, each with a channel on the same sides. */
typedef struct process {
    uint32_t comm; /* the first that it has not left */
    flash_shm_t *shm;
    uint32_t started, ended;
    shm_call_t call;
} process_t;

typedef struct world {
    process_t processes[PROCESSES];
    flash_shm_side_t *memory;
    uint32_t members[COMMS]; /* a bit for each process */
    shm_plan_t plans[COMMS][3];
    bool right;
} world_t;

static uint32_t size_of(const world_t *world, uint32_t comm)
{
    return (uint32_t) __builtin_popcount(world->members[comm]);
}

static uint32_t rank_in(const world_t *world, uint32_t comm, uint32_t process)
{
    return (uint32_t) __builtin_popcount(world->members[comm] & ((1u << process) - 1));
}

/* As all members of a communicator have freed those of its number before it is made. */
static bool all_are_there(const world_t *world, uint32_t comm)
{
    for (uint32_t k = 0; k < PROCESSES; k++) {
        if ((world->members[comm] >> k & 1) != 0 && world->processes[k].comm < comm) {
            return false;
        }
    }
    return true;
}

static void enter(world_t *world, process_t *process, uint32_t number)
{
    flash_shm_side_t *sides[PROCESSES];
    uint32_t count = 0;

    for (uint32_t k = 0; k < PROCESSES; k++) {
        if ((world->members[process->comm] >> k & 1) != 0) {
            sides[count++] = &world->memory[k];
        }
    }
    process->shm = flash_shm_create(count, rank_in(world, process->comm, number), sides);
    flash_shm_read_by(process->shm, shm_read, NULL);
    process->started = process->ended = 0;
}

static void step(world_t *world, uint32_t number, uint64_t *random)
{
    process_t *process = &world->processes[number];
    uint32_t comm = process->comm, nranks, rank;
    /* A channel without operations, now and then, and some with several. */
    uint32_t ops = comm % 4;

    if (comm == COMMS) {
        return;
    }
    if ((world->members[comm] >> number & 1) == 0) {
        process->comm++;
        process->started = UINT32_MAX;
        return;
    }
    nranks = size_of(world, comm);
    rank = rank_in(world, comm, number);
    if (process->started == UINT32_MAX) {
        if (all_are_there(world, comm)) {
            enter(world, process, number);
        }
        return;
    }
    if (process->started == process->ended && process->started < ops) {
        flash_op_params_t params =
            shm_params(&process->call, &world->plans[comm][process->started], nranks, rank);

        flash_shm_start(process->shm, &process->call.op, &params, READ_ABOVE);
        process->started++;
    }
    /* Some are slow: what they have not read must stay there, until they have left. */
    if (prng_percent(random, number == 0 ? 5 : 60)) {
        flash_shm_progress(process->shm);
        shm_collect(process->shm);
    }
    if (process->call.ended) {
        world->right &= shm_is_right(&process->call, nranks, rank);
        shm_free_call(&process->call);
        process->ended++;
    }
    if (process->ended == ops && flash_shm_is_left(process->shm)) {
        flash_shm_destroy(process->shm);
        process->shm = NULL;
        process->comm++;
        process->started = UINT32_MAX;
    }
}

static bool run_comms(uint64_t *random)
{
    world_t *world = calloc(1, sizeof(*world));
    uint32_t done = 0;
    bool right;

    world->memory = shm_sides(PROCESSES);
    world->right = true;
    for (uint32_t comm = 0; comm < COMMS; comm++) {
        while (world->members[comm] == 0 || size_of(world, comm) < 2) {
            world->members[comm] = prng_below(random, 1u << PROCESSES);
        }
        for (int k = 0; k < 3; k++) {
            world->plans[comm][k] = shm_plan(random, size_of(world, comm));
        }
    }
    for (uint32_t k = 0; k < PROCESSES; k++) {
        world->processes[k].started = UINT32_MAX;
    }
    for (uint64_t steps = 0; done < PROCESSES && steps < 10000000; steps++) {
        step(world, prng_below(random, PROCESSES), random);
        done = 0;
        for (uint32_t k = 0; k < PROCESSES; k++) {
            done += world->processes[k].comm == COMMS;
        }
    }
    right = world->right && done == PROCESSES;
    for (uint32_t k = 0; k < PROCESSES; k++) {
        flash_shm_destroy(world->processes[k].shm);
    }
    free(world->memory);
    free(world);
    return right;
}

/* --------------------------------------------------------------------- threads */

typedef struct thread {
    pthread_t id;
    uint32_t rank;
    flash_shm_t *shm;
    const shm_plan_t *plans;
    bool right;
} thread_t;

static void *run_thread(void *arg)
{
    thread_t *thread = arg;

    thread->right = true;
    for (uint32_t k = 0; k < OPS; k++) {
        shm_call_t call = {.started = true};
        flash_op_params_t params = shm_params(&call, &thread->plans[k], N, thread->rank);

        flash_shm_start(thread->shm, &call.op, &params, READ_ABOVE);
        while (!call.ended) {
            if (!flash_shm_progress(thread->shm)) {
                sched_yield();
            }
            shm_collect(thread->shm);
        }
        thread->right &= shm_is_right(&call, N, thread->rank);
        shm_free_call(&call);
    }
    return NULL;
}

static bool run_threads(uint64_t *random)
{
    flash_shm_side_t *memory = shm_sides(N), *sides[N];
    thread_t threads[N];
    shm_plan_t plans[OPS];
    bool right = true;

    for (uint32_t rank = 0; rank < N; rank++) {
        sides[rank] = &memory[rank];
    }
    for (uint32_t k = 0; k < OPS; k++) {
        plans[k] = shm_plan(random, N);
    }
    for (uint32_t rank = 0; rank < N; rank++) {
        threads[rank] =
            (thread_t){.rank = rank, .shm = flash_shm_create(N, rank, sides), .plans = plans};
        flash_shm_read_by(threads[rank].shm, shm_read, NULL);
        pthread_create(&threads[rank].id, NULL, run_thread, &threads[rank]);
    }
    for (uint32_t rank = 0; rank < N; rank++) {
        pthread_join(threads[rank].id, NULL);
        right &= threads[rank].right;
        flash_shm_destroy(threads[rank].shm);
    }
    free(memory);
    return right;
}

int main(int argc, char **argv)
{
    uint64_t random = tap_seed(argc, argv);
    uint32_t stride = tap_stride();

    for (uint32_t nranks = 2; nranks <= SHM_RANKS; nranks++) {
        bool copied = true, read = true;

        for (uint32_t k = 0; k < 20; k += stride) {
            copied &= run_one(nranks, SIZE_MAX, &random);
            read &= run_one(nranks, k % 2 == 0 ? 0 : READ_ABOVE, &random);
        }
        ok(copied, "%u ranks: random operations, in any interleaving", nranks);
        ok(read, "%u ranks: the same, allgathers read where they are", nranks);
    }
    for (int k = 0; k < 5; k++) {
        ok(run_comms(&random), "channels that come and go on the same sides, slow readers");
    }
    ok(run_threads(&random), "threads that share the sides");
    return tap_done();
}
