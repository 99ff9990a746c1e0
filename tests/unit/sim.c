/*
 * sim.c: the moves of a simulation; see sim.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/flash_op.h"
#include "prng.h"
#include "sim.h"

/* Every other seed makes a ring in which the ranks stand in any order. */
static void form_ring(sim_t *sim)
{
    uint64_t random = sim->seed;

    sim->shuffled = prng_mix(sim->seed) % 2 == 0;
    sim->ring = calloc(sim->nranks, sizeof(*sim->ring));
    sim->places = calloc(sim->nranks, sizeof(*sim->places));
    for (uint32_t place = 0; place < sim->nranks; place++) {
        uint32_t other = sim->shuffled ? prng_below(&random, place + 1) : place;

        sim->ring[place] = sim->ring[other];
        sim->ring[other] = place;
    }
    for (uint32_t place = 0; place < sim->nranks; place++) {
        sim->places[sim->ring[place]] = place;
    }
}

bool sim_runs(const sim_t *sim, uint32_t rank)
{
    return sim->alone == SIM_NOBODY || sim->alone == rank;
}

static void create_rank(sim_t *sim, uint32_t rank)
{
    sim->engines[rank] = flash_engine_create(fake_net_transport(sim->net, rank));
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        sim_instance_create(sim, rank, k);
    }
}

static sim_t *create(uint32_t nranks, uint64_t seed, const fake_options_t *options,
                     const sim_spec_t *specs, uint32_t nspecs, uint32_t alone)
{
    sim_t *sim = calloc(1, sizeof(*sim));

    sim->net = fake_net_create(nranks, seed, options);
    sim->options = *options;
    sim->nranks = nranks;
    sim->nspecs = nspecs;
    sim->seed = seed;
    sim->random = ~seed;
    sim->loss.rank = SIM_NOBODY;
    sim->alone = alone;
    form_ring(sim);
    sim->engines = calloc(nranks, sizeof(*sim->engines));
    sim->active = calloc(nranks, sizeof(*sim->active));
    sim->instances = calloc((size_t) nranks * nspecs, sizeof(*sim->instances));
    for (uint32_t k = 0; k < nspecs; k++) {
        sim->specs[k] = specs[k];
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        if (sim_runs(sim, rank)) {
            create_rank(sim, rank);
        }
    }
    return sim;
}

sim_t *sim_create(uint32_t nranks, uint64_t seed, const fake_options_t *options,
                  const sim_spec_t *specs, uint32_t nspecs)
{
    return create(nranks, seed, options, specs, nspecs, SIM_NOBODY);
}

void sim_record(sim_t *sim)
{
    fake_net_record(sim->net);
}

sim_t *sim_create_alone(const sim_t *recorded, uint32_t rank)
{
    sim_t *sim = create(recorded->nranks, recorded->seed, &recorded->options, recorded->specs,
                        recorded->nspecs, rank);

    fake_net_play(sim->net, recorded->net, rank);
    return sim;
}

/* Half way, or after a hang, operations still exist: nothing touches them any more. */
static void abandon(flash_engine_t *engine)
{
    flash_op_t *op;

    while ((op = flash_engine_completed(engine)) != NULL) {
        flash_op_destroy(op);
    }
    while ((op = engine->running.head) != NULL) {
        engine->running.head = op->next_running;
        if (!op->refused) {
            flash_op_free(op);
        }
    }
}

void sim_destroy(sim_t *sim)
{
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        if (sim_runs(sim, rank)) {
            abandon(sim->engines[rank]);
            flash_engine_destroy(sim->engines[rank]);
        }
        for (uint32_t k = 0; k < sim->nspecs; k++) {
            sim_instance_destroy(&sim->instances[(size_t) rank * sim->nspecs + k]);
        }
    }
    free(sim->ring);
    free(sim->places);
    fake_net_destroy(sim->net);
    free(sim->engines);
    free(sim->active);
    free(sim->instances);
    free(sim->held);
    free(sim);
}

