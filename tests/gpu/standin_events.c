/*
 * standin_events.c: events of the stand-in driver; see standin.h. An event refers to a mark that
 * stands in a stream: to none before it is first recorded.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_streams.h"

#include <stdlib.h>

typedef struct event {
    mark_t *mark;
    standin_context_t *context;
    bool captured; /* last recorded in a stream that was */
    struct event *next;
} event_t;

static event_t *events; /* under the mutex */

int standin_events(void)
{
    int count = 0;

    pthread_mutex_lock(&standin_mutex);
    for (const event_t *event = events; event != NULL; event = event->next) {
        count++;
    }
    pthread_mutex_unlock(&standin_mutex);
    return count;
}

int cuEventCreate(event_t **event, unsigned flags)
{
    int result = standin_enter("cuEventCreate");

    (void) flags;
    if (result != SUCCESS || standin_context() == NULL) {
        return result == SUCCESS ? INVALID_CONTEXT : result == UNKNOWN ? OUT_OF_MEMORY : result;
    }
    *event = calloc(1, sizeof(**event));
    if (*event == NULL) {
        return OUT_OF_MEMORY;
    }
    (*event)->context = standin_context();
    pthread_mutex_lock(&standin_mutex);
    (*event)->next = events;
    events = *event;
    pthread_mutex_unlock(&standin_mutex);
    standin_count_made();
    return SUCCESS;
}

/* Under the mutex. */
static void remove_event(event_t *event)
{
    event_t **link = &events;

    while (*link != event) {
        if (*link == NULL) {
            standin_forbidden("an event that is none, or no longer");
        }
        link = &(*link)->next;
    }
    *link = event->next;
    standin_forget_mark(event->mark);
    free(event);
}

int cuEventDestroy_v2(event_t *event)
{
    int result;

    standin_not_in_callback("cuEventDestroy");
    pthread_mutex_lock(&standin_mutex);
    result = standin_error(event->context);
    remove_event(event);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

void standin_drop_events(const standin_context_t *context)
{
    pthread_mutex_lock(&standin_mutex);
    for (event_t *event = events, *next; event != NULL; event = next) {
        next = event->next;
        if (event->context == context) {
            remove_event(event);
        }
    }
    pthread_mutex_unlock(&standin_mutex);
}

int cuEventRecord(event_t *event, stream_t *stream)
{
    int result = standin_enter("cuEventRecord");
    mark_t *mark = result == SUCCESS ? calloc(1, sizeof(*mark)) : NULL;
    bool captured;

    if (mark == NULL) {
        return result == SUCCESS ? OUT_OF_MEMORY : result;
    }
    mark->references = 2;
    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(stream);
    captured = stream != NULL && stream->captured;
    pthread_mutex_unlock(&standin_mutex);
    if (stream != NULL && stream->context != event->context) {
        free(mark);
        return INVALID_HANDLE;
    }
    result = standin_enqueue(stream, (action_t){.mark = mark});
    pthread_mutex_lock(&standin_mutex);
    if (result == SUCCESS) {
        standin_forget_mark(event->mark);
        event->mark = mark;
        event->captured = captured;
    } else {
        standin_forget_mark(mark);
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

/* Under the mutex. */
static int look_at(const event_t *event)
{
    int error = standin_error(event->context);

    return error != SUCCESS                           ? error
           : event->captured                          ? CAPTURED_EVENT
           : event->mark == NULL || event->mark->done ? SUCCESS
                                                      : NOT_READY;
}

int cuEventQuery(const event_t *event)
{
    int result = standin_enter("cuEventQuery");

    result = result == SUCCESS ? standin_unsafe() : result;
    if (result == SUCCESS && standin_context() == NULL) {
        result = INVALID_CONTEXT;
    }
    pthread_mutex_lock(&standin_mutex);
    result = result == SUCCESS ? look_at(event) : result;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

int cuEventSynchronize(const event_t *event)
{
    int result = standin_enter("cuEventSynchronize");

    result = result == SUCCESS ? standin_unsafe() : result;
    pthread_mutex_lock(&standin_mutex);
    while (result == SUCCESS && (result = look_at(event)) == NOT_READY) {
        pthread_cond_wait(&standin_changed, &standin_mutex);
        result = SUCCESS;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

int cuStreamWaitEvent(stream_t *stream, event_t *event, unsigned flags)
{
    int result = standin_enter("cuStreamWaitEvent");
    mark_t *mark;

    (void) flags;
    if (result != SUCCESS) {
        return result;
    }
    if (event->captured && !standin_is_exempt()) {
        standin_forbidden("a stream waits for an event of a capture, and is captured from then on");
    }
    pthread_mutex_lock(&standin_mutex);
    mark = event->mark;
    if (mark != NULL) {
        mark->references++;
    }
    pthread_mutex_unlock(&standin_mutex);
    return standin_enqueue(stream, (action_t){.behind = mark});
}
