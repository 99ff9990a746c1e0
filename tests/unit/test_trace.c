/*
 * test_trace.c: what a trace keeps of the spans it is given, and what it writes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "engine/flash_trace.h"
#include "tap.h"

/* Behind whatever this process does before it ends. */
#define AN_HOUR UINT64_C(3600000000000)

/* Waiting is noted poll by poll, and is to be one span until something else happens. */
static void test_wait(void)
{
    flash_trace_t *trace = flash_trace_create();
    uint64_t now = flash_trace_now(), later = now + AN_HOUR;
    flash_trace_span_t callback = {.kind = FLASH_TRACE_CALLBACK, .begin = now, .end = later};

    flash_trace_wait(trace, now);
    flash_trace_wait(trace, now);
    flash_trace_wait(trace, now);
    ok(flash_trace_count(trace) == 1, "polls in a row are one span");
    flash_trace_wait(trace, later);
    ok(flash_trace_count(trace) == 2, "polls far from each other are two");
    flash_trace_destroy(trace);

    trace = flash_trace_create();
    flash_trace_wait(trace, now);
    flash_trace_add(trace, &callback);
    flash_trace_wait(trace, callback.end);
    ok(flash_trace_count(trace) == 3, "a callback between polls in a row makes them two");
    flash_trace_destroy(trace);
}

static void test_most(void)
{
    flash_trace_t *trace = flash_trace_create();
    flash_trace_span_t span = {.kind = FLASH_TRACE_SEND};

    for (uint64_t k = 0; k < FLASH_TRACE_MOST + 3; k++) {
        flash_trace_add(trace, &span);
    }
    ok(flash_trace_count(trace) == FLASH_TRACE_MOST && flash_trace_missing(trace) == 3,
       "what goes beyond the most is counted as missing");
    flash_trace_destroy(trace);
}

/* The trace's text, to be freed. */
static char *written(const flash_trace_t *trace)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    flash_trace_write(trace, file, 7, "the title");
    fclose(file);
    return text;
}

/* A poll that called back has waited since the callback's end, which here is yet to come. */
static void test_wait_after_callback(void)
{
    flash_trace_t *trace = flash_trace_create();
    uint64_t now = flash_trace_now();
    flash_trace_span_t callback = {
        .kind = FLASH_TRACE_CALLBACK, .begin = now, .end = now + AN_HOUR};
    char *text;

    flash_trace_add(trace, &callback);
    flash_trace_wait(trace, now);
    text = written(trace);
    ok(strstr(text, "\"name\":\"wait\"") != NULL && strstr(text, "\"dur\":0.000}") != NULL,
       "what a poll's callback takes is no waiting");
    free(text);
    flash_trace_destroy(trace);
}

static int count(const char *text, const char *word)
{
    int found = 0;

    while ((text = strstr(text, word)) != NULL) {
        found++;
        text += strlen(word);
    }
    return found;
}

/* The text of a trace of nothing else, to be freed. */
static char *written_spans(const flash_trace_span_t *spans, size_t number)
{
    flash_trace_t *trace = flash_trace_create();
    char *text;

    for (size_t k = 0; k < number; k++) {
        flash_trace_add(trace, &spans[k]);
    }
    text = written(trace);
    flash_trace_destroy(trace);
    return text;
}

static void test_lanes(void)
{
    static const flash_trace_span_t spans[] = {
        {.kind = FLASH_TRACE_RECEIVE, .begin = 1000, .end = 9000, .block = 3, .bytes = 64},
        {.kind = FLASH_TRACE_RECEIVE, .begin = 2000, .end = 9500, .block = 3, .index = 1},
        {.kind = FLASH_TRACE_RECEIVE, .begin = 9700, .end = 9900, .block = 3, .index = 2},
        {.kind = FLASH_TRACE_SEND, .begin = 1000, .end = 9000}};
    char *text = written_spans(spans, sizeof(spans) / sizeof(spans[0]));

    ok(count(text, "\"dur\":8.000") == 2, "lanes do not mind each other");
    ok(count(text, "\"dur\":0.500") == 1, "in a lane, a span begins with the end of the last");
    ok(count(text, "\"dur\":0.200") == 1, "or when it began, if that is later");
    ok(count(text, "\"bytes\":64,\"block\":3,\"index\":0") == 1, "it says what it was");
    ok(count(text, "\"pid\":7") == 10 && count(text, "the title") == 1, "and whose");
    free(text);
}

static void test_pairs(void)
{
    static const flash_trace_span_t spans[] = {
        {.kind = FLASH_TRACE_PENDING, .operation = 5, .index = 2, .begin = 1000, .end = 2000},
        {.kind = FLASH_TRACE_DONE, .operation = 5, .index = 2, .end = 3000},
        {.kind = FLASH_TRACE_ALLGATHER, .operation = 5, .begin = 500, .end = 3500}};
    char *text = written_spans(spans, sizeof(spans) / sizeof(spans[0]));

    ok(count(text, "\"id\":\"7.5.2\"") == 2, "a pending piece's begin and end have one name");
    ok(count(text, "\"id\":\"7.5\"") == 2, "so have an operation's");
    ok(count(text, "\"ph\":\"b\"") == 2 && count(text, "\"ph\":\"e\"") == 2, "both are there");
    ok(count(text, "\"ph\":\"X\"") == 1, "the callback is in its lane");
    free(text);
}

int main(void)
{
    test_wait();
    test_wait_after_callback();
    test_most();
    test_lanes();
    test_pairs();
    return tap_done();
}
