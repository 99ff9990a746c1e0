/*
 * flash_ucx.c: see flash_ucx.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

/*
 * With this prefix UCX itself reads FLASH_UCX_* beside UCX_*. Users expect to find the variables of
 * a UCX program at UCX_: apply_environment() adds UCX_FLASH_*.
 */
#define UCX_OWN_PREFIX "FLASH"
#define ENV_PREFIX     "UCX_FLASH_"

extern char **environ;

struct flash_peer {
    ucp_ep_h ep;
    flash_peer_t *next;
};

typedef struct flash_ucx {
    flash_transport_t super;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_length;
    flash_peer_t *peers;
} flash_ucx_t;

static flash_ucx_t *ucx_of(flash_transport_t *transport)
{
    return (flash_ucx_t *) transport;
}

static int flash_status(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return FLASH_OK;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return FLASH_ERR_TRUNCATED;
    case UCS_ERR_CANCELED:
        return FLASH_ERR_CANCELED;
    case UCS_ERR_NO_MEMORY:
        return FLASH_ERR_NO_MEMORY;
    case UCS_ERR_UNREACHABLE:
        return FLASH_ERR_UNREACHABLE;
    default:
        return FLASH_ERR_TRANSPORT;
    }
}

static int fail(char *reason, const char *what, ucs_status_t status)
{
    snprintf(reason, FLASH_UCX_REASON_MAX, "%s: %s", what, ucs_status_string(status));
    return flash_status(status);
}

/* --------------------------------------------------------------- transfers */

static void send_done(void *request, ucs_status_t status, void *arg)
{
    flash_transfer_t *transfer = arg;

    ucp_request_free(request);
    transfer->done(transfer, flash_status(status), 0, 0);
}

static void recv_done(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                      void *arg)
{
    flash_transfer_t *transfer = arg;
    uint64_t tag = info->sender_tag;
    size_t length = info->length;

    ucp_request_free(request);
    transfer->done(transfer, flash_status(status), tag, length);
}

static void ucx_send(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag,
                     const void *buffer, size_t length, flash_transfer_t *transfer)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                 .cb.send = send_done,
                                 .user_data = transfer,
                                 .memory_type = UCS_MEMORY_TYPE_HOST};
    /* Done when the receiver has a place for it: see prefer_eager(). */
    ucs_status_ptr_t request = ucp_tag_send_sync_nbx(peer->ep, buffer, length, tag, &param);

    (void) transport;
    if (UCS_PTR_IS_PTR(request)) {
        transfer->handle = request;
    } else {
        transfer->done(transfer, flash_status(UCS_PTR_STATUS(request)), tag, length);
    }
}

static void ucx_recv(flash_transport_t *transport, uint64_t tag, uint64_t mask, void *buffer,
                     size_t length, flash_transfer_t *transfer)
{
    /* A message that is here already must be reported too, with its tag and length: UCX 1.13 fills
       neither in when it completes a receive at once, so that it is told to call back always. */
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                     UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv = recv_done,
                                 .user_data = transfer,
                                 .memory_type = UCS_MEMORY_TYPE_HOST};
    ucs_status_ptr_t request =
        ucp_tag_recv_nbx(ucx_of(transport)->worker, buffer, length, tag, mask, &param);

    if (UCS_PTR_IS_ERR(request)) {
        transfer->done(transfer, flash_status(UCS_PTR_STATUS(request)), 0, 0);
    } else {
        transfer->handle = request; /* stale if it is done: only ucx_cancel() uses it, before */
    }
}

static void ucx_cancel(flash_transport_t *transport, flash_transfer_t *transfer)
{
    ucp_request_cancel(ucx_of(transport)->worker, transfer->handle);
}

static unsigned ucx_progress(flash_transport_t *transport)
{
    return ucp_worker_progress(ucx_of(transport)->worker);
}

static int ucx_arm(flash_transport_t *transport)
{
    return ucp_worker_arm(ucx_of(transport)->worker) == UCS_OK ? FLASH_OK : FLASH_BUSY;
}

static const flash_transport_ops_t ucx_ops = {.send = ucx_send,
                                              .recv = ucx_recv,
                                              .cancel = ucx_cancel,
                                              .progress = ucx_progress,
                                              .arm = ucx_arm};

/* ----------------------------------------------------------------- opening */

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

/*
 * UCX's rendezvous over TCP waits for handshakes at both ends of each message: a ring of it reached
 * 40 % of a 2 Gbit/s link that eager messages fill. What rendezvous protects from, messages that
 * pile up at a receiver that is late, synchronous sends and the engine's limit on them do as well.
 * Rendezvous stays where it saves a copy: with RDMA devices, and in jobs of one node.
 */
