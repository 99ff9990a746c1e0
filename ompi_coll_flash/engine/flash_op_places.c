/*
 * flash_op_places.c: where an operation's data is: its blocks, what of them a segment is, arrives
 * at and is added to, and from where to where work copies.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"

char *flash_op_input_block(const flash_op_t *op, uint32_t block)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    bool one = flash_schedule_gathers(schedule->kind);

    return flash_op_at(op, op->params.input, one ? 0 : flash_schedule_displ(schedule, block), 0);
}

char *flash_op_output_block(const flash_op_t *op, uint32_t block)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    bool one = flash_schedule_scatters(schedule->kind);

    return flash_op_at(op, op->params.output, one ? 0 : flash_schedule_displ(schedule, block), 0);
}

/* Where the own block is, and where it is to be in the end; not of a reduction. */
static char *own_input(const flash_op_t *op)
{
    return flash_op_input_block(op, flash_schedule_own_input(&op->params.schedule));
}

static char *own_place(const flash_op_t *op)
{
    return flash_op_output_block(op, flash_schedule_own_result(&op->params.schedule));
}

/* The root alone has both, of the kinds with a root. */
bool flash_op_is_in_place(const flash_op_t *op)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    bool both = flash_schedule_length(schedule, FLASH_PRODUCED) > 0 &&
                flash_schedule_length(schedule, FLASH_CONSUMED) > 0;

    return !both || flash_op_reduces(&op->params) || own_input(op) == own_place(op);
}

char *flash_op_produce_buffer(const flash_op_t *op, uint64_t piece)
{
    char *buffers = op->params.stage_in ? op->params.pieces
                    : op->bounded       ? (char *) op->near + flash_op_near_store_size(&op->params)
                                        : (char *) op->scratch + op->depth * op->segment_bytes;

    return buffers + piece % op->produce_buffers * op->piece_bytes;
}

/* Where the callback wrote a segment that is not empty. */
static char *produced_at(const flash_op_t *op, const flash_slot_t *slot)
{
    flash_split_t split = flash_schedule_split(&op->params.schedule, slot->block);
    flash_range_t piece = flash_split_piece(&split, slot->segment / split.segments_per_piece);

    return flash_op_at(op, flash_op_produce_buffer(op, slot->piece), 0,
                       slot->range.offset - piece.offset);
}

/* The segment's place in the user's memory, or where the user has written it. */
static char *input_of(const flash_op_t *op, const flash_slot_t *slot)
{
    if (flash_op_lends(&op->params)) {
        return slot->range.count > 0 ? produced_at(op, slot) : NULL;
    }
    return flash_op_input_block(op, slot->block) + slot->range.offset * op->params.element;
}

static char *output_of(const flash_op_t *op, const flash_slot_t *slot)
{
    return flash_op_output_block(op, slot->block) + slot->range.offset * op->params.element;
}

/* Its place in the scratch; of a reduction that is staged in, also that of what is local. */
static char *scratch_of(const flash_op_t *op, const flash_slot_t *slot, bool of_local)
{
    size_t number = (size_t) (slot - op->slots) + (of_local ? op->depth : 0);

    return (op->bounded ? op->store : (char *) op->scratch) + number * op->segment_bytes;
}

bool flash_op_arrives_apart(const flash_op_t *op, const flash_slot_t *slot)
{
    const flash_op_params_t *params = &op->params;

    return flash_op_sums_on_input(params) && slot->way.receives && slot->way.contributes &&
           slot->way.delivers &&
           (params->stage_out ? op->bounded && params->combine_on_device : true);
}

/* Bounded: where it is kept, or what it is sent from comes from, if that is on a device. */
static char *home_of(const flash_op_t *op, const flash_slot_t *slot)
{
    const flash_op_params_t *params = &op->params;

    if (!op->bounded) {
        return NULL;
    }
    if (!slot->way.receives) {
        return params->stage_in ? input_of(op, slot) : NULL;
    }
    if (slot->way.delivers && !flash_op_arrives_apart(op, slot)) {
        return params->stage_out ? output_of(op, slot) : NULL;
    }
    return params->combine_on_device ? scratch_of(op, slot, false) : NULL;
}

/* Where a pairwise reduce-scatter's sum of the segment is kept. */
static char *sum_of(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->sum == NULL ? output_of(op, slot)
                           : op->sum + slot->range.offset * flash_op_summed_element(&op->params);
}

bool flash_op_begins_in_place(const flash_op_t *op, const flash_slot_t *slot)
{
    return slot->way.adds && flash_schedule_turn(slot->step) == 0 && op->params.wide == 0;
}

/* Where what arrives comes to, and where the result is in the end, or is copied from. */
static char *place_of(const flash_op_t *op, const flash_slot_t *slot)
{
    bool ends_in_sum = slot->way.adds && slot->way.delivers && op->params.wide == 0;

    if (flash_op_begins_in_place(op, slot) || ends_in_sum) {
        return sum_of(op, slot);
    }
    return slot->way.delivers && !op->params.stage_out && !flash_op_arrives_apart(op, slot)
               ? output_of(op, slot)
               : scratch_of(op, slot, false);
}

