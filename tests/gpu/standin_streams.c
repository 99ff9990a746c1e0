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
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream stream_t;
typedef void callback_fn(stream_t *stream, int result, void *arg);

/* A copy, a kernel, a callback, freeing memory, or waiting for another stream. */
typedef struct action {
    uintptr_t to, from;
    size_t size;
    void *owned; /* freed with the action */
    const standin_kernel_t *kernel;
    uintptr_t with;
    size_t count, threads;
    int (*function)(void *arg);
    callback_fn *callback;
    void *arg;
    uintptr_t freed;
    bool exempt;            /* of a test's: does not fail */
    const stream_t *behind; /* NULL: none */
    unsigned long after;    /* so many actions of that stream are done */
    struct action *next;
} action_t;

struct stream {
    action_t *first, *last;
    unsigned long held, done; /* actions, ever */
    bool runs;                /* an action that is in no queue any more */
    bool works;               /* and more than waiting */
    int result;               /* of the first copy that failed: then there are no more */
    void *context;
    bool captured;
    stream_t *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static stream_t default_stream;                         /* never destroyed */
static stream_t per_thread = {.next = &default_stream}; /* all threads' */
static stream_t *streams = &per_thread;
static bool has_thread;
static atomic_ulong launches;
/* What nvcc's output begins with. */
#define FATBIN UINT32_C(0xba55ed50)
static _Thread_local bool in_callback;

/* Handles that stand for the default streams. */
#define LEGACY     ((stream_t *) 1)
#define PER_THREAD ((stream_t *) 2)

typedef struct event {
    const stream_t *stream;
    unsigned long after;
} event_t;

static stream_t *meant(stream_t *stream)
{
    return stream == NULL || stream == LEGACY ? &default_stream
           : stream == PER_THREAD             ? &per_thread
                                              : stream;
}

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
    return !action->exempt && standin_fails("copy")
               ? UNKNOWN
               : copy_now(action->to, action->from, action->size);
}

static int compute(const action_t *action)
{
    size_t bytes = action->count * action->kernel->element;
    const void *in = standin_reach_far(action->from, bytes);
    const void *inout = standin_reach_far(action->with, bytes);
    void *out = standin_reach_far(action->to, bytes);

    if (in == NULL || inout == NULL || out == NULL) {
        return ILLEGAL_ADDRESS;
    }
    if (standin_fails("kernel")) {
        return UNKNOWN;
    }
    for (size_t thread = 0; thread < action->threads; thread++) {
        action->kernel->run(in, inout, out, action->count, thread, action->threads);
    }
    return SUCCESS;
}

static void run(stream_t *stream, const action_t *action)
{
    if (action->callback != NULL) {
        in_callback = true;
        action->callback(stream, stream->result, action->arg);
        in_callback = false;
    } else if (action->behind != NULL && stream->result == SUCCESS) {
        stream->result = action->behind->result; /* a context's errors are all of its streams' */
    } else if (action->freed != 0) {
        standin_release(action->freed);
    } else if (stream->result == SUCCESS && action->kernel != NULL) {
        stream->result = compute(action);
    } else if (stream->result == SUCCESS && action->function != NULL) {
        stream->result = action->function(action->owned);
    } else if (stream->result == SUCCESS && action->size > 0) {
        stream->result = copy(action);
    }
}

/* Under the mutex: one that holds something, at random; NULL: none does. */
static stream_t *choose(unsigned *random)
{
    stream_t *chosen = NULL;
    unsigned ready = 0;

    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
        if (stream->first != NULL &&
            (stream->first->behind == NULL ||
             stream->first->after <= stream->first->behind->done) &&
            (unsigned) rand_r(random) % ++ready == 0) {
            chosen = stream;
        }
    }
    return chosen;
}

/* Waiting alone may be given up. */
static bool is_work(const action_t *action)
{
    return action->size > 0 || action->kernel != NULL || action->function != NULL ||
           action->callback != NULL;
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
        stream->works = is_work(action) && action->callback == NULL; /* that may be returning */
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

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    standin_not_in_callback("cuCtxGetStreamPriorityRange");
    *least = 0;
    *greatest = -5;
    return standin_fails("cuCtxGetStreamPriorityRange") ? UNKNOWN : SUCCESS;
}

int cuStreamCreateWithPriority(stream_t **made, unsigned flags, int priority)
{
    stream_t *stream;

    (void) flags;
    (void) priority;
    standin_not_in_callback("cuStreamCreateWithPriority");
    if (standin_context() == NULL) {
        return INVALID_CONTEXT;
    }
    if (standin_fails("cuStreamCreateWithPriority")) {
        return OUT_OF_MEMORY;
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return OUT_OF_MEMORY;
    }
    stream->context = standin_context();
    pthread_mutex_lock(&mutex);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&mutex);
    *made = stream;
    return SUCCESS;
}

int cuStreamCreate(stream_t **made, unsigned flags)
{
    return cuStreamCreateWithPriority(made, flags, 0);
}

int cuStreamGetCtx(stream_t *stream, void **context)
{
    standin_not_in_callback("cuStreamGetCtx");
    if (standin_fails("cuStreamGetCtx")) {
        return UNKNOWN;
    }
    stream = meant(stream);
    *context =
        stream == &default_stream || stream == &per_thread ? standin_context() : stream->context;
    return *context == NULL ? INVALID_CONTEXT : SUCCESS;
}

int cuStreamBeginCapture_v2(stream_t *stream, int mode)
{
    (void) mode;
    meant(stream)->captured = true;
    return SUCCESS;
}

int cuStreamEndCapture(stream_t *stream, void **graph)
{
    meant(stream)->captured = false;
    *graph = NULL;
    return SUCCESS;
}

