/*
 * standin_streams.c: streams of the stand-in driver; see standin.h.
 *
 * One thread runs what all streams hold, the oldest of a random one at a time. `mutex` orders the
 * streams and their queues; copies and callbacks run outside it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream stream_t;
typedef void callback_fn(stream_t *stream, int result, void *arg);

/* A copy, a callback, or waiting for another stream. */
typedef struct action {
    uintptr_t to, from;
    size_t size;
    void *owned; /* freed with the action */
    callback_fn *callback;
    void *arg;
    unsigned long after; /* so many actions of the default stream are done */
    struct action *next;
} action_t;

struct stream {
    action_t *first, *last;
    unsigned long held, done; /* actions, ever */
    bool runs;                /* an action that is in no queue any more */
    bool works;               /* and more than waiting */
    int result;               /* of the first copy that failed: then there are no more */
    stream_t *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static stream_t default_stream; /* never destroyed; the threads' own are never used */
static stream_t *streams = &default_stream;
static bool has_thread;
static _Thread_local bool in_callback;

/* Handles that stand for the default streams. */
#define LEGACY     ((stream_t *) 1)
#define PER_THREAD ((stream_t *) 2)

typedef struct event {
    unsigned long after; /* of the default stream */
} event_t;

static void forbidden(const char *what)
{
    fprintf(stderr, "stand-in driver: %s\n", what);
    abort();
}

void standin_not_in_callback(const char *name)
{
    if (in_callback) {
        forbidden(name);
    }
}

static int copy_now(uintptr_t to, uintptr_t from, size_t size)
{
    void *target = standin_reach(to, size);
    const void *source = standin_reach(from, size);

    if (target == NULL || source == NULL) {
        return ILLEGAL_ADDRESS;
    }
    memcpy(target, source, size);
    return SUCCESS;
}

static int copy(const action_t *action)
{
    /* Those that a test has begun do not fail. */
    return action->owned == NULL && standin_fails("copy")
               ? UNKNOWN
               : copy_now(action->to, action->from, action->size);
}

static void run(stream_t *stream, const action_t *action)
{
    if (action->callback != NULL) {
        in_callback = true;
        action->callback(stream, stream->result, action->arg);
        in_callback = false;
    } else if (action->size == 0) {
        return;
    } else if (stream->result == SUCCESS) {
        stream->result = copy(action);
    }
}

/* Under the mutex: one that holds something, at random; NULL: none does. */
static stream_t *choose(unsigned *random)
{
    stream_t *chosen = NULL;
    unsigned ready = 0;

    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
        if (stream->first != NULL && stream->first->after <= default_stream.done &&
            (unsigned) rand_r(random) % ++ready == 0) {
            chosen = stream;
        }
    }
    return chosen;
}

/* Waiting alone may be given up. */
static bool is_work(const action_t *action)
{
    return action->size > 0 || action->callback != NULL;
}

static void *thread_main(void *arg)
{
    unsigned random = 1;

    (void) arg;
    pthread_mutex_lock(&mutex);
    for (;;) {
        stream_t *stream = choose(&random);
        action_t *action;

        if (stream == NULL) {
            pthread_cond_wait(&changed, &mutex);
            continue;
        }
        action = stream->first;
        stream->first = action->next;
        stream->runs = true;
        stream->works = is_work(action);
        pthread_mutex_unlock(&mutex);
        run(stream, action);
        free(action->owned);
        free(action);
        pthread_mutex_lock(&mutex);
        stream->runs = stream->works = false;
        stream->done++;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static void start_thread(void)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0) {
        abort();
    }
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    has_thread = true;
}

int cuStreamCreate(stream_t **made, unsigned flags)
{
    stream_t *stream;

    (void) flags;
    standin_not_in_callback("cuStreamCreate");
    if (!standin_has_context()) {
        return INVALID_CONTEXT;
    }
    if (standin_fails("cuStreamCreate")) {
        return OUT_OF_MEMORY;
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&mutex);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&mutex);
    *made = stream;
    return SUCCESS;
}

int cuStreamDestroy_v2(stream_t *stream)
{
    stream_t **link = &streams;
    action_t *action;

    standin_not_in_callback("cuStreamDestroy");
    pthread_mutex_lock(&mutex);
    while ((action = stream->first) != NULL || stream->runs) {
        if (stream->works || (action != NULL && is_work(action))) {
            forbidden(
                "cuStreamDestroy of a stream that holds something"); /* flash waits for that */
        }
        if (action != NULL) {
            stream->first = action->next;
            free(action);
        } else {
            pthread_cond_wait(&changed, &mutex);
        }
    }
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    pthread_mutex_unlock(&mutex);
    free(stream);
    return SUCCESS;
}

