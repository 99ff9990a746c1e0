/*
 * flash_ucx.c: see flash_ucx.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* ----------------------------------------------------------------- opening */

/* Some device that may be one of RDMA: whether UCX can use it, only an open context tells. */
static bool has_rdma_device(void)
{
    DIR *devices = opendir("/sys/class/infiniband");
    struct dirent *entry = NULL;

    if (devices != NULL) {
        do {
            entry = readdir(devices);
        } while (entry != NULL && entry->d_name[0] == '.');
        closedir(devices);
    }
    return entry != NULL;
}

int flash_ucx_open_context(const flash_ucx_t *ucx, flash_ucx_devices_t devices, unsigned endpoints,
                           ucp_context_h *context, char *reason)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES |
                                         UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                           .estimated_num_eps = endpoints,
                           .name = "flash"};
    ucp_config_t *config;
    ucs_status_t status;
    int rc = flash_ucx_configure(devices, &ucx->around, &config, reason);

    if (rc == FLASH_OK) {
        status = ucp_init(&params, config, context);
        ucp_config_release(config);
        rc = status == UCS_OK ? FLASH_OK
                              : flash_ucx_fail(reason, "UCX cannot be initialised", status);
    }
    return rc;
}

/*
 * Whether UCX can register memory for messages with RDMA devices, which need it locked. `ulimit -l`
 * limits what a process may lock; without a limit the answer is yes, untried. UCX prints why a
 * registration fails, and the remedy. A worker that cannot register its memory would wait for
 * messages that never come.
 */
static bool can_lock_memory(ucp_context_h context)
{
    enum { LEAST = 32 << 20 }; /* a worker begins with 20 MiB and some */
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                 UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .length = LEAST};
    struct rlimit limit;
    ucp_mem_h handle;
    bool can;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return true;
    }
    params.address = mmap(NULL, LEAST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (params.address == MAP_FAILED) {
        return true; /* the address space is short, not what may be locked */
    }
    can = ucp_mem_map(context, &params, &handle) == UCS_OK;
    if (can) {
        (void) ucp_mem_unmap(context, handle);
    }
    munmap(params.address, LEAST);
    return can;
}

/*
 * A device is of no use to UCX where its ports are down, a container lacks its file in /dev, its
 * verbs are not those that UCX speaks (EFA), or the user wants other transports: UCX then has TCP
 * alone. Such a context, and one that may not lock memory for its devices, is opened anew with the
 * protocols for TCP.
 */
static int open_context(flash_ucx_t *ucx, char *reason)
{
    flash_ucx_devices_t devices = has_rdma_device() ? FLASH_UCX_RDMA : FLASH_UCX_TCP;
    const unsigned endpoints = FLASH_UCX_RING_ENDPOINTS;
    int rc = flash_ucx_open_context(ucx, devices, endpoints, &ucx->context, reason);
    flash_ucx_ways_t ways;

    if (rc == FLASH_OK && devices == FLASH_UCX_RDMA && ucx->around.across_nodes) {
        flash_ucx_find(ucx->context, &ways);
        if (ways.tcp && !ways.faster) {
            devices = FLASH_UCX_TCP;
        } else if (!can_lock_memory(ucx->context)) {
            devices = FLASH_UCX_WITHOUT_IB;
        }
        if (devices != FLASH_UCX_RDMA) {
            ucp_cleanup(ucx->context);
            rc = flash_ucx_open_context(ucx, devices, endpoints, &ucx->context, reason);
        }
    }
    ucx->rdma = devices == FLASH_UCX_RDMA;
    return rc;
}

static ucs_status_t hear(flash_ucx_t *ucx, unsigned message, ucp_am_recv_callback_t heard)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                  UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                  UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                    .id = message,
                                    .cb = heard,
                                    .arg = ucx};

    return ucp_worker_set_am_recv_handler(ucx->worker, &param);
}

static int open_worker(flash_ucx_t *ucx, char *reason)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status = ucp_worker_create(ucx->context, &params, &ucx->worker);

    if (status != UCS_OK) {
        return flash_ucx_fail(reason, "UCX cannot create a worker", status);
    }
    status = hear(ucx, FLASH_UCX_GIVEN_UP, flash_ucx_hear_given_up);
    if (status == UCS_OK) {
        status = hear(ucx, FLASH_UCX_LOOPBACK, flash_ucx_hear_loopback);
    }
    if (status == UCS_OK) {
        status = hear(ucx, FLASH_UCX_PING, flash_ucx_hear_ping);
    }
    if (status == UCS_OK) {
        status = ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_length);
    }
    if (status != UCS_OK) {
        ucp_worker_destroy(ucx->worker);
        return flash_ucx_fail(reason, "UCX cannot tell its worker's address", status);
    }
    ucx->own_id = flash_ucx_id(ucx->address, ucx->address_length);
    return FLASH_OK;
}

