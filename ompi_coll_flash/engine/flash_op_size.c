/*
 * flash_op_size.c: how many segments of an operation are under way at a time, and how long they
 * are.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"

/* See `depth` in flash_engine.h. */
static uint32_t needed_window(const flash_op_params_t *params, uint32_t segments)
{
    bool calls = params->produce != NULL || params->consume != NULL;

    if (flash_schedule_has_root(params->schedule.kind) &&
        flash_schedule_length(&params->schedule, FLASH_STEPS) == 1) {
        return segments < 2 ? segments : 2;
    }
    if (flash_schedule_exchanges(params->schedule.kind)) {
        return 2 * segments;
    }
    return calls ? 2 * segments + 2 : segments + 1;
}

bool flash_op_stages(const flash_op_params_t *params, bool in)
{
    flash_kind_t kind = params->schedule.kind;
    flash_step_t first = flash_schedule_step(&params->schedule, 0);
    bool one_way = flash_schedule_has_root(kind) && flash_schedule_exchanges(kind);

    if (one_way && (in ? first.receives : first.sends)) {
        return false;
    }
    return in ? params->stage_in : params->stage_out;
}

/*
 * A number of segments of the usual length, as one of the longest segments that have as many bytes.
 */
static uint32_t of_longest(const flash_op_params_t *params, uint32_t segments)
{
    size_t usual = params->schedule.segment_elements;
    size_t longest = flash_schedule_max_segment(&params->schedule);

    return longest <= usual ? segments : (uint32_t) ((uint64_t) segments * usual / longest);
}

/*
 * What is under way keeps other messages waiting, so that long segments are few. A device's memory
 * is moved by the device, whose commands take longer to begin than to move a segment: many hide
 * that.
 */
uint32_t flash_op_sends_at_a_time(const flash_op_params_t *params)
{
    uint32_t sends = params->scratch_on_device ? params->sends : of_longest(params, params->sends);

    if (params->sends == 0) {
        return UINT32_MAX;
    }
    return sends > 2 || sends == params->sends ? sends : 2;
}

/*
 * In place, a result is received to where a contribution was: not before the segment of N steps
 * earlier, which used that, is retired. In N steps there are the segments of all blocks, which are
 * more than one block's, so that this many are enough.
 */
static uint64_t most_segments(const flash_op_params_t *params, uint32_t segments)
{
    return flash_op_sums_on_input(params)
               ? flash_schedule_segments(&params->schedule)
               : (uint64_t) segments * flash_schedule_length(&params->schedule, FLASH_STEPS);
}

uint32_t flash_op_window(const flash_op_params_t *params)
{
    uint32_t segments = flash_schedule_max_segments(&params->schedule);
    uint32_t needed = needed_window(params, segments);
    uint64_t most = most_segments(params, segments);
    uint32_t depth = of_longest(params, params->depth);
    uint32_t wanted = depth < most ? depth : (uint32_t) most;

    return wanted > needed ? wanted : needed;
}

/*
 * The processor copies a short segment at a time, behind which its thread looks for messages again.
 * A device copies what it copies of other segments.
 */
size_t flash_op_copied_elements(const flash_op_params_t *params)
{
    return params->stage_in || params->stage_out ? flash_schedule_max_segment(&params->schedule)
                                                 : params->schedule.segment_elements;
}

size_t flash_op_segment_bytes(const flash_op_params_t *params)
{
    return flash_op_align(flash_schedule_max_segment(&params->schedule) * params->element);
}
