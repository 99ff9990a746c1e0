/*
 * sim_instance.c: one operation on one rank: its buffers, its callbacks, its right result.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "sim.h"

#define PAD    64 /* bytes of canary around a buffer; keeps the alignment */
#define CANARY 0xc7

uint32_t sim_block(const sim_t *sim, flash_kind_t kind, uint32_t rank, uint32_t step)
{
    uint32_t behind = kind == FLASH_ALLGATHER ? step : step + 1; /* at most nranks */

    return sim_neighbour(sim, rank, sim->nranks - behind);
}

/* --- layout --- */

void sim_layout_create(sim_layout_t *layout, const sim_shape_t *shape, uint32_t nranks)
{
    size_t at = 0;

    *layout = (sim_layout_t){.shape = shape,
                             .counts = malloc(nranks * sizeof(*layout->counts)),
                             .displs = malloc(nranks * sizeof(*layout->displs)),
                             .gap = shape->scattered ? 3 : 0};
    for (uint32_t k = 0; k < nranks; k++) {
        uint32_t block = shape->scattered ? nranks - 1 - k : k;

        layout->counts[block] = shape->counts == NULL ? shape->count : shape->counts[block];
        layout->displs[block] = (ptrdiff_t) at;
        at += layout->counts[block] + layout->gap;
    }
    layout->span = at;
}

void sim_layout_destroy(sim_layout_t *layout)
{
    free(layout->counts);
    free(layout->displs);
}

/* --- data --- */

/* What `rank` contributes to an element. For AG, the block is the rank's own. */
static uint64_t contribution(const sim_instance_t *in, uint32_t rank, uint32_t block, size_t k)
{
    return prng_mix(in->sim->seed + ((uint64_t) in->index << 56) + ((uint64_t) rank << 44) +
                    ((uint64_t) block << 32) + k);
}

/* Commutative, and not idempotent; `mix` is not associative either, so that the order shows. */
static uint64_t combine(bool mix, uint64_t a, uint64_t b)
{
    return mix ? prng_mix(a + 1) + prng_mix(b + 1) : a + b;
}

/* The element of the result: the contributions of the ranks to the right of the block's, it last.
 */
static uint64_t expected(const sim_instance_t *in, uint32_t block, size_t k)
{
    uint32_t n = in->sim->nranks;
    uint64_t sum;

    if (in->spec->kind == FLASH_ALLGATHER) {
        return contribution(in, block, block, k);
    }
    sum = contribution(in, sim_neighbour(in->sim, block, 1), block, k);
    for (uint32_t i = 2; i <= n; i++) {
        sum = combine(in->spec->mix, sum,
                      contribution(in, sim_neighbour(in->sim, block, i), block, k));
    }
    return sum;
}

static size_t guarded_bytes(size_t count)
{
    return (count * SIM_ELEMENT + 2 * PAD + PAD - 1) / PAD * PAD;
}

size_t sim_instance_output_bytes(const sim_instance_t *in)
{
    return guarded_bytes(in->output_count);
}

static unsigned char *guarded(size_t count, uint64_t **first)
{
    size_t bytes = guarded_bytes(count);
    unsigned char *memory = aligned_alloc(PAD, bytes);

    memset(memory, CANARY, bytes);
    *first = (uint64_t *) (memory + PAD);
    return memory;
}

static bool untouched(const unsigned char *memory, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        if (memory[k] != CANARY) {
            return false;
        }
    }
    return true;
}

static bool guards_hold(const unsigned char *memory, size_t count)
{
    return untouched(memory, PAD) && untouched(memory + PAD + count * SIM_ELEMENT, PAD);
}

/* --- callbacks --- */

static flash_split_t split_of(const sim_instance_t *in, uint32_t step)
{
    uint32_t block = sim_block(in->sim, in->spec->kind, in->rank, step);

    return flash_schedule_split(&in->schedule, block);
}

