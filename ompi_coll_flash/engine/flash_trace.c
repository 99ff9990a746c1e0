/*
 * flash_trace.c: see flash_trace.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { CHUNK_SPANS = 4096 };

typedef struct chunk {
    struct chunk *next;
    size_t count;
    flash_trace_span_t spans[CHUNK_SPANS];
} chunk_t;

struct flash_trace {
    chunk_t *first, *last;
    flash_trace_span_t wait; /* the latest of its kind, which may still grow; its end is 0: none */
    uint64_t callback_end;   /* of the latest */
    uint64_t count, missing;
    int64_t to_system; /* what makes the system's time of flash_trace_now() */
};

static uint64_t clock_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

uint64_t flash_trace_now(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

flash_trace_t *flash_trace_create(void)
{
    flash_trace_t *trace = calloc(1, sizeof(*trace));

    if (trace != NULL) {
        trace->to_system = (int64_t) (clock_of(CLOCK_REALTIME) - flash_trace_now());
    }
    return trace;
}

void flash_trace_destroy(flash_trace_t *trace)
{
    while (trace->first != NULL) {
        chunk_t *chunk = trace->first;

        trace->first = chunk->next;
        free(chunk);
    }
    free(trace);
}

/* ------------------------------------------------------------------- noting */

static flash_trace_span_t *get_place(flash_trace_t *trace)
{
    if (trace->count == FLASH_TRACE_MOST) {
        return NULL;
    }
    if (trace->last == NULL || trace->last->count == CHUNK_SPANS) {
        chunk_t *chunk = malloc(sizeof(*chunk));

        if (chunk == NULL) {
            return NULL;
        }
        chunk->next = NULL;
        chunk->count = 0;
        *(trace->last == NULL ? &trace->first : &trace->last->next) = chunk;
        trace->last = chunk;
    }
    trace->count++;
    return &trace->last->spans[trace->last->count++];
}

void flash_trace_add(flash_trace_t *trace, const flash_trace_span_t *span)
{
    flash_trace_span_t *place = get_place(trace);

    if (place == NULL) {
        trace->missing++;
    } else {
        *place = *span;
    }
    if (span->kind == FLASH_TRACE_CALLBACK || span->kind == FLASH_TRACE_PENDING) {
        trace->callback_end = span->end;
    }
}

void flash_trace_wait(flash_trace_t *trace, uint64_t begin)
{
    uint64_t until = trace->wait.end;

    if (trace->callback_end > begin) {
        begin = trace->callback_end;
    }
    if (until > 0 && (trace->callback_end > until || begin >= until + FLASH_TRACE_GAP_NS)) {
        flash_trace_add(trace, &trace->wait);
        until = 0;
    }
    if (until == 0) {
        trace->wait.kind = FLASH_TRACE_WAIT;
        trace->wait.begin = begin;
    }
    trace->wait.end = flash_trace_now();
}

uint64_t flash_trace_count(const flash_trace_t *trace)
{
    return trace->count + (trace->wait.end > 0);
}

uint64_t flash_trace_missing(const flash_trace_t *trace)
{
    return trace->missing;
}

/* ------------------------------------------------------------------ writing */

enum { NO_LANE, CALLBACKS, COMBINING, SENDING, RECEIVING, WAITING, LANES };

static const char *const lane_names[LANES] = {[CALLBACKS] = "callbacks",
                                              [COMBINING] = "combining",
                                              [SENDING] = "sending",
                                              [RECEIVING] = "receiving",
                                              [WAITING] = "waiting in MPI"};

static const struct {
    const char *name;
    int lane; /* NO_LANE: may lie beside others of its kind */
} kinds[FLASH_TRACE_KINDS] = {[FLASH_TRACE_ALLGATHER] = {"allgather", NO_LANE},
                              [FLASH_TRACE_REDUCE_SCATTER] = {"reduce-scatter", NO_LANE},
                              [FLASH_TRACE_ALLREDUCE] = {"allreduce", NO_LANE},
                              [FLASH_TRACE_ALLTOALL] = {"all-to-all", NO_LANE},
                              [FLASH_TRACE_BCAST] = {"broadcast", NO_LANE},
                              [FLASH_TRACE_REDUCE] = {"reduce", NO_LANE},
                              [FLASH_TRACE_GATHER] = {"gather", NO_LANE},
                              [FLASH_TRACE_SCATTER] = {"scatter", NO_LANE},
                              [FLASH_TRACE_CALLBACK] = {"callback", CALLBACKS},
                              [FLASH_TRACE_PENDING] = {"callback", CALLBACKS},
                              [FLASH_TRACE_DONE] = {"pending piece", NO_LANE},
                              [FLASH_TRACE_COMBINE] = {"combine", COMBINING},
                              [FLASH_TRACE_SEND] = {"send", SENDING},
                              [FLASH_TRACE_RECEIVE] = {"receive", RECEIVING},
                              [FLASH_TRACE_WAIT] = {"wait", WAITING}};

typedef struct writer {
    const flash_trace_t *trace;
    FILE *file;
    int rank;
    uint64_t busy_until[LANES];
} writer_t;

static void print_time(const writer_t *writer, const char *name, uint64_t time)
{
    uint64_t system = (uint64_t) ((int64_t) time + writer->trace->to_system);

    fprintf(writer->file, ",\"%s\":%" PRIu64 ".%03u", name, system / 1000,
            (unsigned) (system % 1000));
}

static void begin_event(const writer_t *writer, const char *name, char phase, int lane)
{
    fprintf(writer->file, ",\n{\"name\":\"%s\",\"ph\":\"%c\",\"pid\":%d,\"tid\":%d", name, phase,
            writer->rank, lane);
}

static void end_event(const writer_t *writer, const flash_trace_span_t *span)
{
    if (span->kind == FLASH_TRACE_WAIT) {
        fputc('}', writer->file);
        return;
    }
    fprintf(writer->file, ",\"args\":{\"operation\":%" PRIu64 ",\"bytes\":%" PRIu64,
            span->operation, span->bytes);
    if (span->kind > FLASH_TRACE_OPERATIONS) {
        fprintf(writer->file, ",\"block\":%u,\"index\":%u", (unsigned) span->block,
                (unsigned) span->index);
    }
    fputs("}}", writer->file);
}

/* One end of what may lie beside others of its kind: the two find each other by their `id`. */
static void write_end(const writer_t *writer, const flash_trace_span_t *span, const char *name,
                      char phase, uint64_t time)
{
    begin_event(writer, name, phase, NO_LANE);
    fprintf(writer->file, ",\"cat\":\"%s\",\"id\":\"%d.%" PRIu64, name, writer->rank,
            span->operation);
    if (span->kind > FLASH_TRACE_OPERATIONS) {
        fprintf(writer->file, ".%u", (unsigned) span->index);
    }
    fputc('"', writer->file);
    print_time(writer, "ts", time);
    end_event(writer, span);
}

static void write_in_lane(writer_t *writer, const flash_trace_span_t *span, const char *name,
                          int lane)
{
    uint64_t begin = span->begin;

    if (begin < writer->busy_until[lane]) {
        begin = writer->busy_until[lane];
    }
    if (begin > span->end) {
        begin = span->end;
    }
    writer->busy_until[lane] = span->end;
    begin_event(writer, name, 'X', lane);
    print_time(writer, "ts", begin);
    fprintf(writer->file, ",\"dur\":%" PRIu64 ".%03u", (span->end - begin) / 1000,
            (unsigned) ((span->end - begin) % 1000));
    end_event(writer, span);
}

static void write_span(writer_t *writer, const flash_trace_span_t *span)
{
    const char *name = kinds[span->kind].name;
    int lane = kinds[span->kind].lane;

    if (lane != NO_LANE) {
        write_in_lane(writer, span, name, lane);
    } else if (span->kind != FLASH_TRACE_DONE) {
        write_end(writer, span, name, 'b', span->begin);
        write_end(writer, span, name, 'e', span->end);
    } else {
        write_end(writer, span, name, 'e', span->end);
    }
    if (span->kind == FLASH_TRACE_PENDING) {
        write_end(writer, span, kinds[FLASH_TRACE_DONE].name, 'b', span->begin);
    }
}

static void write_names(const writer_t *writer, const char *title)
{
    fprintf(writer->file,
            "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s\","
            "\"missing\":%" PRIu64 "}}",
            writer->rank, title, writer->trace->missing);
    for (int lane = CALLBACKS; lane < LANES; lane++) {
        begin_event(writer, "thread_name", 'M', lane);
        fprintf(writer->file, ",\"args\":{\"name\":\"%s\"}}", lane_names[lane]);
    }
}

void flash_trace_write(const flash_trace_t *trace, FILE *file, int rank, const char *title)
{
    writer_t writer = {.trace = trace, .file = file, .rank = rank};

    write_names(&writer, title);
    for (const chunk_t *chunk = trace->first; chunk != NULL; chunk = chunk->next) {
        for (size_t k = 0; k < chunk->count; k++) {
            write_span(&writer, &chunk->spans[k]);
        }
    }
    if (trace->wait.end > 0) {
        write_span(&writer, &trace->wait);
    }
    fputs("\n]\n", file);
}
