/*
 * flash_trace.h: what happened when, for a timeline.
 *
 * Spans of time are noted as they end, and written as Chrome's trace-event JSON, which Perfetto
 * (ui.perfetto.dev) opens. A span costs two readings of the clock and 48 bytes. Knows no MPI.
 *
 * Locking: the engine's lock is held around flash_trace_add() and flash_trace_wait(); nothing runs
 * beside flash_trace_write() and flash_trace_destroy().
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_TRACE_H
#define FLASH_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct flash_trace flash_trace_t;

typedef enum flash_trace_kind {
    FLASH_TRACE_ALLGATHER, /* an operation, from its start to its completion */
    FLASH_TRACE_REDUCE_SCATTER,
    FLASH_TRACE_ALLREDUCE,
    FLASH_TRACE_ALLTOALL,
    FLASH_TRACE_BCAST,
    FLASH_TRACE_REDUCE,
    FLASH_TRACE_GATHER,
    FLASH_TRACE_SCATTER,
    FLASH_TRACE_OPERATIONS = FLASH_TRACE_SCATTER, /* the last of these */
    FLASH_TRACE_CALLBACK,
    FLASH_TRACE_PENDING, /* a callback that left its piece pending */
    FLASH_TRACE_DONE,    /* an instant: that piece is done */
    FLASH_TRACE_COMBINE,
    FLASH_TRACE_SEND,
    FLASH_TRACE_RECEIVE,
    /* The application is in MPI, with operations under way, and in no callback; those of the
       callback thread may lie beside it. */
    FLASH_TRACE_WAIT,
    FLASH_TRACE_KINDS
} flash_trace_kind_t;

typedef struct flash_trace_span {
    uint64_t begin, end; /* of flash_trace_now() */
    uint64_t operation;  /* numbered from 0 as they are started */
    uint64_t bytes;
    uint32_t block;
    uint32_t index; /* a transfer's and a combination's segment of it, an operation's piece */
    flash_trace_kind_t kind;
} flash_trace_span_t;

/* NULL if there is no memory. */
flash_trace_t *flash_trace_create(void);
void flash_trace_destroy(flash_trace_t *trace);

/* Nanoseconds since some time of the host's. */
uint64_t flash_trace_now(void);
/* The same, or 0 for those who trace nothing. */
static inline uint64_t flash_trace_clock(const flash_trace_t *trace)
{
    return trace == NULL ? 0 : flash_trace_now();
}

/* Notes a span; without memory for it, or beyond FLASH_TRACE_MOST, only that it is missing. */
void flash_trace_add(flash_trace_t *trace, const flash_trace_span_t *span);
#define FLASH_TRACE_MOST (UINT64_C(1) << 20)
/*
 * The application has been in MPI since `begin` and still is. Calls that follow each other within
 * FLASH_TRACE_GAP_NS, with no callback in between, are one span.
 */
void flash_trace_wait(flash_trace_t *trace, uint64_t begin);
#define FLASH_TRACE_GAP_NS 200000

/* Spans noted, and missing ones. */
uint64_t flash_trace_count(const flash_trace_t *trace);
uint64_t flash_trace_missing(const flash_trace_t *trace);

/*
 * Writes it all as the process `rank`, which is called `title`: a lane each for callbacks,
 * combining, sending, receiving and waiting. A lane shows one thing at a time: receives are posted
 * ahead, and each is shown from the end of the one before it. Times are the system's, in
 * microseconds. What went wrong is to be had from ferror() and fclose().
 */
void flash_trace_write(const flash_trace_t *trace, FILE *file, int rank, const char *title);

#endif /* FLASH_TRACE_H */
