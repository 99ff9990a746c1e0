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
#include <stdlib.h>
#include <string.h>

typedef struct stream stream_t;
typedef void callback_fn(stream_t *stream, int result, void *arg);

/* A copy, or a callback. */
typedef struct action {
    uintptr_t to, from;
    size_t size;
    callback_fn *callback;
    void *arg;
    struct action *next;
} action_t;

struct stream {
    action_t *first, *last;
    bool runs;  /* an action that is in no queue any more */
    bool ends;  /* destroyed: goes away when it is empty */
    int result; /* of the first copy that failed: then there are no more */
    stream_t *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static stream_t *streams;
static bool has_thread;

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
    return standin_fails("copy") ? UNKNOWN : copy_now(action->to, action->from, action->size);
}

static void run(stream_t *stream, const action_t *action)
{
    if (action->callback != NULL) {
        action->callback(stream, stream->result, action->arg);
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
        if (stream->first != NULL && (unsigned) rand_r(random) % ++ready == 0) {
            chosen = stream;
        }
    }
    return chosen;
}

static void free_if_ended(stream_t *stream)
{
    stream_t **link = &streams;

    if (stream->ends && stream->first == NULL && !stream->runs) {
        while (*link != stream) {
            link = &(*link)->next;
        }
        *link = stream->next;
        free(stream);
    }
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
        pthread_mutex_unlock(&mutex);
        run(stream, action);
        free(action);
        pthread_mutex_lock(&mutex);
        stream->runs = false;
        free_if_ended(stream);
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
    if (!has_thread) {
        start_thread();
    }
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&mutex);
    *made = stream;
    return SUCCESS;
}

int cuStreamDestroy_v2(stream_t *stream)
{
    pthread_mutex_lock(&mutex);
    stream->ends = true;
    free_if_ended(stream);
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

int cuStreamSynchronize(stream_t *stream)
{
    int result;

    pthread_mutex_lock(&mutex);
    while (stream->first != NULL || stream->runs) {
        pthread_cond_wait(&changed, &mutex);
    }
    result = stream->result;
    pthread_mutex_unlock(&mutex);
    return result;
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

/* For tests, which these do not fail. */
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size)
{
    return copy_now(to, (uintptr_t) from, size);
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size)
{
    return copy_now((uintptr_t) to, from, size);
}

int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t size, stream_t *stream)
{
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
    for (const stream_t *stream = streams; stream != NULL; stream = stream->next) {
        count += !stream->ends;
    }
    pthread_mutex_unlock(&mutex);
    return count;
}