void sim_complain(sim_t *sim, const char *what, ...)
{
    va_list args;

    if (sim->problem[0] == '\0') {
        va_start(args, what);
        vsnprintf(sim->problem, sizeof(sim->problem), what, args);
        va_end(args);
    }
}

static sim_instance_t *instance_of(const sim_t *sim, uint32_t rank, uint32_t spec)
{
    return &sim->instances[(size_t) rank * sim->nspecs + spec];
}

uint32_t sim_neighbour(const sim_t *sim, uint32_t rank, uint32_t ahead)
{
    return sim->ring[(sim->places[rank] + ahead) % sim->nranks];
}

int sim_status(const sim_t *sim, uint32_t rank, uint32_t spec)
{
    return instance_of(sim, rank, spec)->status;
}

uint32_t sim_blamed(const sim_t *sim, uint32_t rank, uint32_t spec)
{
    return instance_of(sim, rank, spec)->blamed;
}

bool sim_all_complete(const sim_t *sim)
{
    return sim->complete == (uint64_t) (sim->alone == SIM_NOBODY ? sim->nranks : 1) * sim->nspecs;
}

/* Specs start in order, but those of one name wait for each other. */
bool sim_may_start(sim_t *sim, uint32_t rank, uint32_t spec)
{
    if (!sim_runs(sim, rank)) {
        return false;
    }
    for (uint32_t k = 0; k < spec; k++) {
        int status = sim_status(sim, rank, k);
        bool wait = sim->specs[spec].wait || sim->specs[k].name == sim->specs[spec].name;

        if (status == SIM_UNSTARTED || (status == SIM_UNFINISHED && wait)) {
            return false;
        }
    }
    return sim_status(sim, rank, spec) == SIM_UNSTARTED;
}

/* Of scratch: as much as the bound says, or one segment for each use that there is for them. */
static void check_bound(sim_t *sim, const sim_instance_t *in, const flash_op_t *op)
{
    enum { USES = 3 };
    size_t least = USES * op->segment_bytes, bound = op->params.bound;

    sim->bounded += op->bounded;
    if (op->bounded && flash_op_scratch_size(&op->params) > (bound > least ? bound : least)) {
        sim_complain(sim, "op %u rank %u: more scratch than it may have", in->index, in->rank);
    }
}

/* False if there is no memory for it, as the network's options may say. */
static bool start(sim_t *sim, sim_instance_t *in, const flash_op_params_t *params)
{
    flash_op_t *op = NULL;

    if (flash_op_create(sim->engines[in->rank], params, &op) != FLASH_OK) {
        if (sim->options.failure != FAKE_FAIL_RESERVE || sim->options.fail_rank != in->rank) {
            sim_complain(sim, "op %u rank %u: cannot be created", in->index, in->rank);
        }
        return false;
    }
    if (flash_op_user(op) != in) {
        sim_complain(sim, "op %u rank %u: flash_op_user() is wrong", in->index, in->rank);
    }
    if (op->scratch_size > 0) { /* what nobody wrote is the same in each run */
        memset(op->scratch, SIM_UNWRITTEN, op->scratch_size);
    }
    if (op->near_size > 0) {
        memset(op->near, SIM_UNWRITTEN, op->near_size);
    }
    check_bound(sim, in, op);
    flash_op_start(op);
    return true;
}

void sim_start(sim_t *sim, uint32_t rank, uint32_t spec)
{
    sim_instance_t *in = instance_of(sim, rank, spec);
    flash_op_params_t params = sim_instance_params(in);
    bool refuses = in->spec->refuses && rank == in->spec->fail_rank;

    in->status = SIM_UNFINISHED;
    sim->active[rank]++;
    if ((refuses || !start(sim, in, &params)) &&
        !flash_engine_refuse(sim->engines[rank], &params)) {
        sim_complain(sim, "op %u rank %u: cannot be refused", spec, rank);
    }
}