/* The descriptor to sleep on; -1 where UCX was built for one thread alone. */
static int wakeup_fd(flash_ucx_t *ucx)
{
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};
    int fd;

    if (ucp_worker_query(ucx->worker, &attr) != UCS_OK ||
        attr.thread_mode == UCS_THREAD_MODE_SINGLE ||
        ucp_worker_get_efd(ucx->worker, &fd) != UCS_OK) {
        return -1;
    }
    return fd;
}

static bool knows_cuda(const flash_ucx_t *ucx)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};

    return ucp_context_query(ucx->context, &attr) == UCS_OK &&
           (attr.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

static flash_transport_t *create(const flash_ucx_surroundings_t *around,
                                 char reason[FLASH_UCX_REASON_MAX])
{
    flash_ucx_t *ucx = calloc(1, sizeof(*ucx));

    if (ucx == NULL) {
        snprintf(reason, FLASH_UCX_REASON_MAX, "out of memory");
        return NULL;
    }
    ucx->super.ops = &flash_ucx_ops;
    ucx->retries_tail = &ucx->retries;
    ucx->around = *around;
    if (around->networks != NULL) {
        ucx->around.networks = ucx->networks = strdup(around->networks);
    }
    if (open_context(ucx, reason) != FLASH_OK) {
        goto free_ucx;
    }
    if (open_worker(ucx, reason) != FLASH_OK) {
        goto cleanup_context;
    }
    ucx->super.event_fd = wakeup_fd(ucx);
    flash_ucx_set_exchanges(ucx, around->peers);
    ucx->super.reaches_devices = knows_cuda(ucx);
    /* Eager messages, see flash_ucx_config.c, would have UCX wait for a copy of each fragment. */
    ucx->super.prefers_devices = ucx->super.reaches_devices && (!around->across_nodes || ucx->rdma);
    ucx->super.lets_leave = around->across_nodes && !ucx->rdma; /* eager messages do */
    return &ucx->super;

cleanup_context:
    ucp_cleanup(ucx->context);
free_ucx:
    free(ucx->networks);
    free(ucx);
    return NULL;
}

/*
 * UCX 1.18 ends the process when a context is closed for which a message still holds memory, as one
 * for a lost peer does; a probe that is still connecting keeps its worker. The context stays instead,
 * and UCX with it, which hears of the memory that is freed.
 */
static void leave_context(void)
{
    Dl_info ucp;

    if (dladdr((const void *) (uintptr_t) ucp_cleanup, &ucp) != 0) {
        (void) dlopen(ucp.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

static void destroy(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);
    bool held = ucx->orphans != NULL;

    held |= !flash_ucx_end_all_probes(ucx);
    ucp_worker_release_address(ucx->worker, ucx->address);
    flash_ucx_close(ucx);
    flash_ucx_end_exchanges(ucx, held);
    ucp_worker_destroy(ucx->worker); /* with what is left of its endpoints */
    flash_ucx_free_messages(ucx);
    flash_ucx_free_peers(ucx);
    if (held) {
        leave_context();
    } else {
        ucp_cleanup(ucx->context);
    }
    free(ucx->networks);
    free(ucx);
}

static const void *address_of(const flash_transport_t *transport, size_t *length)
{
    const flash_ucx_t *ucx = (const flash_ucx_t *) transport;

    *length = ucx->address_length;
    return ucx->address;
}

/* ----------------------------------------------------------------- the table */

__attribute__((visibility("default"))) const flash_ucx_calls_t flash_ucx_calls_6 = {
    .create = create,
    .flush = flash_ucx_flush,
    .destroy = destroy,
    .address = address_of,
    .peer = flash_ucx_peer,
    .exchange_peer = flash_ucx_exchange_peer,
    .is_connected = flash_ucx_is_connected,
    .connect = flash_ucx_connect,
    .ways = flash_ucx_ways,
    .ping = flash_ucx_ping,
    .probe = flash_ucx_probe,
    .look_at_probes = flash_ucx_look_at_probes,
    .end_probes = flash_ucx_end_probes,
    .loopback = flash_ucx_loopback,
    .progress_loopback = flash_ucx_progress_loopback,
    .loopback_arrived = flash_ucx_loopback_arrived,
    .next_loopback = flash_ucx_next_loopback,
    .is_probed = flash_ucx_is_probed,
    .is_lost = flash_ucx_is_lost,
    .lose = flash_ucx_lose,
};
