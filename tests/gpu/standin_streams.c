/*
 * standin_streams.c: runs the streams of the stand-in driver; see standin.h.
 *
 * One thread runs what all streams hold, the oldest of a random one at a time. What an action does it
 * does without `standin_mutex`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_streams.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* CUDA_DEVICE_MAX_CONNECTIONS, as it is where nobody has set it. */
enum { MOST_QUEUES = 8 };
enum { NON_BLOCKING = 1, RELAXED = 2 };

pthread_mutex_t standin_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t standin_changed = PTHREAD_COND_INITIALIZER;
static stream_t *streams;
static unsigned long numbers;
static bool has_thread;
static atomic_ulong made;

/* Handles that stand for the default streams. */
#define LEGACY     ((stream_t *) 1)
#define PER_THREAD ((stream_t *) 2)

unsigned long standin_made(void)
{
    return atomic_load_explicit(&made, memory_order_relaxed);
}

void standin_count_made(void);
void standin_count_made(void)
{
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------- which there are */

/* Under the mutex. The queue with the fewest streams. */
static unsigned choose_queue(const standin_context_t *context)
{
    unsigned load[MOST_QUEUES] = {0}, least = 0;

    for (const stream_t *stream = streams; stream != NULL; stream = stream->next) {
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
    stream->next = streams;
    streams = stream;
    return stream;
}

/* Under the mutex. One for all threads. */
static stream_t *default_stream(standin_context_t *context, bool legacy)
{
    if (context == NULL) {
        return NULL;
    }
    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
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
    for (const stream_t *stream = streams; stream != NULL; stream = stream->next) {
        count += !stream->is_default;
    }
    pthread_mutex_unlock(&standin_mutex);
    return count;
}

/* -------------------------------------------------------------------- in which order */

/* Whether a stream holds something from before that. */
static bool is_before(const stream_t *stream, unsigned long number)
{
    return (stream->runs && stream->runs_now < number) ||
           (stream->held != NULL && stream->held->number < number) ||
           (stream->first != NULL && stream->first->number < number);
}

/* Whether something of another stream's keeps this one from its next action. */
static bool keeps_back(const stream_t *other, const stream_t *stream)
{
    unsigned long number = stream->first->number;

    if (other == stream || other->context != stream->context) {
        return false;
    }
    if ((stream->is_legacy && other->is_blocking) || (stream->is_blocking && other->is_legacy)) {
        return is_before(other, number);
    }
    /* What has not begun stands in the queue. */
    return !stream->is_default && !other->is_default && stream->queue == other->queue &&
           other->first != NULL && other->first->number < number;
}

static bool is_ready(const stream_t *stream)
{
    const action_t *action = stream->first;

    if (action == NULL || stream->held != NULL ||
        (action->behind != NULL && !action->behind->done)) {
        return false;
    }
    for (const stream_t *other = streams; other != NULL; other = other->next) {
        if (keeps_back(other, stream)) {
            return false;
        }
    }
    return true;
}

/* Under the mutex: one that can go on, at random; NULL: none can. */
static stream_t *choose(unsigned *random)
{
    stream_t *chosen = NULL;
    unsigned ready = 0;

    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
        if (is_ready(stream) && (unsigned) rand_r(random) % ++ready == 0) {
            chosen = stream;
        }
    }
    return chosen;
}

/* ----------------------------------------------------------------------- the thread */

void standin_forget_mark(mark_t *mark)
{
    if (mark != NULL && --mark->references == 0) {
        free(mark);
    }
}

/* Under the mutex. */
static void end_action(action_t *action)
{
    if (action->mark != NULL) {
        action->mark->done = true;
    }
    standin_forget_mark(action->mark);
    standin_forget_mark(action->behind);
    free(action->owned);
    free(action);
}

/* Under the mutex. Callbacks of a context that is broken may come, or not. */
static void drop_actions(stream_t *stream, bool some_callbacks)
{
    action_t *action = stream->first;

    stream->first = stream->last = NULL;
    if (stream->held != NULL) {
        end_action(stream->held);
        stream->held = NULL;
    }
    for (action_t *next; action != NULL; action = next) {
        next = action->next;
        if (some_callbacks && action->callback != NULL && standin_chance()) {
            action->next = NULL;
            *(stream->first == NULL ? &stream->first : &stream->last->next) = action;
            stream->last = action;
        } else {
            if (action->freed != 0) {
                standin_release(action->freed);
            }
            end_action(action);
        }
    }
}

/* Under the mutex. */
static void break_context(standin_context_t *context, int error)
{
    standin_break(context, error);
    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
        if (stream->context == context) {
            drop_actions(stream, true);
        }
    }
}

/* Waiting alone may be given up. */
static bool is_work(const action_t *action)
{
    return action->size > 0 || action->kernel != NULL || action->function != NULL ||
           action->callback != NULL || action->host != NULL || action->held;
}

/* Under the mutex, but for the work itself. */
static void run_next(stream_t *stream)
{
    action_t *action = stream->first;
    int error;

    stream->first = action->next;
    if (action->held) {
        stream->held = action;
        return;
    }
    stream->runs = true;
    stream->runs_now = action->number;
    stream->works = is_work(action) && action->callback == NULL; /* that may be returning */
    stream->copies = action->owned != NULL && action->size > 0;
    pthread_mutex_unlock(&standin_mutex);
    error = standin_run(stream, action);
    pthread_mutex_lock(&standin_mutex);
    stream->runs = stream->works = stream->copies = false;
    end_action(action);
    if (error != SUCCESS) {
        break_context(stream->context, error);
    }
}

