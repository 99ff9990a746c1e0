/*
 * faults.c: see faults.h.
 *
 * UCX's types stand here as what they are in calls: pointers, and a status of one byte.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct fault {
    const char *function;
    int status;
    atomic_int left; /* calls until the one that fails; below: it has, or none does */
} fault_t;

enum {
    EP_CREATE,
    SEND,
    RECV,
    CONFIG_READ,
    INIT,
    WORKER,
    ADDRESS,
    EVENT_FD,
    THREAD,
    MALLOC,
    FAULTS
};
static fault_t faults[FAULTS] = {
    [EP_CREATE] = {.function = "ucp_ep_create"},
    [SEND] = {.function = "ucp_tag_send_sync_nbx"},
    [RECV] = {.function = "ucp_tag_recv_nbx"},
    [CONFIG_READ] = {.function = "ucp_config_read"},
    [INIT] = {.function = "ucp_init_version"},
    [WORKER] = {.function = "ucp_worker_create"},
    [ADDRESS] = {.function = "ucp_worker_get_address"},
    [EVENT_FD] = {.function = "ucp_worker_get_efd"},
    [THREAD] = {.function = "pthread_create"},
    [MALLOC] = {.function = "malloc"},
};

static fault_t *fault_of(const char *function)
{
    for (int k = 0; k < FAULTS; k++) {
        if (strcmp(faults[k].function, function) == 0) {
            return &faults[k];
        }
    }
    abort(); /* a misspelt name */
}

void fault_arm(const char *function, int nth, int status)
{
    fault_t *fault = fault_of(function);

    fault->status = status;
    atomic_store(&fault->left, nth);
}

bool fault_disarm(const char *function)
{
    return atomic_exchange(&fault_of(function)->left, 0) < 0;
}

__attribute__((constructor)) static void arm_from_environment(void)
{
    const char *function = getenv("FLASH_TEST_FAULT");

    if (function != NULL) {
        fault_arm(function, 1, FAULT_IO_ERROR);
    }
}

/* Open MPI and UCX call the same functions. */
static bool is_flash(const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libmpix_flash.so") != NULL;
}

static bool fails(int which, const void *caller)
{
    atomic_int *left = &faults[which].left;

    if (atomic_load(left) <= 0 || !is_flash(caller) || atomic_fetch_sub(left, 1) != 1) {
        return false;
    }
    atomic_store(left, -1);
    return true;
}

/* The library's own function behind one of this file. */
static void *real(int which)
{
    return dlsym(RTLD_NEXT, faults[which].function);
}

#define FAILS(which) fails(which, __builtin_return_address(0))

/* -------------------------------------------------------------------- UCX */

typedef int8_t status_t;

/* The arguments are passed on as they came. */
#define STATUS_FUNCTION(which, function, parameters, arguments)      \
    status_t function parameters;                                    \
    status_t function parameters                                     \
    {                                                                \
        status_t(*const next) parameters = real(which);              \
                                                                     \
        return FAILS(which) ? faults[which].status : next arguments; \
    }

STATUS_FUNCTION(EP_CREATE, ucp_ep_create, (void *worker, const void *params, void *ep),
                (worker, params, ep))
STATUS_FUNCTION(CONFIG_READ, ucp_config_read, (const char *prefix, const char *file, void *config),
                (prefix, file, config))
STATUS_FUNCTION(INIT, ucp_init_version,
                (unsigned major, unsigned minor, const void *params, const void *config,
                 void *context),
                (major, minor, params, config, context))
STATUS_FUNCTION(WORKER, ucp_worker_create, (void *context, const void *params, void *worker),
                (context, params, worker))
STATUS_FUNCTION(ADDRESS, ucp_worker_get_address, (void *worker, void *address, size_t *length),
                (worker, address, length))
STATUS_FUNCTION(EVENT_FD, ucp_worker_get_efd, (void *worker, int *fd), (worker, fd))

void *ucp_tag_send_sync_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                            const void *param);
void *ucp_tag_send_sync_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                            const void *param)
{
    void *(*const next)(void *, const void *, size_t, uint64_t, const void *) = real(SEND);

    return FAILS(SEND) ? (void *) (intptr_t) faults[SEND].status
                       : next(ep, buffer, count, tag, param);
}

void *ucp_tag_recv_nbx(void *worker, void *buffer, size_t count, uint64_t tag, uint64_t mask,
                       const void *param);
void *ucp_tag_recv_nbx(void *worker, void *buffer, size_t count, uint64_t tag, uint64_t mask,
                       const void *param)
{
    void *(*const next)(void *, void *, size_t, uint64_t, uint64_t, const void *) = real(RECV);

    return FAILS(RECV) ? (void *) (intptr_t) faults[RECV].status
                       : next(worker, buffer, count, tag, mask, param);
}

/* -------------------------------------------------------------- the C library */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *arg)
{
    int (*const next)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *) =
        real(THREAD);

    return FAILS(THREAD) ? EAGAIN : next(thread, attributes, start, arg);
}

/* Threads do not allocate while this is armed: which call fails is the same on all ranks. */
#ifndef FLASH_SANITIZED
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);

void *malloc(size_t bytes)
{
    return FAILS(MALLOC) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return FAILS(MALLOC) ? NULL : __libc_calloc(count, bytes);
}
#endif
