/*
 * standin_streams.c: which streams of the stand-in driver there are; see standin.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_streams.h"

#include <stdatomic.h>
#include <stdlib.h>

/* CUDA_DEVICE_MAX_CONNECTIONS, as it is where nobody has set it. */
enum { MOST_QUEUES = 8 };
enum { NON_BLOCKING = 1 };

pthread_mutex_t standin_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t standin_changed = PTHREAD_COND_INITIALIZER;
stream_t *standin_all;
static atomic_ulong made;

/* Handles that stand for the default streams. */
#define LEGACY     ((stream_t *) 1)
#define PER_THREAD ((stream_t *) 2)

unsigned long standin_made(void)
{
    return atomic_load_explicit(&made, memory_order_relaxed);
}

void standin_count_made(void)
{
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
}

/* Under the mutex. The queue with the fewest streams. */
static unsigned choose_queue(const standin_context_t *context)
{
    unsigned load[MOST_QUEUES] = {0}, least = 0;

    for (const stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
        if (stream->context == context && !stream->is_default) {
            load[stream->queue]++;
        }
    }
    for (unsigned queue = 1; queue < MOST_QUEUES; queue++) {
        if (load[queue] < load[least]) {
            least = queue;
        }
    }
    return least;
}

/* Under the mutex. */
static stream_t *add_stream(standin_context_t *context, stream_t like)
{
    stream_t *stream = malloc(sizeof(*stream));

    if (stream == NULL) {
        return NULL;
    }
    *stream = like;
    stream->context = context;
    stream->queue = choose_queue(context);
    stream->next = standin_all;
    standin_all = stream;
    return stream;
}

/* Under the mutex. One for all threads. */
static stream_t *default_stream(standin_context_t *context, bool legacy)
{
    if (context == NULL) {
        return NULL;
    }
    for (stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
        if (stream->context == context && stream->is_default && stream->is_legacy == legacy) {
            return stream;
        }
    }
    return add_stream(context,
                      (stream_t){.is_default = true, .is_legacy = legacy, .is_blocking = !legacy});
}

stream_t *standin_meant(stream_t *stream)
{
    return stream == NULL || stream == LEGACY ? default_stream(standin_context(), true)
           : stream == PER_THREAD             ? default_stream(standin_context(), false)
                                              : stream;
}

int standin_streams(void)
{
    int count = 0;

    pthread_mutex_lock(&standin_mutex);
    for (const stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
        count += !stream->is_default;
    }
    pthread_mutex_unlock(&standin_mutex);
    return count;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return standin_enter("cuCtxGetStreamPriorityRange");
}

int cuStreamCreateWithPriority(stream_t **stream, unsigned flags, int priority)
{
    int result = standin_enter("cuStreamCreateWithPriority");

    (void) priority;
    if (result != SUCCESS || standin_context() == NULL) {
        return result == SUCCESS ? INVALID_CONTEXT : result == UNKNOWN ? OUT_OF_MEMORY : result;
    }
    pthread_mutex_lock(&standin_mutex);
    *stream = add_stream(standin_context(), (stream_t){.is_blocking = flags != NON_BLOCKING});
    pthread_mutex_unlock(&standin_mutex);
    standin_count_made();
    return *stream == NULL ? OUT_OF_MEMORY : SUCCESS;
}

int cuStreamCreate(stream_t **made_stream, unsigned flags)
{
    return cuStreamCreateWithPriority(made_stream, flags, 0);
}

int cuStreamGetCtx(stream_t *stream, standin_context_t **context)
{
    standin_not_in_callback("cuStreamGetCtx");
    if (standin_fails("cuStreamGetCtx")) {
        return UNKNOWN;
    }
    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(stream);
    *context = stream == NULL ? NULL : stream->context;
    pthread_mutex_unlock(&standin_mutex);
    return *context == NULL ? INVALID_CONTEXT : SUCCESS;
}

/* Under the mutex: it holds nothing any more. */
static void remove_stream(stream_t *stream)
{
    stream_t **link = &standin_all;

    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    free(stream);
}

