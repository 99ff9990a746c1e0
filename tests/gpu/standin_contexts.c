/*
 * standin_contexts.c: contexts, devices and failures of the stand-in driver; see standin.h.
 *
 * Shared between threads:
 *   contexts, failing, until_failure, retained, ids  under `mutex`
 *   error      of a context, atomic: stored (release) by the thread that runs the streams, acquired
 *              by each of the driver's functions
 *   broken     atomic, relaxed: how many contexts have such an error
 *   callbacks  the driver's lock, which a callback holds, and which each function takes
 *   stack, pushed, exempt, in_callback, mode  one for each thread
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = 2, CONTEXTS = 8, DEEPEST = 8 };

struct standin_context_state {
    int device;
    unsigned long long id; /* 0: destroyed, or never made */
    atomic_int error;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t callbacks = PTHREAD_MUTEX_INITIALIZER;
/* Each device's primary one, and those that are made. */
static standin_context_t contexts[CONTEXTS] = {{.device = 0, .id = 1}, {.device = 1, .id = 2}};
static unsigned long long ids = DEVICES;
static atomic_int broken;
static char failing[64]; /* function */
static unsigned long until_failure;
static int retained;
static unsigned dice = 1;
static _Thread_local standin_context_t *stack[DEEPEST];
static _Thread_local int pushed;
static _Thread_local bool exempt, in_callback;
static _Thread_local int mode; /* CU_STREAM_CAPTURE_MODE_GLOBAL is 0 */

void standin_forbidden(const char *what)
{
    fprintf(stderr, "stand-in driver: %s\n", what);
    abort();
}

/* ------------------------------------------------------------------ failures */

void standin_fail(const char *name, unsigned long nth)
{
    pthread_mutex_lock(&mutex);
    snprintf(failing, sizeof(failing), "%s", name == NULL ? "" : name);
    until_failure = nth;
    pthread_mutex_unlock(&mutex);
    for (int k = 0; name == NULL && k < CONTEXTS; k++) {
        if (atomic_exchange_explicit(&contexts[k].error, SUCCESS, memory_order_acq_rel) !=
            SUCCESS) {
            atomic_fetch_sub_explicit(&broken, 1, memory_order_relaxed);
        }
    }
}

void standin_exempt(bool from_now_on)
{
    exempt = from_now_on;
}

bool standin_is_exempt(void)
{
    return exempt;
}

bool standin_fails(const char *name)
{
    bool fails;

    if (exempt) {
        return false;
    }
    pthread_mutex_lock(&mutex);
    fails = strcmp(failing, name) == 0 && until_failure > 0 && --until_failure == 0;
    pthread_mutex_unlock(&mutex);
    return fails;
}

bool standin_chance(void)
{
    bool chance;

    pthread_mutex_lock(&mutex);
    chance = (unsigned) rand_r(&dice) / 16 % 2 == 0;
    pthread_mutex_unlock(&mutex);
    return chance;
}

int standin_error(const standin_context_t *context)
{
    return context == NULL ? SUCCESS : atomic_load_explicit(&context->error, memory_order_acquire);
}

void standin_break(standin_context_t *context, int error)
{
    int none = SUCCESS;

    if (atomic_compare_exchange_strong_explicit(&context->error, &none, error, memory_order_acq_rel,
                                                memory_order_relaxed)) {
        atomic_fetch_add_explicit(&broken, 1, memory_order_relaxed);
    }
}

bool standin_broken(void)
{
    return atomic_load_explicit(&broken, memory_order_relaxed) > 0;
}

/* ----------------------------------------------------------------- callbacks */

void standin_not_in_callback(const char *name)
{
    if (in_callback) {
        standin_forbidden(name);
    }
    pthread_mutex_lock(&callbacks);
    pthread_mutex_unlock(&callbacks);
}

int standin_enter(const char *name)
{
    standin_not_in_callback(name);
    if (standin_error(standin_context()) != SUCCESS) {
        return standin_error(standin_context());
    }
    return standin_fails(name) ? UNKNOWN : SUCCESS;
}

void standin_call_back(void (*function)(void *arg), void *arg)
{
    bool locked = standin_chance();

    if (locked) {
        pthread_mutex_lock(&callbacks);
    }
    in_callback = true;
    function(arg);
    in_callback = false;
    if (locked) {
        pthread_mutex_unlock(&callbacks);
    }
}