static void complete(sim_t *sim, uint32_t rank, flash_op_t *op)
{
    sim_instance_t *in = flash_op_user(op);

    if (in->rank != rank || in->status != SIM_UNFINISHED) {
        sim_complain(sim, "rank %u: an operation completed twice, or elsewhere", rank);
        return;
    }
    in->status = flash_op_status(op);
    in->blamed = flash_op_blamed(op);
    if (in->works > 0) {
        sim_complain(sim, "op %u rank %u: complete while its work runs", in->index, rank);
    }
    if (in->status == FLASH_OK && !sim_instance_called(in)) {
        sim_complain(sim, "op %u rank %u: complete before its callbacks", in->index, rank);
    }
    sim_instance_check(in); /* now: later the buffers are the caller's again */
    flash_op_destroy(op);
    sim->active[rank]--;
    sim->complete++;
}

bool sim_drain(sim_t *sim, uint32_t rank)
{
    uint64_t before = sim->complete;
    flash_op_t *op;

    while ((op = flash_engine_completed(sim->engines[rank])) != NULL) {
        complete(sim, rank, op);
    }
    if (flash_engine_active(sim->engines[rank]) != sim->active[rank]) {
        sim_complain(sim, "rank %u: %zu operations active, expected %u", rank,
                     flash_engine_active(sim->engines[rank]), sim->active[rank]);
    }
    return sim->complete > before;
}

bool sim_progress(sim_t *sim, uint32_t rank)
{
    return flash_engine_progress(sim->engines[rank]) > 0;
}

static void check_taken(sim_t *sim, const flash_work_t *work, uint32_t rank, unsigned kinds)
{
    sim_instance_t *in = flash_op_user(work->op);

    if ((work->kind & kinds) == 0) {
        sim_complain(sim, "rank %u: took work that was not asked for", rank);
    }
    if ((work->kind & (FLASH_WORK_COMBINE | FLASH_WORK_USERS_COMBINE)) != 0 &&
        (work->kind == FLASH_WORK_USERS_COMBINE) != in->spec->users) {
        sim_complain(sim, "rank %u: took the user's work for its own, or its own for the user's",
                     rank);
    }
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0 &&
        (work->kind == FLASH_WORK_CALLBACK_APART) != in->spec->apart) {
        sim_complain(sim, "rank %u: a callback for another thread", rank);
    }
    if (in->rank != rank || in->status != SIM_UNFINISHED) {
        sim_complain(sim, "rank %u: work of an operation that is complete", rank);
    }
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0) {
        if (in->in_callback) {
            sim_complain(sim, "op %u rank %u: two callbacks at a time", in->index, rank);
        }
        if (in->call_failed) {
            sim_complain(sim, "op %u rank %u: a callback after one that failed", in->index, rank);
        }
        in->in_callback = true;
    }
    in->works++;
}

/* The same in each order of moves: a segment is combined once, a piece called back for once. */
static uint64_t held_name(const sim_held_t *held)
{
    const sim_instance_t *in = held->pending;
    const flash_work_t *work = &held->work;

    if (in != NULL) {
        return (uint64_t) in->index << 56 | UINT64_C(2) << 48 | held->piece.number;
    }
    in = flash_op_user(work->op);
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0) {
        return (uint64_t) in->index << 56 | UINT64_C(1) << 48 | work->piece.number;
    }
    if (work->kind == FLASH_WORK_COPY) { /* what is left says which part it is */
        return (uint64_t) in->index << 56 | UINT64_C(3) << 48 | work->op->uncopied;
    }
    if ((work->kind & FLASH_WORK_STAGE) != 0) {
        return (uint64_t) in->index << 56 | (uint64_t) work->kind << 48 |
               (uint64_t) work->slot->staging << 44 | (uint64_t) work->slot->step << 24 |
               work->slot->segment;
    }
    return (uint64_t) in->index << 56 | (uint64_t) work->slot->step << 24 | work->slot->segment;
}

static void hold(sim_t *sim, sim_held_t *held)
{
    held->name = held_name(held);
    if (sim->nheld == sim->held_room) {
        sim->held_room = 2 * sim->held_room + 8;
        sim->held = realloc(sim->held, sim->held_room * sizeof(*sim->held));
    }
    sim->held[sim->nheld++] = *held;
}