static int prefer_eager(ucp_config_t *config, char *reason)
{
    ucs_status_t status = UCS_OK;

    if (!has_rdma_device() && getenv("UCX_RNDV_THRESH") == NULL &&
        getenv(UCX_OWN_PREFIX "_UCX_RNDV_THRESH") == NULL) {
        status = ucp_config_modify(config, "RNDV_THRESH", "inf");
    }
    return status == UCS_OK ? FLASH_OK : fail(reason, "UCX refuses RNDV_THRESH=inf", status);
}

/* Applies each UCX_FLASH_NAME=VALUE of the environment to the configuration. */
static int apply_environment(ucp_config_t *config, char *reason)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *value = strchr(*entry, '=');
        char name[128];
        size_t length;
        ucs_status_t status;

        if (strncmp(*entry, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || value == NULL) {
            continue;
        }
        length = (size_t) (value - *entry) - strlen(ENV_PREFIX);
        if (length >= sizeof(name)) {
            length = sizeof(name) - 1;
        }
        memcpy(name, *entry + strlen(ENV_PREFIX), length);
        name[length] = '\0';
        status = ucp_config_modify(config, name, value + 1);
        if (status != UCS_OK) {
            snprintf(reason, FLASH_UCX_REASON_MAX, "%s is not a setting that UCX accepts: %s",
                     *entry, ucs_status_string(status));
            return flash_status(status);
        }
    }
    return FLASH_OK;
}

static int open_context(flash_ucx_t *ucx, bool across_nodes, char *reason)
{
    /* A ring has two neighbours: this tells UCX to choose transports for few endpoints. */
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES |
                                         UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
                           .estimated_num_eps = 2,
                           .name = "flash"};
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(UCX_OWN_PREFIX, NULL, &config);
    int rc;

    if (status != UCS_OK) {
        return fail(reason, "UCX cannot read its configuration", status);
    }
    rc = across_nodes ? prefer_eager(config, reason) : FLASH_OK;
    if (rc == FLASH_OK) {
        rc = apply_environment(config, reason);
    }
    if (rc == FLASH_OK) {
        status = ucp_init(&params, config, &ucx->context);
        rc = status == UCS_OK ? FLASH_OK : fail(reason, "UCX cannot be initialised", status);
    }
    ucp_config_release(config);
    return rc;
}

static int open_worker(flash_ucx_t *ucx, char *reason)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status = ucp_worker_create(ucx->context, &params, &ucx->worker);

    if (status != UCS_OK) {
        return fail(reason, "UCX cannot create a worker", status);
    }
    status = ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_length);
    if (status != UCS_OK) {
        ucp_worker_destroy(ucx->worker);
        return fail(reason, "UCX cannot tell its worker's address", status);
    }
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

flash_transport_t *flash_ucx_create(bool across_nodes, char reason[FLASH_UCX_REASON_MAX])
{
    flash_ucx_t *ucx = calloc(1, sizeof(*ucx));

    if (ucx == NULL) {
        snprintf(reason, FLASH_UCX_REASON_MAX, "out of memory");
        return NULL;
    }
    ucx->super.ops = &ucx_ops;
    if (open_context(ucx, across_nodes, reason) != FLASH_OK) {
        goto free_ucx;
    }
    if (open_worker(ucx, reason) != FLASH_OK) {
        goto cleanup_context;
    }
    ucx->super.event_fd = wakeup_fd(ucx);
    return &ucx->super;

cleanup_context:
    ucp_cleanup(ucx->context);
free_ucx:
    free(ucx);
    return NULL;
}

void flash_ucx_destroy(flash_transport_t *transport)
{
    flash_ucx_t *ucx = ucx_of(transport);
    flash_peer_t *peer;

    while ((peer = ucx->peers) != NULL) {
        ucx->peers = peer->next;
        free(peer);
    }
    ucp_worker_release_address(ucx->worker, ucx->address);
    ucp_worker_destroy(ucx->worker); /* with its endpoints */
    ucp_cleanup(ucx->context);
    free(ucx);
}

const void *flash_ucx_address(const flash_transport_t *transport, size_t *length)
{
    const flash_ucx_t *ucx = (const flash_ucx_t *) transport;

    *length = ucx->address_length;
    return ucx->address;
}

int flash_ucx_connect(flash_transport_t *transport, const void *address, flash_peer_t **made,
                      char reason[FLASH_UCX_REASON_MAX])
{
    flash_ucx_t *ucx = ucx_of(transport);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
    flash_peer_t *peer = malloc(sizeof(*peer));
    ucs_status_t status;

    if (peer == NULL) {
        return fail(reason, "no endpoint", UCS_ERR_NO_MEMORY);
    }
    status = ucp_ep_create(ucx->worker, &params, &peer->ep);
    if (status != UCS_OK) {
        free(peer);
        return fail(reason, "no UCX transport reaches the peer", status);
    }
    peer->next = ucx->peers;
    ucx->peers = peer;
    *made = peer;
    return FLASH_OK;
}