/* Under the mutex. */
static void wait_for(const stream_t *stream)
{
    while (stream->first != NULL || stream->runs) {
        pthread_cond_wait(&changed, &mutex);
    }
}

void standin_wait_for_all(void)
{
    unsigned long held;

    pthread_mutex_lock(&mutex);
    do { /* more may come meanwhile */
        held = 0;
        for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
            held += stream->first != NULL || stream->runs;
        }
        if (held > 0) {
            pthread_cond_wait(&changed, &mutex);
        }
    } while (held > 0);
    pthread_mutex_unlock(&mutex);
}

int cuStreamSynchronize(stream_t *stream)
{
    int result;

    standin_not_in_callback("cuStreamSynchronize");
    pthread_mutex_lock(&mutex);
    wait_for(stream);
    result = stream->result;
    pthread_mutex_unlock(&mutex);
    return standin_fails("cuStreamSynchronize") ? UNKNOWN : result;
}

static int enqueue(stream_t *stream, action_t what)
{
    action_t *action;

    if (!standin_has_context()) {
        return INVALID_CONTEXT;
    }
    action = malloc(sizeof(*action));
    if (action == NULL) {
        return OUT_OF_MEMORY;
    }
    *action = what;
    pthread_mutex_lock(&mutex);
    if (!has_thread) {
        start_thread();
    }
    stream->held++;
    if (stream->first == NULL) {
        stream->first = action;
    } else {
        stream->last->next = action;
    }
    stream->last = action;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

/* May return before the device has it. */
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size)
{
    void *kept = malloc(size + 1);

    if (kept == NULL) {
        return OUT_OF_MEMORY;
    }
    memcpy(kept, from, size);
    return enqueue(&default_stream,
                   (action_t){.to = to, .from = (uintptr_t) kept, .size = size, .owned = kept});
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size)
{
    pthread_mutex_lock(&mutex);
    wait_for(&default_stream);
    pthread_mutex_unlock(&mutex);
    return copy_now((uintptr_t) to, from, size);
}

int cuStreamIsCapturing(stream_t *stream, int *status)
{
    *status = 0;
    return stream == LEGACY || stream == PER_THREAD ? SUCCESS : INVALID_HANDLE;
}

int cuEventCreate(event_t **event, unsigned flags)
{
    (void) flags;
    standin_not_in_callback("cuEventCreate");
    if (standin_fails("cuEventCreate")) {
        return OUT_OF_MEMORY;
    }
    *event = calloc(1, sizeof(**event));
    return *event == NULL ? OUT_OF_MEMORY : SUCCESS;
}

int cuEventDestroy_v2(event_t *event)
{
    free(event);
    return SUCCESS;
}

int cuEventRecord(event_t *event, stream_t *stream)
{
    if (standin_fails("cuEventRecord")) {
        return UNKNOWN;
    }
    if (stream != LEGACY && stream != PER_THREAD) {
        return INVALID_HANDLE;
    }
    pthread_mutex_lock(&mutex);
    event->after = stream == LEGACY ? default_stream.held : 0;
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

int cuStreamWaitEvent(stream_t *stream, const event_t *event, unsigned flags)
{
    (void) flags;
    if (standin_fails("cuStreamWaitEvent")) {
        return UNKNOWN;
    }
    return enqueue(stream, (action_t){.after = event->after});
}

int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t size, stream_t *stream)
{
    standin_not_in_callback("cuMemcpyAsync");
    if (standin_fails("cuMemcpyAsync")) {
        return UNKNOWN;
    }
    return enqueue(stream, (action_t){.to = to, .from = from, .size = size});
}

int cuStreamAddCallback(stream_t *stream, callback_fn *callback, void *arg, unsigned flags)
{
    (void) flags;
    if (standin_fails("cuStreamAddCallback")) {
        return UNKNOWN;
    }
    return enqueue(stream, (action_t){.callback = callback, .arg = arg});
}

int standin_streams(void)
{
    int count = 0;

    pthread_mutex_lock(&mutex);
    for (const stream_t *stream = streams; stream != &default_stream; stream = stream->next) {
        count++;
    }
    pthread_mutex_unlock(&mutex);
    return count;
}
