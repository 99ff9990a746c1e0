/*
 * flash_segments.c: see flash_segments.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_segments.h"

/*
 * Two ratios decide: the handshake in messages, and the bytes that are added while a message is
 * lost, here 256 KiB. They fit what segments of 256 and 512 KiB cost over software RoCE, in
 * docs/results/rdma-segments.tsv: an allgather's message is best whole, and a reduction's in two to
 * four. A processor that is slower in all changes neither.
 */
const flash_link_t flash_link_rdma = {.handshake = 32e-6, .message = 32e-6, .combine_rate = 8e9};

static size_t at_least_one(double elements)
{
    return elements < 1 ? 1 : (size_t) elements;
}

void flash_segments_cut(flash_schedule_t *schedule, size_t element, const flash_link_t *link)
{
    double size = (double) element;

    schedule->segment_elements = at_least_one(FLASH_USUAL_SEGMENT / size);
    schedule->longest_segment = FLASH_LONGEST_SEGMENT / element;
    schedule->parts = FLASH_USUAL_PARTS;
    schedule->square = 0;
    if (link != NULL && flash_schedule_reduces(schedule->kind)) {
        schedule->square = at_least_one(link->message * link->combine_rate / size);
    } else if (link != NULL) {
        for (schedule->parts = 1;
             link->handshake > link->message * schedule->parts * (schedule->parts + 1.);) {
            schedule->parts++; /* as long as one more costs less */
        }
    }
}

void flash_segments_cut_equal(flash_schedule_t *schedule, size_t element, size_t bytes)
{
    schedule->segment_elements = bytes < element ? 1 : bytes / element;
    schedule->longest_segment = 0;
}