/* Nobody destroys the default streams: the process ends with them. What still runs stays. */
__attribute__((destructor)) static void remove_default_streams(void)
{
    pthread_mutex_lock(&standin_mutex);
    for (stream_t *stream = standin_all, *next; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->is_default && stream->first == NULL && !stream->runs) {
            remove_stream(stream);
        }
    }
    pthread_mutex_unlock(&standin_mutex);
}

int cuStreamDestroy_v2(stream_t *stream)
{
    int result;

    standin_not_in_callback("cuStreamDestroy");
    pthread_mutex_lock(&standin_mutex);
    while (stream->first != NULL || stream->runs) {
        for (const action_t *action = stream->first; action != NULL; action = action->next) {
            if (standin_is_work(action) && standin_error(stream->context) == SUCCESS) {
                standin_forbidden("a stream is destroyed that holds something"); /* flash waits */
            }
        }
        if (stream->works) {
            standin_forbidden("a stream is destroyed that works");
        }
        standin_drop_actions(stream, false);
        if (stream->runs) {
            pthread_cond_wait(&standin_changed, &standin_mutex);
        }
    }
    result = standin_error(stream->context);
    remove_stream(stream);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

void standin_drop_streams(standin_context_t *context)
{
    pthread_mutex_lock(&standin_mutex);
    for (stream_t *stream = standin_all, *next; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->context == context) {
            standin_drop_actions(stream, false);
            while (stream->runs) {
                pthread_cond_wait(&standin_changed, &standin_mutex);
            }
            next = stream->next;
            remove_stream(stream);
        }
    }
    pthread_mutex_unlock(&standin_mutex);
}

static bool is_busy(const stream_t *stream)
{
    return stream->first != NULL || stream->runs || stream->held != NULL;
}

/* Under the mutex. What comes to the legacy stream comes behind the blocking ones. */
static bool holds_something(const stream_t *stream)
{
    bool busy = is_busy(stream);

    for (const stream_t *other = standin_all; stream->is_legacy && other != NULL;
         other = other->next) {
        busy = busy || (other->context == stream->context && other->is_blocking && is_busy(other));
    }
    return busy;
}

void standin_wait_for(const stream_t *stream)
{
    while (holds_something(stream)) {
        pthread_cond_wait(&standin_changed, &standin_mutex);
    }
}

void standin_wait_for_all(void)
{
    const stream_t *stream;

    pthread_mutex_lock(&standin_mutex);
    do { /* more may come meanwhile */
        for (stream = standin_all; stream != NULL && !is_busy(stream); stream = stream->next) {
        }
        if (stream != NULL) {
            pthread_cond_wait(&standin_changed, &standin_mutex);
        }
    } while (stream != NULL);
    pthread_mutex_unlock(&standin_mutex);
}

/* Under the mutex, of a stream that is not to be looked at while it is captured. */
static int look_at(stream_t *stream)
{
    int result = standin_usable(stream);

    if (result == SUCCESS && stream->captured) {
        stream->spoiled = true;
        result = CAPTURE_UNSUPPORTED;
    }
    return result;
}

int cuStreamSynchronize(stream_t *stream)
{
    int result;

    standin_not_in_callback("cuStreamSynchronize");
    result = standin_unsafe();
    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(stream);
    result = result == SUCCESS ? look_at(stream) : result;
    if (result == SUCCESS) {
        standin_wait_for(stream);
        result = standin_error(stream->context);
    }
    pthread_mutex_unlock(&standin_mutex);
    return standin_fails("cuStreamSynchronize") ? UNKNOWN : result;
}

int cuStreamQuery(stream_t *stream)
{
    int result = standin_enter("cuStreamQuery");

    result = result == SUCCESS ? standin_unsafe() : result;
    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(stream);
    result = result == SUCCESS ? look_at(stream) : result;
    if (result == SUCCESS && holds_something(stream)) {
        result = NOT_READY;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}
