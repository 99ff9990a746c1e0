/*
 * standin_work.c: what streams of the stand-in driver do: copies, kernels and calls of the host's
 * functions; see standin.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_streams.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What nvcc's output begins with. */
#define FATBIN UINT32_C(0xba55ed50)

static atomic_ulong launches;

unsigned long standin_launches(void)
{
    return atomic_load_explicit(&launches, memory_order_relaxed);
}

/* ---------------------------------------------------------------- in the thread */

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
    const void *in = standin_reach_by_kernel(action->from, bytes);
    const void *inout = standin_reach_by_kernel(action->with, bytes);
    void *out = standin_reach_by_kernel(action->to, bytes);

    if (in == NULL || inout == NULL || out == NULL) {
        return ILLEGAL_ADDRESS;
    }
    if (standin_fails("kernel")) {
        return UNKNOWN;
    }
    for (size_t thread = 0; thread < action->threads; thread++) {
        if (!action->kernel->run(in, inout, out, action->count, thread, action->threads)) {
            return MISALIGNED_ADDRESS;
        }
    }
    return SUCCESS;
}

typedef struct call {
    stream_t *stream;
    const action_t *action;
} call_t;

static void call_back(void *arg)
{
    const call_t *call = arg;

    call->action->callback(call->stream, standin_error(call->stream->context), call->action->arg);
}

int standin_run(stream_t *stream, const action_t *action)
{
    if (action->callback != NULL) {
        standin_call_back(call_back, &(call_t){.stream = stream, .action = action});
        return SUCCESS;
    }
    if (action->freed != 0) {
        standin_release(action->freed);
    }
    if (standin_error(stream->context) != SUCCESS) {
        return SUCCESS; /* nothing else happens there any more */
    }
    if (action->host != NULL) {
        standin_call_back(action->host, action->arg);
        return SUCCESS;
    }
    return action->kernel != NULL     ? compute(action)
           : action->function != NULL ? action->function(action->owned)
           : action->size > 0         ? copy(action)
                                      : SUCCESS;
}

/* ----------------------------------------------------------------------- copies */

/* May return before the device has it. */
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size)
{
    int result = standin_enter("cuMemcpyHtoD");
    void *kept = result == SUCCESS ? malloc(size + 1) : NULL;

    result = result == SUCCESS ? standin_unsafe() : result;
    if (kept == NULL || result != SUCCESS) {
        free(kept);
        return result == SUCCESS ? OUT_OF_MEMORY : result;
    }
    memcpy(kept, from, size);
    result = standin_enqueue(
        NULL, (action_t){.to = to, .from = (uintptr_t) kept, .size = size, .owned = kept});
    if (result == SUCCESS && standin_is_synchronous(to)) {
        standin_wait_for_copies(to, size + 1);
    }
    return result;
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size)
{
    int result = standin_enter("cuMemcpyDtoH");
    stream_t *stream;

    result = result == SUCCESS ? standin_unsafe() : result;
    pthread_mutex_lock(&standin_mutex);
    stream = standin_meant(NULL);
    result = result == SUCCESS ? standin_usable(stream) : result;
    if (result == SUCCESS) {
        standin_wait_for(stream);
        result = standin_error(stream->context);
    }
    pthread_mutex_unlock(&standin_mutex);
    return result == SUCCESS ? copy_now((uintptr_t) to, from, size) : result;
}

/* Of memory that is not pinned it returns when all is done. */
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t size, stream_t *stream)
{
    int result = standin_enter("cuMemcpyAsync");

    if (result == SUCCESS) {
        result = standin_enqueue(stream, (action_t){.to = to, .from = from, .size = size});
    }
    if (result == SUCCESS && !(standin_knows(to) && standin_knows(from)) && !standin_is_exempt()) {
        pthread_mutex_lock(&standin_mutex);
        standin_wait_for(standin_meant(stream));
        pthread_mutex_unlock(&standin_mutex);
    }
    return result;
}

int cuMemFreeAsync(unsigned long long address, stream_t *stream)
{
    int result = standin_enter("cuMemFreeAsync");

    if (result == SUCCESS) {
        result = standin_enqueue(stream, (action_t){.freed = address});
    }
    if (result != SUCCESS && standin_broken()) {
        standin_release(address);
    }
    return result;
}