void flash_op_place(flash_op_t *op, flash_slot_t *slot)
{
    bool reduces = flash_op_reduces(&op->params);

    slot->data = slot->local = NULL;
    slot->home = home_of(op, slot);
    if (slot->home != NULL && slot->way.receives) {
        slot->data = slot->home;
    } else if (slot->way.receives || slot->way.adds) {
        slot->data = place_of(op, slot);
    }
    if (slot->way.contributes) {
        bool staged = flash_slot_needs_staging_in(slot) && !op->bounded; /* else not yet */

        slot->local = staged ? scratch_of(op, slot, reduces) : input_of(op, slot);
    }
}

/* Elements of the own block that somebody has taken, or that were in their place. */
static size_t own_copied(const flash_op_t *op)
{
    return flash_op_own_split(&op->params).count - op->uncopied;
}

bool flash_op_may_copy(const flash_op_t *op)
{
    return op->uncopied > 0 && flash_op_own_produced(op) > own_copied(op);
}

void flash_op_take_copy(flash_op_t *op, flash_work_t *work)
{
    size_t most = flash_op_copied_elements(&op->params);
    size_t begin = own_copied(op), there = flash_op_own_produced(op) - begin;
    size_t count = there < most ? there : most;

    work->in = flash_op_at(op, own_input(op), 0, begin);
    work->inout = flash_op_at(op, own_place(op), 0, begin);
    work->size = count * op->params.element;
    op->uncopied -= count;
}

bool flash_op_sums_in_place(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->params.combine_on_device && slot->way.contributes && slot->way.delivers &&
           !slot->way.sends;
}

void flash_op_take_sum(const flash_op_t *op, const flash_slot_t *slot, flash_work_t *work)
{
    bool wide = slot->way.adds && op->params.wide > 0;
    bool apart = flash_op_arrives_apart(op, slot);

    work->in = slot->way.contributes && !apart ? slot->local : slot->data;
    work->inout = slot->way.adds ? sum_of(op, slot) : apart ? slot->local : slot->data;
    work->count = slot->range.count;
    work->begins = wide && flash_schedule_turn(slot->step) == 0;
    work->ends = wide && slot->way.delivers;
    work->out = flash_op_sums_in_place(op, slot) ? output_of(op, slot)
                : work->ends                     ? slot->data
                                                 : work->inout;
}

void flash_op_place_sum(flash_slot_t *slot)
{
    if (flash_op_arrives_apart(slot->op, slot)) {
        slot->data = slot->local;
        slot->home = slot->home == NULL ? NULL : slot->local;
    }
}

uint32_t *flash_op_failed_rank_place(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->params.failed_ranks + (slot - op->slots);
}

/* A copy is of the kind of the user's buffer that is on the same device, either way. */
static enum flash_work_kind kind_of_home(const flash_slot_t *slot)
{
    return slot->way.receives && slot->way.delivers ? FLASH_WORK_STAGE_OUT : FLASH_WORK_STAGE_IN;
}

void flash_op_take_staging(flash_op_t *op, flash_work_t *work)
{
    flash_slot_t *slot = STAILQ_FIRST(&op->staging);

    STAILQ_REMOVE_HEAD(&op->staging, next_staging);
    work->slot = slot;
    work->kind = FLASH_WORK_STAGE_OUT;
    work->in = slot->data;
    work->size = slot->range.count * op->params.element;
    switch (slot->staging) {
    case FLASH_STAGING_FAILED_RANK:
        work->inout = flash_op_failed_rank_place(op, slot);
        work->size = sizeof(slot->failed_rank);
        break;
    case FLASH_STAGING_IN:
        work->kind = FLASH_WORK_STAGE_IN;
        work->in = input_of(op, slot);
        work->inout = slot->local;
        break;
    case FLASH_STAGING_KEEP:
        work->kind = kind_of_home(slot);
        work->inout = slot->home;
        break;
    case FLASH_STAGING_DEPART:
        work->kind = kind_of_home(slot);
        work->in = slot->home;
        work->inout = slot->way.receives ? slot->data : slot->local;
        break;
    default:
        work->inout = output_of(op, slot);
    }
}

/*
 * Where nothing arrives, what is local leaves; else it is added. Bounded: what leaves is copied
 * when its turn has come, see flash_op_depart().
 */
bool flash_slot_needs_staging_in(const flash_slot_t *slot)
{
    const flash_op_params_t *params = &slot->op->params;

    return params->stage_in && slot->range.count > 0 && !slot->poisoned && slot->way.contributes &&
           (slot->way.receives ? !params->combine_on_device : !slot->op->bounded);
}
