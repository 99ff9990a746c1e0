/*
 * faults.c: see faults.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <ucp/api/ucp.h>

#include "fault_endpoints.h"
#include "fault_memory.h"

typedef struct fault {
    const char *function;
    int status;
    bool lasts;
    atomic_int left; /* calls until the one that fails; below: it has, or none does */
} fault_t;

enum {
    EP_CREATE,
    SEND,
    RECV,
    RECV_CALLBACK,
    AM_SEND,
    CONFIG_READ,
    INIT,
    WORKER,
    ADDRESS,
    EVENT_FD,
    THREAD,
    READ,
    MALLOC,
    MEMALIGN,
    FAULTS
};
static fault_t faults[FAULTS] = {
    [EP_CREATE] = {.function = "ucp_ep_create"},
    [SEND] = {.function = "ucp_tag_send"}, /* either kind */
    [RECV] = {.function = "ucp_tag_recv_nbx"},
    [RECV_CALLBACK] = {.function = "ucp_tag_recv_callback"},
    [AM_SEND] = {.function = "ucp_am_send_nbx"},
    [CONFIG_READ] = {.function = "ucp_config_read"},
    [INIT] = {.function = "ucp_init_version"},
    [WORKER] = {.function = "ucp_worker_create"},
    [ADDRESS] = {.function = "ucp_worker_get_address"},
    [EVENT_FD] = {.function = "ucp_worker_get_efd"},
    [THREAD] = {.function = "pthread_create"},
    [READ] = {.function = "process_vm_readv"},
    [MALLOC] = {.function = "malloc"},
    [MEMALIGN] = {.function = "posix_memalign"},
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

static void arm(const char *function, int nth, int status, bool lasts)
{
    fault_t *fault = fault_of(function);

    fault->status = status;
    fault->lasts = lasts;
    atomic_store(&fault->left, nth);
}

void fault_arm(const char *function, int nth, int status)
{
    arm(function, nth, status, false);
}

void fault_arm_lasting(const char *function, int nth, int status)
{
    arm(function, nth, status, true);
}

bool fault_disarm(const char *function)
{
    return atomic_exchange(&fault_of(function)->left, 0) < 0;
}

/* ------------------------------------------------------------ who is calling */

static bool from_environment; /* the fault: then it is said that it came, for scripts */

/*
 * Where a library is in memory; `end` is 0 before it is loaded, and is stored (release) behind
 * `begin`.
 */
typedef struct place {
    const char *name;
    uintptr_t begin;
    atomic_uintptr_t end;
} place_t;

static place_t library = {.name = "libmpix_flash.so"}, plugin = {.name = "flash_ucx.so"};
static atomic_uint_fast64_t loads; /* how many libraries there were when the plugin was not */

static int find(struct dl_phdr_info *info, size_t size, void *arg)
{
    place_t *place = arg;
    uintptr_t first = UINTPTR_MAX, end = 0;

    (void) size;
    if (strstr(info->dlpi_name, place->name) == NULL) {
        return 0;
    }
    for (int k = 0; k < info->dlpi_phnum; k++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;

        if (info->dlpi_phdr[k].p_type == PT_LOAD) {
            first = begin < first ? begin : first;
            end = begin + info->dlpi_phdr[k].p_memsz;
        }
    }
    place->begin = first;
    atomic_store_explicit(&place->end, end, memory_order_release);
    return 1;
}

static int read_loads(struct dl_phdr_info *info, size_t size, void *count)
{
    (void) size;
    *(uint_fast64_t *) count = info->dlpi_adds;
    return 1;
}

/* To look at all libraries takes long, and each allocation asks. */
static void find_plugin(void)
{
    uint_fast64_t count = 0;

    dl_iterate_phdr(read_loads, &count);
    if (atomic_exchange(&loads, count) != count) {
        dl_iterate_phdr(find, &plugin);
    }
}

static bool is_in(const void *caller, const place_t *place)
{
    uintptr_t end = atomic_load_explicit(&place->end, memory_order_acquire);

    return (uintptr_t) caller < end && (uintptr_t) caller >= place->begin;
}

__attribute__((constructor)) static void arm_from_environment(void)
{
    const char *function = getenv("FLASH_TEST_FAULT"), *nth = getenv("FLASH_TEST_FAULT_CALL");

    dl_iterate_phdr(find, &library);
    from_environment = function != NULL;
    if (from_environment) {
        /* A right that a process has not got it lacks each time. */
        bool right = strcmp(function, "process_vm_readv") == 0;

        (right ? fault_arm_lasting : fault_arm)(function, nth == NULL ? 1 : atoi(nth),
                                                FAULT_IO_ERROR);
    }
}

/* Open MPI and UCX call the same functions. */
bool fault_is_flash(const void *caller)
{
    if (is_in(caller, &library)) {
        return true;
    }
    if (atomic_load_explicit(&plugin.end, memory_order_acquire) == 0) {
        find_plugin();
    }
    return is_in(caller, &plugin);
}

static bool fails(int which, const void *caller)
{
    fault_t *fault = &faults[which];
    int left = atomic_load(&fault->left);

    if (left == 0 || (left < 0 && !fault->lasts) || !fault_is_flash(caller)) {
        return false;
    }
    if (left > 0) {
        if (atomic_fetch_sub(&fault->left, 1) != 1) {
            return false;
        }
        atomic_store(&fault->left, -1);
        if (from_environment) {
            fprintf(stderr, "FLASH_TEST_FAULT: %s fails\n", fault->function);
        }
    }
    return true;
}

/* The library's own function behind one of this file. */
static void *real(const char *function)
{
    return dlsym(RTLD_NEXT, function);
}

#define FAILS(which) fails(which, __builtin_return_address(0))

/* -------------------------------------------------------------------- UCX */

static ucs_status_t status_of(int which)
{
    return (ucs_status_t) faults[which].status;
}

/* The arguments are passed on as they came. */
#define STATUS_FUNCTION(which, function, parameters, arguments)  \
    ucs_status_t function parameters                             \
    {                                                            \
        ucs_status_t(*const next) parameters = real(#function);  \
                                                                 \
        return FAILS(which) ? status_of(which) : next arguments; \
    }

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    ucs_status_t (*const next)(ucp_worker_h, const ucp_ep_params_t *, ucp_ep_h *) =
        real("ucp_ep_create");

    if (FAILS(EP_CREATE)) {
        return status_of(EP_CREATE);
    }
    fault_endpoints_made += fault_is_flash(__builtin_return_address(0));
    return next(worker, params, ep);
}

STATUS_FUNCTION(CONFIG_READ, ucp_config_read,
                (const char *prefix, const char *file, ucp_config_t **config),
                (prefix, file, config))
STATUS_FUNCTION(INIT, ucp_init_version,
                (unsigned major, unsigned minor, const ucp_params_t *params,
                 const ucp_config_t *config, ucp_context_h *context),
                (major, minor, params, config, context))
STATUS_FUNCTION(WORKER, ucp_worker_create,
                (ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker),
                (context, params, worker))
STATUS_FUNCTION(ADDRESS, ucp_worker_get_address,
                (ucp_worker_h worker, ucp_address_t **address, size_t *length),
                (worker, address, length))
STATUS_FUNCTION(EVENT_FD, ucp_worker_get_efd, (ucp_worker_h worker, int *fd), (worker, fd))

#define SEND_FUNCTION(function)                                                             \
    ucs_status_ptr_t function(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag, \
                              const ucp_request_param_t *param)                             \
    {                                                                                       \
        ucs_status_ptr_t (*const next)(ucp_ep_h, const void *, size_t, ucp_tag_t,           \
                                       const ucp_request_param_t *) = real(#function);      \
                                                                                            \
        return FAILS(SEND) ? UCS_STATUS_PTR(status_of(SEND))                                \
                           : next(ep, buffer, count, tag, param);                           \
    }

SEND_FUNCTION(ucp_tag_send_nbx)
SEND_FUNCTION(ucp_tag_send_sync_nbx)

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                 const void *buffer, size_t count, const ucp_request_param_t *param)
{
    ucs_status_ptr_t (*const next)(ucp_ep_h, unsigned, const void *, size_t, const void *, size_t,
                                   const ucp_request_param_t *) = real("ucp_am_send_nbx");

    return FAILS(AM_SEND) ? UCS_STATUS_PTR(status_of(AM_SEND))
                          : next(ep, id, header, header_length, buffer, count, param);
}

/* The one receive that ends badly, of those under way. */
static struct {
    ucp_tag_recv_nbx_callback_t callback;
    void *user_data;
} bad_receive;

static void end_badly(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                      void *user_data)
{
    (void) status, (void) user_data;
    bad_receive.callback(request, status_of(RECV_CALLBACK), info, bad_receive.user_data);
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                  ucp_tag_t mask, const ucp_request_param_t *param)
{
    ucs_status_ptr_t (*const next)(ucp_worker_h, void *, size_t, ucp_tag_t, ucp_tag_t,
                                   const ucp_request_param_t *) = real("ucp_tag_recv_nbx");
    ucp_request_param_t bad = *param;

    if (FAILS(RECV)) {
        return UCS_STATUS_PTR(status_of(RECV));
    }
    if (FAILS(RECV_CALLBACK)) {
        bad_receive.callback = param->cb.recv;
        bad_receive.user_data = param->user_data;
        bad.cb.recv = end_badly;
        param = &bad;
    }
    return next(worker, buffer, count, tag, mask, param);
}

/* -------------------------------------------------------------- the C library */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *arg)
{
    int (*const next)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *) =
        real("pthread_create");

    return FAILS(THREAD) ? EAGAIN : next(thread, attributes, start, arg);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long count,
                         const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    ssize_t (*const next)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                          unsigned long, unsigned long) = real("process_vm_readv");

    if (FAILS(READ)) {
        errno = EFAULT;
        return -1;
    }
    return next(pid, here, count, there, there_count, flags);
}

/* Threads do not allocate while this is armed: which call fails is the same on all ranks. */
#ifndef FLASH_SANITIZED
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t), __libc_free(void *);

/* What came of an allocation, noted if it is flash's. */
static void *noted(void *memory, const void *caller)
{
    if (fault_is_flash(caller)) {
        fault_memory_add(memory);
    }
    return memory;
}

void *malloc(size_t bytes)
{
    return FAILS(MALLOC) ? NULL : noted(__libc_malloc(bytes), __builtin_return_address(0));
}

void *calloc(size_t count, size_t bytes)
{
    return FAILS(MALLOC) ? NULL : noted(__libc_calloc(count, bytes), __builtin_return_address(0));
}

void *realloc(void *memory, size_t bytes)
{
    if (FAILS(MALLOC)) {
        return NULL;
    }
    fault_memory_remove(memory);
    return noted(__libc_realloc(memory, bytes), __builtin_return_address(0));
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (FAILS(MALLOC) || FAILS(MEMALIGN)) {
        return ENOMEM;
    }
    *memory = noted(__libc_memalign(alignment, bytes), __builtin_return_address(0));
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory)
{
    fault_memory_remove(memory);
    __libc_free(memory);
}
#endif
