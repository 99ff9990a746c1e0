/*
 * flash_ucx_prober.c: the worker that probes are made from, and what they go by.
 *
 * A probe that goes by the transports of the messages tells of the way that the messages take. With
 * RDMA devices it connects by datagrams (UD), and up to UCX 1.13 UCX ends this process by an
 * assertion if a dead one does not answer; the launcher then ends the job. In a job that is to go on
 * without one of its processes, probes therefore go by TCP, from a context that has no other
 * transport.
 *
 * In that job only: TCP may not lead to the other nodes, where the messages go by RDMA. A firewall,
 * or an interface that has the same address on each node, makes a process that is there look like
 * one that has gone.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

static bool ends_by_datagrams(void)
{
    unsigned major, minor, release;

    ucp_get_version(&major, &minor, &release);
    return major == 1 && minor < 14;
}

/* A context of TCP alone. Local devices count: peers that have TCP have it in their addresses. */
static bool open_tcp(flash_ucx_t *ucx, const char **reason)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_AM,
                           .name = "flash probes"};
    char devices[FLASH_UCX_NETWORKS_MAX], why[FLASH_UCX_REASON_MAX];
    flash_ucx_ways_t ways;
    ucp_config_t *config;

    flash_ucx_find(ucx->context, &ways);
    if (!ways.tcp) {
        *reason = "up to UCX 1.13 it needs TCP for that, and UCX_TLS or UCX_NET_DEVICES leave none";
        return false;
    }
    flash_ucx_ways_choose(ways.tcp_devices, ucx->around.networks, devices);
    if (flash_ucx_configure_probes(devices, &config, why) != FLASH_OK) {
        *reason = "UCX refuses a context of TCP alone";
        return false;
    }
    if (ucp_init(&params, config, &ucx->probe_context) != UCS_OK) {
        ucx->probe_context = NULL;
        *reason = "UCX cannot open a context of TCP alone";
    }
    ucp_config_release(config);
    return ucx->probe_context != NULL;
}

bool flash_ucx_open_prober(flash_ucx_t *ucx, const char **reason)
{
    bool by_tcp = ucx->rdma && ucx->around.outlives && ends_by_datagrams();

    if (ucx->prober != NULL) {
        return true;
    }
    if (by_tcp && !open_tcp(ucx, reason)) {
        return false;
    }
    ucx->prober = flash_ucx_new_worker(by_tcp ? ucx->probe_context : ucx->context);
    if (ucx->prober == NULL) {
        *reason = "UCX cannot create a worker";
        flash_ucx_close_prober(ucx);
    }
    return ucx->prober != NULL;
}

void flash_ucx_close_prober(flash_ucx_t *ucx)
{
    if (ucx->prober != NULL) {
        ucp_worker_destroy(ucx->prober);
    }
    if (ucx->probe_context != NULL) {
        ucp_cleanup(ucx->probe_context);
    }
    ucx->prober = NULL;
    ucx->probe_context = NULL;
}