static void *thread_main(void *arg)
{
    unsigned random = 1;

    (void) arg;
    pthread_mutex_lock(&standin_mutex);
    for (;;) {
        stream_t *stream = choose(&random);

        if (stream == NULL) {
            pthread_cond_wait(&standin_changed, &standin_mutex);
        } else {
            run_next(stream);
            pthread_cond_broadcast(&standin_changed);
        }
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

/* -------------------------------------------------------------------------- capture */

/* Whether the calling thread may not do what a capture does not see. Under the mutex. */
static bool is_prohibited(void)
{
    int mode = standin_capture_mode();

    for (const stream_t *stream = streams; stream != NULL && mode != RELAXED;
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

    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
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
    for (const stream_t *other = streams; result == SUCCESS && other != NULL; other = other->next) {
        if (stream->is_legacy && other->context == stream->context && other->is_blocking &&
            other->captured) {
            result = CAPTURE_IMPLICIT;
        }
    }
    *status = result == SUCCESS ? stream->captured + stream->spoiled : 1;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

/* -------------------------------------------------------------------------- streams */

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
    stream_t **link = &streams;

    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    free(stream);
}

int cuStreamDestroy_v2(stream_t *stream)
{
    int result;

    standin_not_in_callback("cuStreamDestroy");
    pthread_mutex_lock(&standin_mutex);
    while (stream->first != NULL || stream->runs) {
        for (const action_t *action = stream->first; action != NULL; action = action->next) {
            if (is_work(action) && standin_error(stream->context) == SUCCESS) {
                standin_forbidden("a stream is destroyed that holds something"); /* flash waits */
            }
        }
        if (stream->works) {
            standin_forbidden("a stream is destroyed that works");
        }
        drop_actions(stream, false);
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
    for (stream_t *stream = streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->context == context) {
            drop_actions(stream, false);
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

    for (const stream_t *other = streams; stream->is_legacy && other != NULL; other = other->next) {
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
        for (stream = streams; stream != NULL && !is_busy(stream); stream = stream->next) {
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

/* -------------------------------------------------------------- what comes into them */

/* Under the mutex: SUCCESS, or why not; *records: a graph takes it. */
static int admit(stream_t *stream, bool *records)
{
    int result = standin_context() == NULL ? INVALID_CONTEXT : standin_usable(stream);

    *records = result == SUCCESS && stream->captured;
    if (*records && !standin_is_exempt()) {
        standin_forbidden("work in a stream that is captured");
    }
    return result;
}

/* Under the mutex. */
static void append(stream_t *stream, action_t *action)
{
    action->number = ++numbers;
    if (stream->first == NULL) {
        stream->first = action;
    } else {
        stream->last->next = action;
    }
    stream->last = action;
    pthread_cond_broadcast(&standin_changed);
}

int standin_enqueue(stream_t *stream, action_t what)
{
    action_t *action = malloc(sizeof(*action));
    bool records;
    int result;

    if (action == NULL) {
        abort();
    }
    *action = what;
    action->exempt = standin_is_exempt();
    pthread_mutex_lock(&standin_mutex);
    if (!has_thread) {
        start_thread();
    }
    stream = standin_meant(stream);
    result = admit(stream, &records);
    if (result == SUCCESS && !records) {
        append(stream, action);
    } else {
        end_action(action);
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

void standin_wait_for_copies(uintptr_t begin, size_t size)
{
    bool found;

    pthread_mutex_lock(&standin_mutex);
    do {
        found = false;
        for (const stream_t *stream = streams; stream != NULL; stream = stream->next) {
            for (const action_t *action = stream->first; action != NULL; action = action->next) {
                found = found || (action->owned != NULL && action->size > 0 &&
                                  action->to >= begin && action->to - begin < size);
            }
            found = found || stream->copies;
        }
        if (found) {
            pthread_cond_wait(&standin_changed, &standin_mutex);
        }
    } while (found);
    pthread_mutex_unlock(&standin_mutex);
}

void *standin_begin_kernel(void *stream)
{
    mark_t *mark = calloc(1, sizeof(*mark));

    if (mark == NULL) {
        abort();
    }
    mark->references = 2;
    if (standin_enqueue(stream, (action_t){.held = true, .mark = mark}) == SUCCESS) {
        return mark;
    }
    free(mark);
    return NULL;
}

/* The mark is that of the action which is to end. */
void standin_end_kernel(void *kernel)
{
    mark_t *mark = kernel;

    pthread_mutex_lock(&standin_mutex);
    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
        if (stream->held != NULL && stream->held->mark == mark) {
            end_action(stream->held);
            stream->held = NULL;
        }
        for (action_t *action = stream->first; action != NULL; action = action->next) {
            if (action->mark == mark) {
                action->held = false; /* it has not begun */
            }
        }
    }
    standin_forget_mark(mark);
    pthread_cond_broadcast(&standin_changed);
    pthread_mutex_unlock(&standin_mutex);
}
