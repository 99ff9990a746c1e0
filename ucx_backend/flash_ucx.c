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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/*
 * With this prefix UCX itself reads FLASH_UCX_* beside UCX_*. Users expect to find the variables of
 * a UCX program at UCX_: apply_environment() adds UCX_FLASH_*.
 */
#define UCX_OWN_PREFIX "FLASH"
#define ENV_PREFIX     "UCX_FLASH_"

extern char **environ;

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

/* What the environment says of a setting, in the order in which it counts; `otherwise` if nothing. */
static const char *set_to(const char *name, const char *otherwise)
{
    static const char *const prefixes[] = {ENV_PREFIX, UCX_OWN_PREFIX "_UCX_", "UCX_"};
    char variable[64];
    const char *value = NULL;

    for (size_t k = 0; k < sizeof(prefixes) / sizeof(prefixes[0]) && value == NULL; k++) {
        snprintf(variable, sizeof(variable), "%s%s", prefixes[k], name);
        value = getenv(variable);
    }
    return value != NULL ? value : otherwise;
}

/* Changes one of UCX's defaults, which the environment may change again. */
static int set_default(ucp_config_t *config, const char *name, const char *value, char *reason)
{
    ucs_status_t status;

    if (set_to(name, NULL) != NULL) {
        return FLASH_OK;
    }
    status = ucp_config_modify(config, name, value);
    if (status != UCS_OK) {
        snprintf(reason, FLASH_UCX_REASON_MAX, "UCX refuses %s=%s: %s", name, value,
                 ucs_status_string(status));
    }
    return flash_ucx_status(status);
}

/*
 * What TCP sends and takes at a time: UCX's own 8 KiB cost a copying sender twice the CPU time.
 * UCX 1.11 knows no way to change them for one context; there it is slower.
 */
static void set_tcp_buffers(ucp_config_t *config)
{
    static const char *const size = "64k";
    unsigned major, minor, release;
    bool prefixed; /* the names of a transport's settings are */

    if (set_to("TCP_TX_SEG_SIZE", NULL) != NULL || set_to("TCP_RX_SEG_SIZE", NULL) != NULL) {
        return;
    }
    ucp_get_version(&major, &minor, &release);
    prefixed = major > 1 || minor >= 17;
    (void) ucp_config_modify(config, prefixed ? "TCP_RX_SEG_SIZE" : "RX_SEG_SIZE", size);
    (void) ucp_config_modify(config, prefixed ? "TCP_TX_SEG_SIZE" : "TX_SEG_SIZE", size);
}

/*
 * UCX's rendezvous over TCP waits for handshakes at both ends of each message: a ring of it reached
 * 40 % of a 2 Gbit/s link that eager messages fill. What rendezvous protects from, messages that
 * pile up at a receiver that is late, synchronous sends and the engine's limit on them do as well.
 * Rendezvous stays where it saves a copy: with RDMA devices, and in jobs of one node.
 *
 * Not from the user's memory (zcopy): UCX ends the process if a connection breaks when part of a
 * synchronous message has left that way.
 */
static int prefer_eager(ucp_config_t *config, char *reason)
{
    int rc;

    if (has_rdma_device()) {
        return FLASH_OK;
    }
    set_tcp_buffers(config);
    rc = set_default(config, "RNDV_THRESH", "inf", reason);
    return rc == FLASH_OK ? set_default(config, "ZCOPY_THRESH", "inf", reason) : rc;
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
            return flash_ucx_status(status);
        }
    }
    return FLASH_OK;
}

enum { LIST_MAX = 1024 };

/* Behind what the list has. False: there is no room. */
static bool append(char list[LIST_MAX], const char *word)
{
    size_t length = strlen(list);

    return (size_t) snprintf(list + length, LIST_MAX - length, "%s%s", length == 0 ? "" : ",",
                             word) < LIST_MAX - length;
}

/* UCX's transports that are not to be used. */
typedef struct avoided {
    bool cma, posix;
} avoided_t;

/* What comes of a word of a list of transports. */
static const char *remaining(avoided_t avoided, const char *word)
{
    if (strcmp(word, "cma") == 0) {
        return avoided.cma ? NULL : word;
    }
    if (strcmp(word, "posix") == 0 || strcmp(word, "mm") == 0) {
        return avoided.posix ? "sysv" : word;
    }
    if (strcmp(word, "sm") == 0 || strcmp(word, "shm") == 0) {
        return !avoided.posix ? "posix,sysv" : avoided.cma ? "sysv" : "sysv,cma";
    }
    return word;
}

/*
 * The list of transports without these; what stands for several, those among them, becomes the others. False: it
 * is too long.
 */
static bool remove_from(const char *transports, avoided_t avoided, char list[LIST_MAX])
{
    const char *removed = !avoided.posix ? "cma" : avoided.cma ? "cma,posix" : "posix";
    char text[LIST_MAX], *rest, *word;
    bool all = strlen(transports) < sizeof(text);

    list[0] = '\0';
    if (transports[0] == '^') {
        return append(list, transports) && append(list, removed);
    }
    snprintf(text, sizeof(text), "%s", transports);
    for (word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        const char *left = remaining(avoided, word);

        if (strcmp(word, "all") == 0) {
            snprintf(list, LIST_MAX, "^%s", removed);
            return true;
        }
        all &= left == NULL || append(list, left);
    }
    return all;
}

/* Whether this process is in another user namespace than the system's first, whose number Linux never changes. */
static bool is_in_user_namespace(void)
{
    const ino_t first = 0xEFFFFFFD;
    struct stat space;

    return stat("/proc/self/ns/user", &space) == 0 && space.st_ino != first;
}