/* Under the mutex: all that it held is done. */
static void forget(const stream_t *gone)
{
    for (stream_t *stream = streams; stream != NULL; stream = stream->next) {
        for (action_t *action = stream->first; action != NULL; action = action->next) {
            if (action->behind == gone) {
                action->behind = NULL;
            }
        }
    }
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
    forget(stream);
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
    stream = meant(stream);
    pthread_mutex_lock(&mutex);
    wait_for(stream);
    result = stream->result;
    pthread_mutex_unlock(&mutex);
    return standin_fails("cuStreamSynchronize") ? UNKNOWN : result;
}

static int enqueue(stream_t *stream, action_t what)
{
    action_t *action;

    stream = meant(stream);
    if (standin_context() == NULL) {
        return INVALID_CONTEXT;
    }
    if (stream->captured) {
        forbidden("work in a stream that is captured");
    }
    action = malloc(sizeof(*action));
    if (action == NULL) {
        return OUT_OF_MEMORY;
    }
    *action = what;
    action->exempt = standin_is_exempt();
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
    *status = meant(stream)->captured;
    return SUCCESS;
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
    stream = meant(stream);
    if (stream->captured) {
        forbidden("cuEventRecord in a stream that is captured");
    }
    pthread_mutex_lock(&mutex);
    *event = (event_t){.stream = stream, .after = stream->held};
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

int cuEventQuery(const event_t *event)
{
    int result = SUCCESS;

    pthread_mutex_lock(&mutex);
    if (event->stream != NULL) {
        result = event->stream->done < event->after ? NOT_READY : event->stream->result;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

int cuEventSynchronize(const event_t *event)
{
    pthread_mutex_lock(&mutex);
    while (event->stream != NULL && event->stream->done < event->after) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return cuEventQuery(event);
}

int cuStreamWaitEvent(stream_t *stream, const event_t *event, unsigned flags)
{
    (void) flags;
    if (standin_fails("cuStreamWaitEvent")) {
        return UNKNOWN;
    }
    return enqueue(stream, (action_t){.behind = event->stream, .after = event->after});
}

int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t size, stream_t *stream)
{
    standin_not_in_callback("cuMemcpyAsync");
    if (standin_fails("cuMemcpyAsync")) {
        return UNKNOWN;
    }
    return enqueue(stream, (action_t){.to = to, .from = from, .size = size});
}

int cuMemFreeAsync(unsigned long long address, stream_t *stream)
{
    standin_not_in_callback("cuMemFreeAsync");
    return enqueue(stream, (action_t){.freed = address});
}

int cuLibraryLoadData(void **library, const void *code, void *options, void *values, unsigned count,
                      void *library_options, void *library_values, unsigned library_count)
{
    static int the_library;

    (void) options;
    (void) values;
    (void) library_options;
    (void) library_values;
    standin_not_in_callback("cuLibraryLoadData");
    *library = &the_library;
    return standin_fails("cuLibraryLoadData")                   ? UNKNOWN
           : count != 0 || library_count != 0                   ? INVALID_VALUE
           : code == NULL || *(const uint32_t *) code != FATBIN ? INVALID_IMAGE
                                                                : SUCCESS;
}

int cuLibraryGetKernel(const standin_kernel_t **kernel, const void *library, const char *name)
{
    (void) library;
    *kernel = standin_find_kernel(name);
    if (*kernel == NULL) {
        *kernel = standin_find_layer_kernel(name);
    }
    return *kernel == NULL ? NOT_FOUND : SUCCESS;
}

int cuLibraryUnload(void *library)
{
    (void) library;
    return SUCCESS;
}

int cuKernelGetFunction(const standin_kernel_t **function, const standin_kernel_t *kernel)
{
    *function = kernel;
    return standin_context() == NULL ? INVALID_CONTEXT : SUCCESS;
}

int cuLaunchKernel(const standin_kernel_t *kernel, unsigned blocks, unsigned blocks_y,
                   unsigned blocks_z, unsigned threads, unsigned threads_y, unsigned threads_z,
                   unsigned shared, stream_t *stream, void **arguments, void **extra)
{
    standin_not_in_callback("cuLaunchKernel");
    if (blocks == 0 || threads == 0 || blocks_y * blocks_z * threads_y * threads_z != 1 ||
        shared != 0 || extra != NULL) {
        return INVALID_VALUE;
    }
    if (standin_fails("cuLaunchKernel")) {
        return UNKNOWN;
    }
    atomic_fetch_add(&launches, 1);
    if (kernel->launch != NULL) {
        return kernel->launch(kernel->name, stream, arguments);
    }
    return enqueue(stream, (action_t){.kernel = kernel,
                                      .from = *(uintptr_t *) arguments[0],
                                      .with = *(uintptr_t *) arguments[1],
                                      .to = *(uintptr_t *) arguments[2],
                                      .count = *(size_t *) arguments[3],
                                      .threads = (size_t) blocks * threads});
}

int standin_compute(void *stream, int (*function)(void *arg), void *arg)
{
    return enqueue(stream, (action_t){.function = function, .owned = arg});
}

int cuStreamAddCallback(stream_t *stream, callback_fn *callback, void *arg, unsigned flags)
{
    (void) flags;
    if (standin_fails("cuStreamAddCallback")) {
        return UNKNOWN;
    }
    return enqueue(stream, (action_t){.callback = callback, .arg = arg});
}

unsigned long standin_launches(void)
{
    return atomic_load(&launches);
}

int standin_streams(void)
{
    int count = 0;

    pthread_mutex_lock(&mutex);
    for (const stream_t *stream = streams; stream != &per_thread; stream = stream->next) {
        count++;
    }
    pthread_mutex_unlock(&mutex);
    return count;
}
