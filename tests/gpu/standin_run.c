/*
 * standin_run.c: runs the streams of the stand-in driver, and what comes into them; see standin.h.
 *
 * One thread runs what all streams hold, the oldest of a random one at a time. What an action does
 * it does without `standin_mutex`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_streams.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

static unsigned long numbers;
static bool has_thread;
static long lag; /* under the mutex */

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

static long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void standin_lag(unsigned milliseconds)
{
    pthread_mutex_lock(&standin_mutex);
    lag = milliseconds;
    pthread_cond_broadcast(&standin_changed);
    pthread_mutex_unlock(&standin_mutex);
}

static bool is_copy_that_has_returned(const action_t *action)
{
    return action->owned != NULL && action->size > 0;
}

static bool is_ready(const stream_t *stream)
{
    const action_t *action = stream->first;

    if (action == NULL || stream->held != NULL || (lag > 0 && now() < action->begins) ||
        (action->behind != NULL && !action->behind->done)) {
        return false;
    }
    for (const stream_t *other = standin_all; other != NULL; other = other->next) {
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

    for (stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
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
void standin_drop_actions(stream_t *stream, bool some_callbacks)
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
    for (stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
        if (stream->context == context) {
            standin_drop_actions(stream, true);
        }
    }
}

/* Waiting alone may be given up. */
bool standin_is_work(const action_t *action)
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
    stream->works = standin_is_work(action) && action->callback == NULL; /* that may be returning */
    stream->copies = is_copy_that_has_returned(action);
    pthread_mutex_unlock(&standin_mutex);
    error = standin_run(stream, action);
    pthread_mutex_lock(&standin_mutex);
    stream->runs = stream->works = stream->copies = false;
    end_action(action);
    if (error != SUCCESS) {
        break_context(stream->context, error);
    }
}

/* Under the mutex. What is late becomes ready by itself. */
static void wait_for_work(void)
{
    struct timespec soon;

    if (lag == 0) {
        pthread_cond_wait(&standin_changed, &standin_mutex);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 1000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&standin_changed, &standin_mutex, &soon);
}

static void *thread_main(void *arg)
{
    unsigned random = 1;

    (void) arg;
    pthread_mutex_lock(&standin_mutex);
    for (;;) {
        stream_t *stream = choose(&random);

        if (stream == NULL) {
            wait_for_work();
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
    action->begins = is_copy_that_has_returned(action) ? now() + lag : 0;
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
        for (const stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
            for (const action_t *action = stream->first; action != NULL; action = action->next) {
                found = found || (is_copy_that_has_returned(action) && action->to >= begin &&
                                  action->to - begin < size);
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
    for (stream_t *stream = standin_all; stream != NULL; stream = stream->next) {
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
