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

const char *const sim_kinds[FLASH_KINDS] = {[FLASH_ALLGATHER] = "allgather",
                                            [FLASH_REDUCE_SCATTER] = "reduce-scatter",
                                            [FLASH_ALLREDUCE] = "allreduce",
                                            [FLASH_ALLTOALL] = "all-to-all"};

bool sim_reduces(flash_kind_t kind)
{
    return kind == FLASH_REDUCE_SCATTER || kind == FLASH_ALLREDUCE;
}

bool sim_spec_calls(const sim_spec_t *spec, bool produces)
{
    return produces == sim_reduces(spec->kind) ? spec->callback : spec->other;
}

uint32_t sim_block(const sim_t *sim, flash_kind_t kind, bool produces, uint32_t rank, uint32_t at)
{
    if (produces && kind == FLASH_ALLTOALL) {
        return sim->nranks + sim_neighbour(sim, rank, at + 1);
    }
    return sim_neighbour(sim, rank, sim->nranks - (produces && sim_reduces(kind) ? at + 1 : at));
}

/* How many blocks it produces or consumes. */
static uint32_t blocks(const sim_instance_t *in, bool produces)
{
    flash_kind_t of_one = produces ? FLASH_ALLGATHER : FLASH_REDUCE_SCATTER;

    return in->spec->kind == of_one ? 1 : in->sim->nranks;
}

/* --- layout --- */

static size_t count_of(const sim_shape_t *shape, uint32_t block)
{
    return shape->counts == NULL ? shape->count : shape->counts[block];
}

static sim_layout_t layout_of(const sim_shape_t *shape, uint32_t nranks)
{
    return (sim_layout_t){.counts = malloc(nranks * sizeof(size_t)),
                          .displs = malloc(nranks * sizeof(ptrdiff_t)),
                          .gap = shape->scattered ? 3 : 0};
}

/* With its counts there. */
static void place_blocks(sim_layout_t *layout, const sim_shape_t *shape, uint32_t nranks)
{
    size_t at = 0;

    for (uint32_t k = 0; k < nranks; k++) {
        uint32_t block = shape->scattered ? nranks - 1 - k : k;

        layout->displs[block] = (ptrdiff_t) at;
        at += layout->counts[block] + layout->gap;
    }
    layout->span = at;
}

/* A2A: any mix of the counts, so that what a rank sends differs from what it receives. */
static void create_layouts(sim_instance_t *in, const sim_shape_t *shape)
{
    uint32_t n = in->sim->nranks;
    bool pairs = in->spec->kind == FLASH_ALLTOALL;

    in->in_layout = layout_of(shape, n);
    in->out_layout = layout_of(shape, n);
    for (uint32_t rank = 0; rank < n; rank++) {
        in->in_layout.counts[rank] = count_of(shape, pairs ? (2 * rank + in->rank) % n : rank);
        in->out_layout.counts[rank] = count_of(shape, pairs ? (2 * in->rank + rank) % n : rank);
    }
    place_blocks(&in->in_layout, shape, n);
    place_blocks(&in->out_layout, shape, n);
}

static flash_blocks_t blocks_by(const sim_layout_t *layout, const sim_shape_t *shape)
{
    flash_blocks_t made = {.count = shape->count};

    if (shape->counts != NULL) {
        made.counts = layout->counts;
    }
    if (shape->counts != NULL || shape->scattered) {
        made.displs = layout->displs;
    }
    return made;
}

/* --- data --- */

/* What `rank` contributes to an element. For AG, the block is the rank's own; for A2A, that of the
 * receiver. */
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

/* The element of the result: of a reduction, the contributions of the ranks to the right of the
 * block's, it last. */
