/*
 * standin_capture.c: streams of the stand-in driver that are captured into a graph, and what is
 * forbidden meanwhile; see standin.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_streams.h"

enum { RELAXED = 2 };

/* Whether the calling thread may not do what a capture does not see. Under the mutex. */
static bool is_prohibited(void)
{
    int mode = standin_capture_mode();

    for (const stream_t *stream = standin_all; stream != NULL && mode != RELAXED;
         stream = stream->next) {
        bool own = stream->captured && pthread_equal(stream->thread, pthread_self());

        if (stream->captured && (own ? stream->mode != RELAXED : mode == 0 && stream->mode == 0)) {
            return true;
        }
    }
    return false;
}

/* Under the mutex: all of them, or those of blocking streams of a context. */
static bool spoil(const standin_context_t *blocking_of)
{
    bool found = false;

    for (stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
        if (stream->captured &&
            (blocking_of == NULL || (stream->context == blocking_of && stream->is_blocking))) {
            found = stream->spoiled = true;
        }
    }
    return found;
}

int standin_unsafe(void)
{
    int result = SUCCESS;

    pthread_mutex_lock(&standin_mutex);
    if (!standin_is_exempt() && is_prohibited()) {
        spoil(NULL);
        result = CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

int standin_usable(stream_t *stream)
{
    if (stream == NULL) {
        return INVALID_CONTEXT;
    }
    if (standin_error(stream->context) != SUCCESS) {
        return standin_error(stream->context);
    }
    return stream->is_legacy && spoil(stream->context) ? CAPTURE_IMPLICIT : SUCCESS;
}

int cuStreamBeginCapture_v2(stream_t *stream, int mode)
{
    int result;

    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(stream);
    result = standin_usable(stream);
    if (result == SUCCESS && stream->is_legacy) {
        result = CAPTURE_UNSUPPORTED;
    }
    if (result == SUCCESS) {
        stream->captured = true;
        stream->spoiled = false;
        stream->mode = mode;
        stream->thread = pthread_self();
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

int cuStreamEndCapture(stream_t *stream, void **graph)
{
    bool spoiled;

    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(stream);
    spoiled = stream->spoiled;
    stream->captured = stream->spoiled = false;
    *graph = NULL;
    pthread_mutex_unlock(&standin_mutex);
    return spoiled ? CAPTURE_UNSUPPORTED + 1 : SUCCESS;
}

int cuStreamIsCapturing(stream_t *stream, int *status)
{
    int result;

    standin_not_in_callback("cuStreamIsCapturing");
    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(stream);
    result = stream == NULL ? INVALID_CONTEXT : SUCCESS;
    if (result == SUCCESS && standin_chance()) { /* it may tell of an error that was before */
        result = standin_error(stream->context);
    }
    for (const stream_t *other = standin_all; result == SUCCESS && other != NULL;
         other = other->next) {
        if (stream->is_legacy && other->context == stream->context && other->is_blocking &&
            other->captured) {
            result = CAPTURE_IMPLICIT;
        }
    }
    *status = result == SUCCESS ? stream->captured + stream->spoiled : 1;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}
