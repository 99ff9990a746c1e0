/*
 * sim_work.c: what is done for an operation: its callbacks, sums and copies.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"
#include "prng.h"
#include "sim_instance.h"

/* How many blocks it produces or consumes. */
static uint32_t blocks(const sim_instance_t *in, bool produces)
{
    flash_kind_t kind = in->spec->kind;
    bool one = flash_schedule_chains(kind) ||
               (produces ? flash_schedule_gathers(kind) : flash_schedule_scatters(kind));
    bool comes_from_root = kind == FLASH_BCAST || kind == FLASH_SCATTER;

    if (flash_schedule_has_root(kind) && produces == comes_from_root && !sim_is_root(in)) {
        return 0; /* it is the root's alone */
    }
    return one ? 1 : in->sim->nranks;
}

/* Makes the next callback's that of a piece, past empty blocks. */
static void find_next(const sim_instance_t *in, bool produces, sim_next_t *next)
{
    while (next->at < blocks(in, produces)) {
        uint32_t block = sim_block(in->sim, in->spec->kind, produces, in->rank, next->at);

        if (next->piece < flash_schedule_split(&in->schedule, block).pieces) {
            return;
        }
        next->piece = 0;
        next->at++;
    }
}

static bool has_called(sim_instance_t *in, bool produces)
{
    sim_next_t *next = produces ? &in->produce : &in->consume;

    find_next(in, produces, next);
    return !sim_spec_calls(in->spec, produces) || next->at == blocks(in, produces);
}

bool sim_instance_called(sim_instance_t *in)
{
    return has_called(in, true) && has_called(in, false);
}

static void check_piece(sim_instance_t *in, const flash_piece_t *piece)
{
    sim_next_t *next = piece->produces ? &in->produce : &in->consume;
    uint32_t block, rank;
    flash_split_t split;
    flash_range_t range;

    find_next(in, piece->produces, next);
    if (next->at == blocks(in, piece->produces)) {
        sim_complain(in->sim, "op %u rank %u: a callback after the last", in->index, in->rank);
        return;
    }
    if (!piece->produces && !has_called(in, true)) {
        sim_complain(in->sim, "op %u rank %u: consumes before all is produced", in->index,
                     in->rank);
    }
    block = sim_block(in->sim, in->spec->kind, piece->produces, in->rank, next->at);
    rank = flash_schedule_chains(in->spec->kind) ? sim_root(in->sim, in->spec)
                                                 : block % in->sim->nranks;
    split = flash_schedule_split(&in->schedule, block);
    range = flash_split_piece(&split, next->piece);
    if (piece->block != rank || piece->piece != next->piece || piece->pieces != split.pieces ||
        piece->offset != range.offset || piece->count != range.count ||
        piece->displ != flash_schedule_displ(&in->schedule, block)) {
        sim_complain(in->sim, "op %u rank %u: callback for %u/%u, expected %u/%u", in->index,
                     in->rank, piece->block, piece->piece, rank, next->piece);
    }
    next->piece++;
}

static bool is_users(const sim_instance_t *in, const uint64_t *address)
{
    return (address >= in->output && address < in->output + in->output_count) ||
           (address >= in->input && address < in->input + in->input_count) ||
           (address >= in->pieces && address < in->pieces + in->piece_elements) ||
           (address >= in->store && address < in->store + in->store_elements);
}

static void copy_failed_rank(const sim_instance_t *in, const flash_work_t *work)
{
    const unsigned char *from = work->in;
    unsigned char *to = work->inout;

    if (!sim_has_device_scratch(in)) {
        sim_complain(in->sim, "op %u rank %u: stages a part of an element", in->index, in->rank);
    }
    for (size_t k = 0; k < work->size; k++) {
        to[k] = (unsigned char) ~from[k];
    }
}

int sim_instance_copy(sim_instance_t *in, const flash_work_t *work)
{
    const uint64_t *from = work->in;
    uint64_t *to = work->inout;
    bool stages = (work->kind & FLASH_WORK_STAGE) != 0;
    bool differ = stages
                      ? !sim_has_device_scratch(in)
                      : sim_instance_is_on_device(in, true) != sim_instance_is_on_device(in, false);

    if (work->size % SIM_ELEMENT != 0) {
        copy_failed_rank(in, work);
        return FLASH_OK;
    }
    if (stages && ++in->stages == in->spec->fail_stage && in->rank == in->spec->fail_rank) {
        return SIM_ERR_STAGE;
    }
    if (stages && is_users(in, from) == is_users(in, to)) {
        sim_complain(in->sim, "op %u rank %u: does not stage between user and scratch", in->index,
                     in->rank);
    }
    for (size_t k = 0; k < work->size / SIM_ELEMENT; k++) {
        to[k] = differ ? ~from[k] : from[k];
    }
    return FLASH_OK;
}

bool sim_instance_adds_on_device(const sim_instance_t *in, const flash_work_t *work)
{
    return work->kind == FLASH_WORK_COMBINE && sim_makes_device_sums(in);
}

/* Whether it is to fail: the wide sums that are begun or ended count, too. */
static bool add_fails(sim_instance_t *in)
{
    return ++in->combines == in->spec->fail_combine && in->rank == in->spec->fail_rank;
}

/*
 * To the scratch, or in the last step, right to where it belongs. Bounded: all of it is on a
 * device.
 */