/* Makes in->step and in->piece those of the next callback, past empty blocks. */
static void next_callback(sim_instance_t *in)
{
    while (in->step < in->sim->nranks && in->piece >= split_of(in, in->step).pieces) {
        in->piece = 0;
        in->step++;
    }
}

static flash_split_t own_split(const sim_instance_t *in)
{
    return flash_schedule_split(&in->schedule, in->rank);
}

bool sim_instance_called(sim_instance_t *in)
{
    return (!in->spec->callback || in->step == in->sim->nranks) &&
           (!in->spec->own || in->own_piece == own_split(in).pieces);
}

/* An allgather's own block comes before all others, a reduction's behind them. */
static void check_own_piece(sim_instance_t *in, const flash_piece_t *piece)
{
    bool gather = in->spec->kind == FLASH_ALLGATHER;
    flash_split_t split = own_split(in);
    flash_range_t range = flash_split_piece(&split, in->own_piece);
    const uint64_t *place = (gather ? in->input : in->output) + range.offset;

    if (piece->block != in->rank || piece->piece != in->own_piece ||
        piece->pieces != split.pieces || piece->offset != range.offset ||
        piece->count != range.count || piece->data != place) {
        sim_complain(in->sim, "op %u rank %u: callback for piece %u of the own block, expected %u",
                     in->index, in->rank, piece->piece, in->own_piece);
    }
    if (in->spec->callback && (gather ? in->step != 0 : in->step != in->sim->nranks)) {
        sim_complain(in->sim, "op %u rank %u: the own block's callback out of turn", in->index,
                     in->rank);
    }
}

static void check_piece(sim_instance_t *in, const flash_piece_t *piece)
{
    uint32_t block;
    flash_split_t split;
    flash_range_t range;

    if (in->step == in->sim->nranks) {
        sim_complain(in->sim, "op %u rank %u: a callback after the last", in->index, in->rank);
        return;
    }
    block = sim_block(in->sim, in->spec->kind, in->rank, in->step);
    split = split_of(in, in->step);
    range = flash_split_piece(&split, in->piece);
    if (piece->block != block || piece->piece != in->piece || piece->pieces != split.pieces ||
        piece->offset != range.offset || piece->count != range.count) {
        sim_complain(in->sim, "op %u rank %u: callback for %u/%u, expected %u/%u", in->index,
                     in->rank, piece->block, piece->piece, block, in->piece);
    }
}

/* The input of a reduction with a callback is what that writes. */
bool sim_instance_is_far(const sim_instance_t *in, bool input)
{
    bool gather = in->spec->kind == FLASH_ALLGATHER;

    return input && !(gather && in->spec->in_place) ? in->spec->far_input : in->spec->far_output;
}

/* What an element looks like in the input, or in the output. */
static uint64_t stored(const sim_instance_t *in, bool input, uint64_t element)
{
    return sim_instance_is_far(in, input) ? ~element : element;
}

static bool is_users(const sim_instance_t *in, const uint64_t *address)
{
    return (address >= in->output && address < in->output + in->output_count) ||
           (address >= in->input && address < in->input + in->input_count) ||
           (address >= in->pieces && address < in->pieces + in->piece_elements);
}

static bool makes_far_sums(const sim_instance_t *in)
{
    return in->spec->kind == FLASH_REDUCE_SCATTER && in->spec->far_sums && !in->spec->users &&
           sim_instance_is_far(in, true) && sim_instance_is_far(in, false);
}

static bool has_far_scratch(const sim_instance_t *in)
{
    bool staged = sim_instance_is_far(in, true) || sim_instance_is_far(in, false);

    return (in->spec->far_scratch >> in->rank % 2 & 1) != 0 && staged &&
           (in->spec->kind == FLASH_ALLGATHER || makes_far_sums(in));
}