/* ---------------------------------------------------------------------- kernels */

int cuLibraryLoadData(void **library, const void *code, void *options, void *values, unsigned count,
                      void *library_options, void *library_values, unsigned library_count)
{
    static int the_library;
    int result = standin_enter("cuLibraryLoadData");

    (void) options;
    (void) values;
    (void) library_options;
    (void) library_values;
    *library = &the_library;
    return result != SUCCESS                                    ? result
           : count != 0 || library_count != 0                   ? INVALID_VALUE
           : code == NULL || *(const uint32_t *) code != FATBIN ? INVALID_IMAGE
                                                                : SUCCESS;
}

int cuLibraryGetKernel(const standin_kernel_t **kernel, const void *library, const char *name)
{
    (void) library;
    standin_not_in_callback("cuLibraryGetKernel");
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

/* Notes that a context has it, or asks whether it does. */
static bool is_loaded(const standin_kernel_t *kernel, bool load)
{
    enum { MOST = 4096 };
    static struct {
        const standin_context_t *context;
        const standin_kernel_t *kernel;
    } loaded[MOST];
    const standin_context_t *context = standin_context();
    int k = 0;

    pthread_mutex_lock(&standin_mutex);
    while (k < MOST && loaded[k].kernel != NULL &&
           !(loaded[k].context == context && loaded[k].kernel == kernel)) {
        k++;
    }
    if (load && k < MOST) {
        loaded[k].context = context;
        loaded[k].kernel = kernel;
    }
    load = k == MOST || loaded[k].kernel != NULL;
    pthread_mutex_unlock(&standin_mutex);
    return load;
}

int cuKernelGetFunction(const standin_kernel_t **function, const standin_kernel_t *kernel)
{
    standin_not_in_callback("cuKernelGetFunction");
    *function = kernel;
    if (standin_context() == NULL) {
        return INVALID_CONTEXT;
    }
    is_loaded(kernel, true);
    return SUCCESS;
}

int cuLaunchKernel(const standin_kernel_t *kernel, unsigned blocks, unsigned blocks_y,
                   unsigned blocks_z, unsigned threads, unsigned threads_y, unsigned threads_z,
                   unsigned shared, stream_t *stream, void **arguments, void **extra)
{
    int result = standin_enter("cuLaunchKernel");

    if (blocks == 0 || threads == 0 || blocks_y * blocks_z * threads_y * threads_z != 1 ||
        shared != 0 || extra != NULL) {
        return INVALID_VALUE;
    }
    if (result != SUCCESS) {
        return result;
    }
    atomic_fetch_add_explicit(&launches, 1, memory_order_relaxed);
    if (kernel->launch != NULL) {
        return kernel->launch(kernel->name, stream, arguments);
    }
    if (!is_loaded(kernel, false)) {
        standin_forbidden("a kernel that its first launch has to load, and waits");
    }
    return standin_enqueue(stream, (action_t){.kernel = kernel,
                                              .from = *(uintptr_t *) arguments[0],
                                              .with = *(uintptr_t *) arguments[1],
                                              .to = *(uintptr_t *) arguments[2],
                                              .count = *(size_t *) arguments[3],
                                              .threads = (size_t) blocks * threads});
}

int standin_compute(void *stream, int (*function)(void *arg), void *arg)
{
    return standin_enqueue(stream, (action_t){.function = function, .owned = arg});
}

/* ------------------------------------------------------- functions of the host's */

int cuStreamAddCallback(stream_t *stream, callback_fn *callback, void *arg, unsigned flags)
{
    int result = standin_enter("cuStreamAddCallback");

    (void) flags;
    return result == SUCCESS ? standin_enqueue(stream, (action_t){.callback = callback, .arg = arg})
                             : result;
}

int cuLaunchHostFunc(stream_t *stream, host_fn *function, void *arg)
{
    int result = standin_enter("cuLaunchHostFunc");

    return result == SUCCESS ? standin_enqueue(stream, (action_t){.host = function, .arg = arg})
                             : result;
}