bool sim_take(sim_t *sim, uint32_t rank, unsigned kinds)
{
    sim_held_t held = {.rank = rank};

    if (!flash_engine_take(sim->engines[rank], kinds, &held.work)) {
        return false;
    }
    check_taken(sim, &held.work, rank, kinds);
    hold(sim, &held);
    return true;
}

void sim_hold_pending(sim_instance_t *in, const flash_piece_t *piece, int status)
{
    sim_held_t held = {
        .rank = in->rank, .pending = in, .piece = *piece, .ran = true, .status = status};

    in->works++;
    hold(in->sim, &held);
}

void sim_run_held(sim_t *sim, size_t k)
{
    const flash_work_t *work = &sim->held[k].work;
    int status;

    if (!sim->held[k].ran) {
        if ((work->kind & (FLASH_WORK_STAGE | FLASH_WORK_COPY)) != 0) {
            status = sim_instance_copy(flash_op_user(work->op), work);
        } else if (sim_instance_adds_far(flash_op_user(work->op), work)) {
            status = sim_instance_add_far(flash_op_user(work->op), work);
        } else {
            status = flash_work_run(work); /* may hold one more, elsewhere then */
        }
        sim->held[k].status = status;
        sim->held[k].ran = true;
    }
}

/* Whether the callback that said so has returned or not. */
static void end_pending(sim_t *sim, const sim_held_t *held)
{
    sim_instance_t *in = held->pending;

    if (held->status == FLASH_OK) {
        sim_instance_compute(in, &held->piece);
    }
    in->call_failed |= held->status != FLASH_OK;
    in->works--;
    if (!flash_engine_end_pending(held->piece.op, held->piece.number, held->status)) {
        sim_complain(sim, "op %u rank %u: a piece is not pending", in->index, in->rank);
    }
    if (flash_engine_end_pending(held->piece.op, held->piece.number, FLASH_OK) ||
        flash_engine_end_pending(held->piece.op, held->piece.number + FLASH_MAX_PENDING,
                                 FLASH_OK)) {
        sim_complain(sim, "op %u rank %u: a piece can end that is not pending", in->index,
                     in->rank);
    }
}

void sim_finish_held(sim_t *sim, size_t k)
{
    sim_held_t held;
    sim_instance_t *in;

    sim_run_held(sim, k);
    held = sim->held[k];
    sim->held[k] = sim->held[--sim->nheld];
    if (held.pending != NULL) {
        end_pending(sim, &held);
        return;
    }
    in = flash_op_user(held.work.op);
    in->works--;
    if ((held.work.kind & FLASH_WORK_CALLBACKS) != 0) {
        in->in_callback = false;
    }
    flash_engine_finish(&held.work, held.status);
}

void sim_check_contract(sim_t *sim)
{
    const char *first;

    if (fake_net_violations(sim->net, &first) > 0) {
        sim_complain(sim, "contract of the transport: %s", first);
    }
}

bool sim_exchanges_with_all(const sim_t *sim)
{
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        if (flash_schedule_exchanges(sim->specs[k].kind)) {
            return true;
        }
    }
    return false;
}

static void check_rank_end(sim_t *sim, uint32_t rank)
{
    flash_work_t work;

    if (flash_engine_take(sim->engines[rank], SIM_ALL_WORK, &work) ||
        flash_engine_active(sim->engines[rank]) != 0 || sim_progress(sim, rank) ||
        flash_engine_completed(sim->engines[rank]) != NULL) {
        sim_complain(sim, "rank %u: the engine is not at rest at the end", rank);
    }
    if (fake_net_stats(sim->net, rank).peers > 1 && !sim_exchanges_with_all(sim)) {
        sim_complain(sim, "rank %u: sent to more peers than it has", rank);
    }
}