int sim_instance_add_on_device(sim_instance_t *in, const flash_work_t *work)
{
    const uint64_t *from = work->in, *with = work->inout;
    uint64_t *to = work->out;
    bool bounded = work->op->bounded;
    bool ends = is_users(in, to), on_device = sim_has_device_scratch(in) || bounded;

    if (!is_users(in, from) || is_users(in, with) != bounded || (!ends && to != with)) {
        sim_complain(in->sim, "op %u rank %u: a device sum of other memory", in->index, in->rank);
    }
    if (add_fails(in)) {
        return SIM_ERR_ADD;
    }
    for (size_t k = 0; k < work->count; k++) {
        uint64_t sum = sim_combine(in->spec->mix, ~from[k], on_device ? ~with[k] : with[k]);

        to[k] = ends || on_device ? ~sum : sum;
    }
    return FLASH_OK;
}

static void consume(sim_instance_t *in, const flash_piece_t *piece)
{
    uint64_t *data = piece->data;
    bool own = piece->block == in->rank && !flash_schedule_reduces(in->spec->kind);
    bool of_input = own && data == sim_input_of(in, in->rank) + piece->offset;

    if (data != sim_output_of(in, piece->block) + piece->offset && !of_input) {
        sim_complain(in->sim, "op %u rank %u: the data of block %u is not in its place", in->index,
                     in->rank, piece->block);
    }
    for (size_t k = 0; k < piece->count; k++) {
        uint64_t right = sim_expected(in, piece->block, piece->offset + k);

        if (data[k] != sim_stored(in, of_input, right)) {
            sim_complain(in->sim, "op %u rank %u: wrong data in the callback for %u/%u", in->index,
                         in->rank, piece->block, piece->piece);
            return;
        }
        if (sim_changed(in, right) != right) {
            data[k] = sim_stored(in, of_input, sim_changed(in, right));
        }
    }
}

static void check_produced_place(sim_instance_t *in, const flash_piece_t *piece)
{
    const uint64_t *data = piece->data;
    bool wrong = flash_schedule_reduces(in->spec->kind)
                     ? piece->on_device != is_users(in, data) ||
                           piece->on_device != sim_instance_is_on_device(in, true)
                     : data != sim_input_of(in, piece->block) + piece->offset;

    if (wrong) {
        sim_complain(in->sim, "op %u rank %u: a producer's piece in other memory", in->index,
                     in->rank);
    }
}

void sim_instance_compute(sim_instance_t *in, const flash_piece_t *piece)
{
    uint64_t *data = piece->data;

    if (!piece->produces) {
        consume(in, piece);
        return;
    }
    check_produced_place(in, piece);
    for (size_t k = 0; k < piece->count; k++) {
        data[k] =
            sim_stored(in, true, sim_contribution(in, in->rank, piece->block, piece->offset + k));
    }
}

/* The same in each run. */
static bool will_pend(const sim_instance_t *in)
{
    uint64_t random = in->sim->seed + in->callbacks * 1000 + in->rank;

    return prng_percent(&random, in->spec->pending);
}

int sim_on_callback(void *arg, const flash_piece_t *piece)
{
    sim_instance_t *in = arg;
    int status = FLASH_OK;

    check_piece(in, piece);
    if (++in->callbacks == in->spec->fail_callback && in->rank == in->spec->fail_rank) {
        status = SIM_ERR_CALL;
    }
    if (will_pend(in)) {
        sim_hold_pending(in, piece, status);
        return FLASH_PENDING;
    }
    if (status == FLASH_OK) {
        sim_instance_compute(in, piece);
    }
    in->call_failed |= status != FLASH_OK;
    return status;
}

int sim_on_combine(void *arg, const void *in_data, void *inout_data, size_t count)
{
    sim_instance_t *in = arg;
    const uint64_t *from = in_data;
    uint64_t *to = inout_data;

    if (add_fails(in)) {
        return SIM_ERR_ADD;
    }
    for (size_t k = 0; k < count; k++) {
        to[k] = sim_combine(in->spec->mix, from[k], to[k]);
    }
    return FLASH_OK;
}

static void set_wide(uint64_t *wide, uint64_t element)
{
    wide[0] = element;
    wide[1] = ~element;
}

static uint64_t get_wide(sim_instance_t *in, const uint64_t *wide)
{
    if (wide[1] != ~wide[0]) {
        sim_complain(in->sim, "op %u rank %u: a wide sum that none has begun", in->index, in->rank);
    }
    return wide[0];
}

int sim_on_widen(void *arg, const void *in_data, void *wide_data, size_t count)
{
    sim_instance_t *in = arg;
    const uint64_t *from = in_data;
    uint64_t *to = wide_data;

    if (add_fails(in)) {
        return SIM_ERR_ADD;
    }
    for (size_t k = 0; k < count; k++) {
        set_wide(to + 2 * k, from[k]);
    }
    return FLASH_OK;
}

int sim_on_combine_wide(void *arg, const void *in_data, void *wide_data, size_t count)
{
    sim_instance_t *in = arg;
    const uint64_t *from = in_data;
    uint64_t *to = wide_data;

    if (add_fails(in)) {
        return SIM_ERR_ADD;
    }
    for (size_t k = 0; k < count; k++) {
        set_wide(to + 2 * k, sim_combine(in->spec->mix, from[k], get_wide(in, to + 2 * k)));
    }
    return FLASH_OK;
}

int sim_on_narrow(void *arg, const void *wide_data, void *out_data, size_t count)
{
    const uint64_t *from = wide_data;
    uint64_t *to = out_data;

    if (add_fails(arg)) {
        return SIM_ERR_ADD;
    }
    for (size_t k = 0; k < count; k++) {
        to[k] = get_wide(arg, from + 2 * k);
    }
    return FLASH_OK;
}