static void copy_blame(const sim_instance_t *in, const flash_work_t *work)
{
    const unsigned char *from = work->in;
    unsigned char *to = work->inout;

    if (!has_far_scratch(in)) {
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
    bool differ = stages ? !has_far_scratch(in)
                         : sim_instance_is_far(in, true) != sim_instance_is_far(in, false);

    if (work->size % SIM_ELEMENT != 0) {
        copy_blame(in, work);
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

bool sim_instance_adds_far(const sim_instance_t *in, const flash_work_t *work)
{
    return work->kind == FLASH_WORK_COMBINE && makes_far_sums(in);
}

/* To the scratch, or in the last step, right to where it belongs. */
int sim_instance_add_far(sim_instance_t *in, const flash_work_t *work)
{
    const uint64_t *from = work->in, *with = work->inout;
    uint64_t *to = work->out;
    bool ends = is_users(in, to), far = has_far_scratch(in);

    if (!is_users(in, from) || is_users(in, with) || (!ends && to != with)) {
        sim_complain(in->sim, "op %u rank %u: a far sum of other memory", in->index, in->rank);
    }
    if (++in->combines == in->spec->fail_combine && in->rank == in->spec->fail_rank) {
        return SIM_ERR_ADD;
    }
    for (size_t k = 0; k < work->count; k++) {
        uint64_t sum = combine(in->spec->mix, ~from[k], far ? ~with[k] : with[k]);

        to[k] = ends || far ? ~sum : sum;
    }
    return FLASH_OK;
}

static void consume(sim_instance_t *in, const flash_piece_t *piece)
{
    const uint64_t *data = piece->data;
    bool of_input = data != NULL && data == in->input + piece->offset;
    const uint64_t *place = in->output + in->layout->displs[piece->block] + piece->offset;

    if (data != place && !(piece->block == in->rank && of_input)) {
        sim_complain(in->sim, "op %u rank %u: the data of block %u is not in its place", in->index,
                     in->rank, piece->block);
    }
    for (size_t k = 0; k < piece->count; k++) {
        if (data[k] != stored(in, of_input, expected(in, piece->block, piece->offset + k))) {
            sim_complain(in->sim, "op %u rank %u: wrong data in the callback for %u/%u", in->index,
                         in->rank, piece->block, piece->piece);
            return;
        }
    }
}

/* What is made of a sum of the own block. */
static uint64_t changed(const sim_instance_t *in, uint64_t sum)
{
    return in->spec->own && in->spec->kind == FLASH_REDUCE_SCATTER ? sum ^ 0x5a5a : sum;
}

static void compute_own(sim_instance_t *in, const flash_piece_t *piece)
{
    uint64_t *data = piece->data;

    for (size_t k = 0; k < piece->count; k++) {
        size_t at = piece->offset + k;

        if (in->spec->kind == FLASH_ALLGATHER) {
            data[k] = stored(in, true, contribution(in, in->rank, in->rank, at));
            continue;
        }
        if (data[k] != stored(in, false, expected(in, in->rank, at))) {
            sim_complain(in->sim, "op %u rank %u: not the sum in the own block's callback",
                         in->index, in->rank);
            return;
        }
        data[k] = stored(in, false, changed(in, expected(in, in->rank, at)));
    }
}

void sim_instance_compute(sim_instance_t *in, const flash_piece_t *piece)
{
    uint64_t *data = piece->data;

    if (piece->own) {
        compute_own(in, piece);
        return;
    }
    if (in->spec->kind == FLASH_ALLGATHER) {
        consume(in, piece);
        return;
    }
    if (piece->far != is_users(in, data) || piece->far != sim_instance_is_far(in, true)) {
        sim_complain(in->sim, "op %u rank %u: a producer's piece in other memory", in->index,
                     in->rank);
    }
    for (size_t k = 0; k < piece->count; k++) {
        data[k] = stored(in, true, contribution(in, in->rank, piece->block, piece->offset + k));
    }
}

/* The same in each run. */
static bool will_pend(const sim_instance_t *in)
{
    uint64_t random = in->sim->seed + in->callbacks * 1000 + in->rank;

    return prng_percent(&random, in->spec->pending);
}

static int on_callback(void *arg, const flash_piece_t *piece)
{
    sim_instance_t *in = arg;
    int status = FLASH_OK;

    if (piece->own) {
        check_own_piece(in, piece);
        in->own_piece++;
    } else {
        check_piece(in, piece);
        in->piece++;
        next_callback(in);
    }
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

static int on_combine(void *arg, const void *in_data, void *inout_data, size_t count)
{
    sim_instance_t *in = arg;
    const uint64_t *from = in_data;
    uint64_t *to = inout_data;

    if (++in->combines == in->spec->fail_combine && in->rank == in->spec->fail_rank) {
        return SIM_ERR_ADD;
    }
    for (size_t k = 0; k < count; k++) {
        to[k] = combine(in->spec->mix, from[k], to[k]);
    }
    return FLASH_OK;
}

/* --- life --- */

/* Memory, and in it what the rank brings along. */
static void create_buffers(sim_instance_t *in)
{
    const sim_layout_t *layout = in->layout;
    size_t own = layout->counts[in->rank];
    bool gather = in->spec->kind == FLASH_ALLGATHER;
    uint64_t *place;

    in->output_count = gather ? layout->span : own;
    in->output_memory = guarded(in->output_count, &in->output);
    if (gather && in->spec->in_place) {
        in->input = in->output + layout->displs[in->rank];
    } else if (gather || !in->spec->callback) {
        in->input_count = gather ? own : layout->span;
        in->input_memory = guarded(in->input_count, &in->input);
    } else {
        return; /* the callback produces it */
    }
    for (uint32_t block = 0; block < in->sim->nranks; block++) {
        place = gather ? in->input : in->input + layout->displs[block];
        for (size_t k = 0; k < layout->counts[block] && (!gather || block == in->rank); k++) {
            if (!gather || !in->spec->own) { /* else its callback makes it */
                place[k] = stored(in, true, contribution(in, in->rank, block, k));
            }
        }
    }
}

void sim_instance_create(sim_t *sim, uint32_t rank, uint32_t spec)
{
    sim_instance_t *in = &sim->instances[(size_t) rank * sim->nspecs + spec];
    const sim_spec_t *s = &sim->specs[spec];
    const sim_layout_t *layout =
        rank == s->odd_rank ? &sim->odd_layouts[spec] : &sim->layouts[spec];
    const sim_shape_t *shape = layout->shape;

    *in = (sim_instance_t){.sim = sim,
                           .spec = s,
                           .layout = layout,
                           .index = spec,
                           .rank = rank,
                           .status = SIM_UNSTARTED};
    in->schedule = (flash_schedule_t){.kind = s->kind,
                                      .ring = {.nranks = sim->nranks,
                                               .place = sim->places[rank],
                                               .ranks = sim->shuffled ? sim->ring : NULL},
                                      .pieces = shape->pieces,
                                      .row = shape->row,
                                      .segment_elements = shape->segment};
    in->schedule.blocks.count = shape->count;
    if (shape->counts != NULL) {
        in->schedule.blocks.counts = layout->counts;
    }
    if (shape->counts != NULL || shape->scattered) {
        in->schedule.blocks.displs = layout->displs;
    }
    create_buffers(in);
    next_callback(in);
}

void sim_instance_destroy(sim_instance_t *in)
{
    free(in->input_memory);
    free(in->output_memory);
    free(in->pieces);
    free(in->scratch);
    free(in->blames);
}

/* Odd names differ by edge of the ring, even ones are the same all around: both are allowed. */
static uint64_t tag_towards(uint64_t name, uint32_t receiver)
{
    return (name << 12 | (name % 2 == 1 ? receiver : 0)) << FLASH_TAG_SHIFT;
}

flash_op_params_t sim_instance_params(sim_instance_t *in)
{
    const sim_spec_t *s = in->spec;
    uint32_t right = sim_neighbour(in->sim, in->rank, 1);
    uint32_t left = sim_neighbour(in->sim, in->rank, in->sim->nranks - 1);
    flash_op_params_t params = {
        .schedule = in->schedule,
        .element = SIM_ELEMENT,
        .left = fake_net_peer(in->sim->net, in->rank, left),
        .right = fake_net_peer(in->sim->net, in->rank, right),
        .recv_tag = tag_towards(s->name, in->rank),
        .send_tag = tag_towards(s->name, right),
        .depth = s->depth,
        .sends = s->sends,
        .stage_in = sim_instance_is_far(in, true),
        .stage_out = sim_instance_is_far(in, false),
        .combine_far = makes_far_sums(in),
        .scratch_far = has_far_scratch(in),
        .input = in->input,
        .output = in->output,
        .combine = s->kind == FLASH_REDUCE_SCATTER ? on_combine : NULL,
        .combine_arg = in,
        .combine_is_users = s->users,
        .callback = s->callback ? on_callback : NULL,
        .callback_arg = in,
        .own_callback = s->own ? on_callback : NULL,
        .own_callback_arg = in,
        .user = in,
    };

    if (params.stage_in && s->kind == FLASH_REDUCE_SCATTER && s->callback) {
        size_t bytes = flash_op_pieces_size(&params);

        in->pieces = aligned_alloc(PAD, (bytes + PAD) / PAD * PAD);
        in->piece_elements = bytes / SIM_ELEMENT;
        params.pieces = in->pieces;
    }
    if (params.scratch_far) {
        in->scratch = aligned_alloc(PAD, (flash_op_scratch_size(&params) + PAD) / PAD * PAD);
        params.scratch = in->scratch;
        in->blames = malloc(flash_op_blames_size(&params));
        params.blames = in->blames;
    }
    return params;
}

/* --- the end --- */

static void check_gaps(sim_instance_t *in)
{
    const sim_layout_t *layout = in->layout;

    for (uint32_t block = 0; block < in->sim->nranks && layout->gap > 0; block++) {
        const uint64_t *end = in->output + layout->displs[block] + layout->counts[block];

        if (!untouched((const unsigned char *) end, layout->gap * SIM_ELEMENT)) {
            sim_complain(in->sim, "op %u rank %u: wrote past block %u", in->index, in->rank, block);
        }
    }
}

static void check_result(sim_instance_t *in, uint32_t block, const uint64_t *data)
{
    for (size_t k = 0; k < in->layout->counts[block]; k++) {
        if (data[k] != stored(in, false, changed(in, expected(in, block, k)))) {
            sim_complain(in->sim, "op %u rank %u: OK, but element %zu of block %u is wrong",
                         in->index, in->rank, k, block);
            return;
        }
    }
}

void sim_instance_check(sim_instance_t *in)
{
    bool gather = in->spec->kind == FLASH_ALLGATHER;

    if (!guards_hold(in->output_memory, in->output_count) ||
        (in->input_memory != NULL && !guards_hold(in->input_memory, in->input_count))) {
        sim_complain(in->sim, "op %u rank %u: wrote outside a buffer", in->index, in->rank);
    }
    if (gather) {
        check_gaps(in);
    }
    if (in->input_memory != NULL &&
        (!in->spec->own || in->status == FLASH_OK)) { /* nobody writes to an input */
        for (uint32_t block = 0; block < in->sim->nranks; block++) {
            ptrdiff_t at = gather ? 0 : in->layout->displs[block];

            for (size_t k = 0; k < in->layout->counts[block] && (!gather || block == in->rank);
                 k++) {
                if (in->input[at + (ptrdiff_t) k] !=
                    stored(in, true, contribution(in, in->rank, block, k))) {
                    sim_complain(in->sim, "op %u rank %u: the input changed", in->index, in->rank);
                    return;
                }
            }
        }
    }
    if (in->status != FLASH_OK) {
        return;
    }
    for (uint32_t block = 0; block < in->sim->nranks; block++) {
        if (gather) {
            check_result(in, block, in->output + in->layout->displs[block]);
        } else if (block == in->rank) {
            check_result(in, block, in->output);
        }
    }
}
