/*
 * standin_streams.h: what the files about streams share: standin_streams.c, which there are,
 * standin_run.c, which runs them, standin_capture.c, what is captured, standin_events.c and
 * standin_work.c, which put something into them.
 *
 * All of it is ordered by `standin_mutex`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef STANDIN_STREAMS_H
#define STANDIN_STREAMS_H

#include <pthread.h>

#include "standin.h"

typedef struct stream stream_t;
typedef void callback_fn(stream_t *stream, int result, void *arg);
typedef void host_fn(void *arg);

/* A place in a stream, that events and what waits for them refer to. */
typedef struct mark {
    unsigned references;
    bool done;
} mark_t;

/* A copy, a kernel, a callback, freeing memory, a mark, or waiting for one. */
typedef struct action {
    uintptr_t to, from;
    size_t size;
    void *owned; /* freed with the action */
    const standin_kernel_t *kernel;
    uintptr_t with;
    size_t count, threads;
    int (*function)(void *arg);
    callback_fn *callback;
    host_fn *host;
    void *arg;
    uintptr_t freed;
    mark_t *mark, *behind; /* references; NULL: none */
    bool held;             /* a kernel that runs until it is told to end */
    bool exempt;           /* of a test's: does not fail */
    unsigned long number;  /* of all streams' actions */
    long begins;           /* not before that millisecond */
    struct action *next;
} action_t;

struct stream {
    action_t *first, *last;
    bool runs;              /* an action that is in no queue any more */
    bool works;             /* and more than waiting */
    bool copies;            /* and from ordinary memory: the call may have returned */
    unsigned long runs_now; /* its number */
    action_t *held;         /* a kernel that has begun, and is not told to end yet */
    standin_context_t *context;
    unsigned queue;   /* of the device */
    bool is_default;  /* of the context's two: in no queue that others share */
    bool is_legacy;   /* the one of these that waits for the others */
    bool is_blocking; /* that it waits for */
    bool captured, spoiled;
    int mode;         /* of the capture */
    pthread_t thread; /* that began it */
    stream_t *next;
};

extern pthread_mutex_t standin_mutex;
extern pthread_cond_t standin_changed;
extern stream_t *standin_all; /* of all contexts, by `next` */

/* What a handle means in the calling thread's context; NULL: it has none. Under the mutex. */
stream_t *standin_meant(stream_t *stream);
/* Of a context: its error, or that a capture forbids it. Under the mutex. */
int standin_usable(stream_t *stream);
/* Puts a copy of that into a stream. Takes over what it owns and refers to, if refused as well. */
int standin_enqueue(stream_t *stream, action_t what);
/* Until what it holds now is done. Under the mutex. */
void standin_wait_for(const stream_t *stream);
void standin_forget_mark(mark_t *mark); /* a reference less; under the mutex */
/* Without running it: all that a stream holds, and of callbacks some or none. Under the mutex. */
void standin_drop_actions(stream_t *stream, bool some_callbacks);
/* Waiting alone may be given up. */
bool standin_is_work(const action_t *action);
/* What its action does, without the mutex: an error of the device, or SUCCESS. */
int standin_run(stream_t *stream, const action_t *action);

#endif /* STANDIN_STREAMS_H */