static uint64_t expected(const sim_instance_t *in, uint32_t block, size_t k)
{
    uint32_t n = in->sim->nranks;
    uint64_t sum;

    if (in->spec->kind == FLASH_ALLGATHER) {
        return contribution(in, block, block, k);
    }
    if (in->spec->kind == FLASH_ALLTOALL) {
        return contribution(in, block, in->rank, k);
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
    uint32_t n = in->sim->nranks, block;
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
    split = flash_schedule_split(&in->schedule, block);
    range = flash_split_piece(&split, next->piece);
    if (piece->block != block % n || piece->piece != next->piece || piece->pieces != split.pieces ||
        piece->offset != range.offset || piece->count != range.count ||
        piece->displ != flash_schedule_displ(&in->schedule, block)) {
        sim_complain(in->sim, "op %u rank %u: callback for %u/%u, expected %u/%u", in->index,
                     in->rank, piece->block, piece->piece, block % n, next->piece);
    }
    next->piece++;
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
    return sim_reduces(in->spec->kind) && in->spec->far_sums && !in->spec->users &&
           sim_instance_is_far(in, true) && sim_instance_is_far(in, false);
}

static bool has_far_scratch(const sim_instance_t *in)
{
    bool staged = sim_instance_is_far(in, true) || sim_instance_is_far(in, false);

    return (in->spec->far_scratch >> in->rank % 2 & 1) != 0 && staged &&
           (!sim_reduces(in->spec->kind) || makes_far_sums(in));
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

/* Where this rank has what it contributes to a block, and the result; AG's input and RS's output
 * are of one block. */
static uint64_t *input_of(const sim_instance_t *in, uint32_t block)
{
    bool one = in->spec->kind == FLASH_ALLGATHER;

    return in->input == NULL || one ? in->input : in->input + in->out_layout.displs[block];
}

static uint64_t *output_of(const sim_instance_t *in, uint32_t block)
{
    bool one = in->spec->kind == FLASH_REDUCE_SCATTER;

    return one ? in->output : in->output + in->in_layout.displs[block];
}

/* What is made of a sum that is consumed. */
static uint64_t changed(const sim_instance_t *in, uint64_t sum)
{
    bool changes = in->spec->kind == FLASH_REDUCE_SCATTER && in->spec->other;

    return changes ? sum ^ 0x5a5a : sum;
}

static void consume(sim_instance_t *in, const flash_piece_t *piece)
{
    uint64_t *data = piece->data;
    bool own = piece->block == in->rank && !sim_reduces(in->spec->kind);
    bool of_input = own && data == input_of(in, in->rank) + piece->offset;

    if (data != output_of(in, piece->block) + piece->offset && !of_input) {
        sim_complain(in->sim, "op %u rank %u: the data of block %u is not in its place", in->index,
                     in->rank, piece->block);
    }
    for (size_t k = 0; k < piece->count; k++) {
        uint64_t right = expected(in, piece->block, piece->offset + k);

        if (data[k] != stored(in, of_input, right)) {
            sim_complain(in->sim, "op %u rank %u: wrong data in the callback for %u/%u", in->index,
                         in->rank, piece->block, piece->piece);
            return;
        }
        if (changed(in, right) != right) {
            data[k] = stored(in, of_input, changed(in, right));
        }
    }
}

static void check_produced_place(sim_instance_t *in, const flash_piece_t *piece)
{
    const uint64_t *data = piece->data;
    bool wrong = sim_reduces(in->spec->kind) ? piece->far != is_users(in, data) ||
                                                   piece->far != sim_instance_is_far(in, true)
                                             : data != input_of(in, piece->block) + piece->offset;

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

/* Whether this rank contributes to a block. */
static bool contributes_to(const sim_instance_t *in, uint32_t block)
{
    return in->spec->kind != FLASH_ALLGATHER || block == in->rank;
}

/* Memory, and in it what the rank brings along. */
static void create_buffers(sim_instance_t *in)
{
    flash_kind_t kind = in->spec->kind;
    size_t own = in->in_layout.counts[in->rank];
    bool produces = sim_spec_calls(in->spec, true);

    in->output_count = kind == FLASH_REDUCE_SCATTER ? own : in->in_layout.span;
    in->output_memory = guarded(in->output_count, &in->output);
    if (kind == FLASH_ALLGATHER && in->spec->in_place) {
        in->input = in->output + in->in_layout.displs[in->rank];
    } else if (!sim_reduces(kind) || !produces) {
        in->input_count = kind == FLASH_ALLGATHER ? own : in->out_layout.span;
        in->input_memory = guarded(in->input_count, &in->input);
    }
    for (uint32_t block = 0; block < in->sim->nranks && !produces; block++) {
        for (size_t k = 0; k < in->out_layout.counts[block] && contributes_to(in, block); k++) {
            input_of(in, block)[k] = stored(in, true, contribution(in, in->rank, block, k));
        }
    }
}

void sim_instance_create(sim_t *sim, uint32_t rank, uint32_t spec)
{
    sim_instance_t *in = &sim->instances[(size_t) rank * sim->nspecs + spec];
    const sim_spec_t *s = &sim->specs[spec];
    const sim_shape_t *shape = rank == s->odd_rank ? &s->odd_shape : &s->shape;

    *in = (sim_instance_t){
        .sim = sim, .spec = s, .index = spec, .rank = rank, .status = SIM_UNSTARTED};
    create_layouts(in, shape);
    in->schedule = (flash_schedule_t){.kind = s->kind,
                                      .ring = {.nranks = sim->nranks,
                                               .place = sim->places[rank],
                                               .ranks = sim->shuffled ? sim->ring : NULL},
                                      .pieces = shape->pieces,
                                      .row = shape->row,
                                      .segment_elements = shape->segment,
                                      .blocks = blocks_by(&in->in_layout, shape),
                                      .out = blocks_by(&in->out_layout, shape)};
    create_buffers(in);
}

static void destroy_layout(sim_layout_t *layout)
{
    free(layout->counts);
    free(layout->displs);
}

void sim_instance_destroy(sim_instance_t *in)
{
    destroy_layout(&in->in_layout);
    destroy_layout(&in->out_layout);
    free(in->input_memory);
    free(in->output_memory);
    free(in->pieces);
    free(in->scratch);
    free(in->blames);
    free(in->pairs);
}

/*
 * Odd names differ by edge of the ring, even ones are the same all around: both are allowed. An
 * all-to-all's are apart, since whoever is ahead may be nobody's neighbour in a ring.
 */
static uint64_t tag_towards(const sim_spec_t *spec, uint32_t receiver)
{
    uint64_t name = spec->name << 1 | (spec->kind == FLASH_ALLTOALL);

    return (name << 12 | (spec->name % 2 == 1 ? receiver : 0)) << FLASH_TAG_SHIFT;
}

/* An all-to-all's neighbours. */
static const flash_pair_t *make_pairs(sim_instance_t *in)
{
    uint32_t n = in->sim->nranks;

    in->pairs = malloc((n - 1) * sizeof(*in->pairs));
    for (uint32_t distance = 1; distance < n; distance++) {
        uint32_t left = sim_neighbour(in->sim, in->rank, n - distance);
        uint32_t right = sim_neighbour(in->sim, in->rank, distance);

        in->pairs[distance - 1] =
            (flash_pair_t){.left = fake_net_peer(in->sim->net, in->rank, left),
                           .right = fake_net_peer(in->sim->net, in->rank, right),
                           .recv_tag = tag_towards(in->spec, in->rank),
                           .send_tag = tag_towards(in->spec, right)};
    }
    return in->pairs;
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
        .recv_tag = tag_towards(s, in->rank),
        .send_tag = tag_towards(s, right),
        .depth = s->depth,
        .sends = s->sends,
        .stage_in = sim_instance_is_far(in, true),
        .stage_out = sim_instance_is_far(in, false),
        .combine_far = makes_far_sums(in),
        .scratch_far = has_far_scratch(in),
        .input = in->input,
        .output = in->output,
        .combine = sim_reduces(s->kind) ? on_combine : NULL,
        .combine_arg = in,
        .combine_is_users = s->users,
        .produce = sim_spec_calls(s, true) ? on_callback : NULL,
        .produce_arg = in,
        .consume = sim_spec_calls(s, false) ? on_callback : NULL,
        .consume_arg = in,
        .user = in,
    };

    if (s->kind == FLASH_ALLTOALL) {
        params.recv_tag = params.send_tag = 0;
        params.pairs = make_pairs(in);
    }
    if (params.stage_in && sim_reduces(s->kind) && s->callback) {
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
    const sim_layout_t *layout = &in->in_layout;

    for (uint32_t block = 0; block < in->sim->nranks && layout->gap > 0; block++) {
        const uint64_t *end = in->output + layout->displs[block] + layout->counts[block];

        if (!untouched((const unsigned char *) end, layout->gap * SIM_ELEMENT)) {
            sim_complain(in->sim, "op %u rank %u: wrote past block %u", in->index, in->rank, block);
        }
    }
}

static void check_result(sim_instance_t *in, uint32_t block)
{
    const uint64_t *data = output_of(in, block);

    for (size_t k = 0; k < in->in_layout.counts[block]; k++) {
        if (data[k] != stored(in, false, changed(in, expected(in, block, k)))) {
            sim_complain(in->sim, "op %u rank %u: OK, but element %zu of block %u is wrong",
                         in->index, in->rank, k, block);
            return;
        }
    }
}

/* Nobody writes to an input but who produces it. */
static void check_input(sim_instance_t *in, uint32_t block)
{
    const uint64_t *data = input_of(in, block);

    for (size_t k = 0; k < in->out_layout.counts[block]; k++) {
        if (data[k] != stored(in, true, contribution(in, in->rank, block, k))) {
            sim_complain(in->sim, "op %u rank %u: the input changed", in->index, in->rank);
            return;
        }
    }
}

void sim_instance_check(sim_instance_t *in)
{
    bool scatters = in->spec->kind == FLASH_REDUCE_SCATTER;
    bool has_input =
        in->input_memory != NULL && (!sim_spec_calls(in->spec, true) || in->status == FLASH_OK);

    if (!guards_hold(in->output_memory, in->output_count) ||
        (in->input_memory != NULL && !guards_hold(in->input_memory, in->input_count))) {
        sim_complain(in->sim, "op %u rank %u: wrote outside a buffer", in->index, in->rank);
    }
    if (!scatters) {
        check_gaps(in);
    }
    for (uint32_t block = 0; block < in->sim->nranks && has_input; block++) {
        if (contributes_to(in, block)) {
            check_input(in, block);
        }
    }
    for (uint32_t block = 0; block < in->sim->nranks && in->status == FLASH_OK; block++) {
        if (!scatters || block == in->rank) {
            check_result(in, block);
        }
    }
}