int cuGetErrorName(int result, const char **name)
{
    static const struct {
        int result;
        const char *name;
    } names[] = {{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
                 {MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                 {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
                 {CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
                 {CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
                 {UNKNOWN, "CUDA_ERROR_UNKNOWN"}};

    standin_not_in_callback("cuGetErrorName");
    *name = "another error";
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (names[k].result == result) {
            *name = names[k].name;
        }
    }
    return SUCCESS;
}

/* ------------------------------------------------------------------ contexts */

standin_context_t *standin_context(void)
{
    return pushed > 0 ? stack[pushed - 1] : NULL;
}

standin_context_t *standin_primary(int device)
{
    return &contexts[device];
}

int standin_device_of(const standin_context_t *context)
{
    return context == NULL ? 0 : context->device;
}

int standin_pushed(void)
{
    return pushed;
}

int standin_retained(void)
{
    int count;

    pthread_mutex_lock(&mutex);
    count = retained;
    pthread_mutex_unlock(&mutex);
    return count;
}

/* One that is gone makes room for the next: an address says nothing. */
void *standin_make_context(int device)
{
    standin_context_t *made = NULL;

    pthread_mutex_lock(&mutex);
    for (int k = DEVICES; k < CONTEXTS && made == NULL; k++) {
        if (contexts[k].id == 0) {
            made = &contexts[k];
            made->device = device;
            made->id = ++ids;
        }
    }
    pthread_mutex_unlock(&mutex);
    return made;
}

void standin_destroy_context(void *gone)
{
    standin_context_t *context = gone;

    standin_drop_streams(context);
    standin_drop_events(context);
    pthread_mutex_lock(&mutex);
    context->id = 0;
    pthread_mutex_unlock(&mutex);
}

void standin_reset(int device)
{
    standin_drop_streams(&contexts[device]);
    standin_drop_events(&contexts[device]);
    pthread_mutex_lock(&mutex);
    contexts[device].id = ++ids;
    pthread_mutex_unlock(&mutex);
}

int cuCtxGetId(const standin_context_t *context, unsigned long long *id)
{
    standin_not_in_callback("cuCtxGetId");
    if (standin_fails("cuCtxGetId")) {
        return UNKNOWN;
    }
    if (context == NULL) {
        context = standin_context();
    }
    if (context == NULL) {
        return INVALID_CONTEXT;
    }
    pthread_mutex_lock(&mutex);
    *id = context->id;
    pthread_mutex_unlock(&mutex);
    return *id == 0 ? CONTEXT_IS_DESTROYED : SUCCESS;
}

int standin_capture_mode(void)
{
    return mode;
}

int cuThreadExchangeStreamCaptureMode(int *other)
{
    int before = mode;

    standin_not_in_callback("cuThreadExchangeStreamCaptureMode");
    mode = *other;
    *other = before;
    return SUCCESS;
}

int cuCtxPushCurrent_v2(void *pointer)
{
    standin_context_t *context = pointer;
    bool exists;

    standin_not_in_callback("cuCtxPushCurrent");
    if (standin_fails("cuCtxPushCurrent")) {
        return UNKNOWN;
    }
    if (context < contexts || context >= contexts + CONTEXTS || pushed == DEEPEST) {
        return INVALID_CONTEXT;
    }
    pthread_mutex_lock(&mutex);
    exists = context->id != 0;
    pthread_mutex_unlock(&mutex);
    if (!exists) {
        return CONTEXT_IS_DESTROYED;
    }
    /* The documentation says that it may return earlier errors. */
    if (!exempt && standin_error(context) != SUCCESS && standin_chance()) {
        return standin_error(context);
    }
    stack[pushed++] = context;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context)
{
    standin_not_in_callback("cuCtxPopCurrent");
    if (pushed == 0) {
        return INVALID_CONTEXT;
    }
    *context = stack[--pushed];
    return SUCCESS;
}

int cuCtxGetCurrent(void **context)
{
    *context = standin_context();
    return SUCCESS;
}

int cuCtxGetDevice(int *device)
{
    standin_not_in_callback("cuCtxGetDevice");
    *device = standin_device_of(standin_context());
    return standin_fails("cuCtxGetDevice") ? UNKNOWN : pushed > 0 ? SUCCESS : INVALID_CONTEXT;
}

/* ------------------------------------------------------------------- devices */

/* A driver takes far longer; flash looks for one once in a tick of a coarse clock (device/flash_device.c). */
int cuInit(unsigned flags)
{
    (void) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return flags == 0 ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < DEVICES ? SUCCESS : INVALID_DEVICE;
}

/* Only what flash asks for: all of them have it. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void) attribute;
    standin_not_in_callback("cuDeviceGetAttribute");
    *value = 1;
    return device >= 0 && device < DEVICES ? SUCCESS : INVALID_DEVICE;
}

/* That of the first is in the topology of the tests. */
int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    standin_not_in_callback("cuDeviceGetPCIBusId");
    snprintf(text, (size_t) size, "0000:%02X:00.0", 10 + device);
    return SUCCESS;
}

int cuDeviceGetCount(int *count)
{
    *count = DEVICES;
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    standin_not_in_callback("cuDevicePrimaryCtxRetain");
    if (standin_fails("cuDevicePrimaryCtxRetain")) {
        return DEVICE_UNAVAILABLE;
    }
    if (device < 0 || device >= DEVICES) {
        return INVALID_DEVICE;
    }
    pthread_mutex_lock(&mutex);
    retained++;
    pthread_mutex_unlock(&mutex);
    *context = &contexts[device];
    return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    standin_not_in_callback("cuDevicePrimaryCtxRelease");
    pthread_mutex_lock(&mutex);
    retained--;
    pthread_mutex_unlock(&mutex);
    return device >= 0 && device < DEVICES ? SUCCESS : INVALID_DEVICE;
}
