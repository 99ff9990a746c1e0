/*
 * flash_segments.h: how long the segments of a block are, by what a message costs.
 *
 * A ring step moves a block in segments. Each segment costs a message. In return a reduction adds
 * one segment while the next one arrives, so that of its additions only the last segment's stands
 * between two steps; and the handshake of one message passes while another one moves. A block in m
 * segments therefore takes, beside the time that its bytes take,
 *
 *     m * message + (handshake + bytes / combine_rate) / m
 *
 * which is least where both terms are equal. An allgather adds nothing.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_SEGMENTS_H
#define FLASH_SEGMENTS_H

#include "engine/flash_schedule.h"

/* What the links between nodes, and the processors at their ends, take. */
typedef struct flash_link {
    double handshake;    /* seconds before the first byte of a message moves */
    double message;      /* seconds that are lost by each further message */
    double combine_rate; /* bytes a second that are added */
} flash_link_t;

/* RDMA devices: rendezvous, and reads by the receiver. */
extern const flash_link_t flash_link_rdma;

/*
 * Cuts the schedule's blocks, of elements of that many bytes, for such links; NULL: as for TCP, and
 * within a node.
 */
void flash_segments_cut(flash_schedule_t *schedule, size_t element, const flash_link_t *link);
/* Into segments of so many bytes. */
void flash_segments_cut_equal(flash_schedule_t *schedule, size_t element, size_t bytes);

#endif /* FLASH_SEGMENTS_H */