/*
 * UCX's transport cma reads and writes the memory of the node's other processes. A process that the
 * kernel protects from that, as one whose program its user may execute and not read, tells the others by
 * its address that they do not reach it so: a message that fails there never ends. So does one in a user namespace,
 * which may be its own, as where a container is started for each rank: from there the memory of others is not read.
 */
static bool is_cma_denied(void)
{
    return prctl(PR_GET_DUMPABLE) != 1 || is_in_user_namespace();
}

/*
 * UCX's transport posix takes its memory from /dev/shm, some 4 MiB for each rank at once. So does Open MPI, which
 * ends by SIGBUS where it finds none: a container has 64 MiB there. Not of it is what the transport sysv takes.
 */
static bool is_shared_memory_short(unsigned ranks)
{
    enum { EACH = 16 << 20 }; /* as much again as both begin with, for what they take later */
    struct statvfs system;

    return statvfs("/dev/shm", &system) == 0 &&
           (uint64_t) system.f_bavail * system.f_frsize < (uint64_t) ranks * EACH;
}

static int avoid_transports(ucp_config_t *config, unsigned on_node, char *reason)
{
    avoided_t avoided = {.cma = is_cma_denied(), .posix = is_shared_memory_short(on_node)};
    char list[LIST_MAX];
    ucs_status_t status;

    if (!avoided.cma && !avoided.posix) {
        return FLASH_OK;
    }
    if (!remove_from(set_to("TLS", "all"), avoided, list)) {
        snprintf(reason, FLASH_UCX_REASON_MAX, "the list of transports in UCX_TLS is too long");
        return FLASH_ERR_TRANSPORT;
    }
    status = ucp_config_modify(config, "TLS", list);
    return status == UCS_OK ? FLASH_OK
                            : flash_ucx_fail(reason, "UCX refuses to avoid a transport", status);
}

static int open_context(flash_ucx_t *ucx, bool across_nodes, unsigned on_node, const char *networks,
                        char *reason)
{
    /* A ring has two neighbours: this tells UCX to choose transports for few endpoints. All-to-alls
       have more: UCX_FLASH_NUM_EPS in the environment says otherwise. */
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES |
                                         UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                           .estimated_num_eps = 2,
                           .name = "flash"};
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(UCX_OWN_PREFIX, NULL, &config);
    int rc;

    if (status != UCS_OK) {
        return flash_ucx_fail(reason, "UCX cannot read its configuration", status);
    }
    rc = across_nodes ? prefer_eager(config, reason) : FLASH_OK;
    if (rc == FLASH_OK && networks != NULL && !has_rdma_device()) {
        rc = set_default(config, "NET_DEVICES", networks, reason);
    }
    if (rc == FLASH_OK) {
        /* How often probes ask (flash_ucx_probe.c). There are none until a peer falls silent. */
        rc = set_default(config, "KEEPALIVE_INTERVAL", "2s", reason);
    }
    if (rc == FLASH_OK) {
        rc = apply_environment(config, reason);
    }
    if (rc == FLASH_OK) {
        rc = avoid_transports(config, on_node, reason);
    }
    if (rc == FLASH_OK) {
        status = ucp_init(&params, config, &ucx->context);
        rc = status == UCS_OK ? FLASH_OK
                              : flash_ucx_fail(reason, "UCX cannot be initialised", status);
    }
    ucp_config_release(config);
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

static flash_transport_t *create(bool across_nodes, unsigned on_node, const char *networks,
                                 char reason[FLASH_UCX_REASON_MAX])
{
    flash_ucx_t *ucx = calloc(1, sizeof(*ucx));

    if (ucx == NULL) {
        snprintf(reason, FLASH_UCX_REASON_MAX, "out of memory");
        return NULL;
    }
    ucx->super.ops = &flash_ucx_ops;
    ucx->retries_tail = &ucx->retries;
    if (open_context(ucx, across_nodes, on_node, networks, reason) != FLASH_OK) {
        goto free_ucx;
    }
    if (open_worker(ucx, reason) != FLASH_OK) {
        goto cleanup_context;
    }
    ucx->super.event_fd = wakeup_fd(ucx);
    ucx->super.reaches_devices = knows_cuda(ucx);
    /* Eager messages, see prefer_eager(), would have UCX wait for a copy of each fragment. */
    ucx->super.prefers_devices = ucx->super.reaches_devices && (!across_nodes || has_rdma_device());
    return &ucx->super;

cleanup_context:
    ucp_cleanup(ucx->context);
free_ucx:
    free(ucx);
    return NULL;
}

/*
 * UCX 1.18 ends the process when a context is closed for which a message still holds memory, as one
 * for a lost peer does. It stays instead, and UCX with it, which hears of the memory that is freed.
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

    flash_ucx_end_probes(transport);
    flash_ucx_end_loopback(ucx);
    ucp_worker_release_address(ucx->worker, ucx->address);
    ucp_worker_destroy(ucx->worker); /* with its endpoints */
    flash_ucx_free_messages(ucx);
    flash_ucx_free_peers(ucx);
    if (held) {
        leave_context();
    } else {
        ucp_cleanup(ucx->context);
    }
    free(ucx);
}

static const void *address_of(const flash_transport_t *transport, size_t *length)
{
    const flash_ucx_t *ucx = (const flash_ucx_t *) transport;

    *length = ucx->address_length;
    return ucx->address;
}

/* ----------------------------------------------------------------- the table */

__attribute__((visibility("default"))) const flash_ucx_calls_t flash_ucx_calls_2 = {
    .create = create,
    .destroy = destroy,
    .address = address_of,
    .peer = flash_ucx_peer,
    .is_connected = flash_ucx_is_connected,
    .connect = flash_ucx_connect,
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