void sim_check_end(sim_t *sim)
{
    sim_check_contract(sim);
    if (!sim_all_complete(sim)) {
        sim_complain(sim, "only %llu operations complete", (unsigned long long) sim->complete);
        return;
    }
    if (sim->loss.rank == SIM_NOBODY && fake_net_leftovers(sim->net) > 0) {
        sim_complain(sim, "%zu messages or receives left over", fake_net_leftovers(sim->net));
    }
    for (uint32_t rank = 0; rank < sim->nranks && sim->loss.rank == SIM_NOBODY; rank++) {
        if (sim_runs(sim, rank)) {
            check_rank_end(sim, rank);
        }
    }
}

static void describe_shape(const char *name, const sim_shape_t *shape, uint32_t nranks)
{
    printf("#     %s: pieces %u, row %zu, segment %zu to %zu%s, counts", name, shape->pieces,
           shape->row, shape->segment, shape->longest, shape->scattered ? ", scattered" : "");
    for (uint32_t block = 0; block < (shape->counts != NULL && nranks < 20 ? nranks : 0); block++) {
        printf(" %zu", shape->counts[block]);
    }
    if (shape->counts == NULL) {
        printf(" %zu each", shape->count);
    }
    printf("\n");
}

void sim_describe(const sim_t *sim)
{
    printf("#   %s\n#   %u ranks, seed %#llx\n",
           sim->problem[0] != '\0' ? sim->problem : "no problem", sim->nranks,
           (unsigned long long) sim->seed);
    if (sim->options.failure != FAKE_FAIL_NONE) {
        printf("#   transport failure %d, rank %u, call %llu\n", (int) sim->options.failure,
               sim->options.fail_rank, (unsigned long long) sim->options.fail_nth);
    }
    if (sim->loss.rank != SIM_NOBODY) {
        printf("#   rank %u is lost after turn %llu\n", sim->loss.rank,
               (unsigned long long) sim->loss.turn);
    }
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        const sim_spec_t *s = &sim->specs[k];

        printf("#   op %u: %s, depth %u, sends %u, pending %u, name %llu%s%s%s%s%s%s%s\n", k,
               sim_kinds[s->kind], s->depth, s->sends, s->pending, (unsigned long long) s->name,
               s->callback ? ", callback" : "", s->other ? ", other callback" : "",
               s->in_place ? ", in place" : "", s->mix ? ", mix" : "", s->users ? ", user's" : "",
               s->apart ? ", apart" : "", s->wait ? ", waits" : "");
        printf("#     input %s, output %s, sums %s, scratch %u\n", s->far_input ? "far" : "near",
               s->far_output ? "far" : "near", s->far_sums ? "far" : "near", s->far_scratch);
        printf("#     bound %u on ranks %u, near ranks %u\n", s->bound, s->bounded, s->near);
        describe_shape("shape", &s->shape, sim->nranks);
        if (s->odd_rank != SIM_NOBODY) {
            printf("#     on rank %u:\n", s->odd_rank);
            describe_shape("shape", &s->odd_shape, sim->nranks);
        }
        if (s->fail_rank != SIM_NOBODY) {
            printf("#     rank %u %s in callback %llu, combine %llu, stage %llu\n", s->fail_rank,
                   s->refuses ? "refuses, or fails" : "fails",
                   (unsigned long long) s->fail_callback, (unsigned long long) s->fail_combine,
                   (unsigned long long) s->fail_stage);
        }
        printf("#     statuses");
        for (uint32_t rank = 0; rank < sim->nranks && rank < 32; rank++) {
            printf(" %d", sim_status(sim, rank, k));
        }
        printf("\n");
    }
}

bool sim_runs_well(sim_t *sim)
{
    bool well;

    sim_run_random(sim);
    sim_check_end(sim);
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        for (uint32_t rank = 0; rank < sim->nranks; rank++) {
            if (sim_status(sim, rank, k) != FLASH_OK) {
                sim_complain(sim, "op %u rank %u: status %d", k, rank, sim_status(sim, rank, k));
            }
        }
    }
    well = sim->problem[0] == '\0';
    if (!well) {
        sim_describe(sim);
    }
    return well;
}
