/*
 * flash_ucx_config.c: how flash's own context of UCX is configured.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

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

/*
 * What the environment says of a setting, in the order in which it counts; `otherwise` if nothing.
 */
const char *flash_ucx_set_to(const char *name, const char *otherwise)
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

    if (flash_ucx_set_to(name, NULL) != NULL) {
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

    if (flash_ucx_set_to("TCP_TX_SEG_SIZE", NULL) != NULL ||
        flash_ucx_set_to("TCP_RX_SEG_SIZE", NULL) != NULL) {
        return;
    }
    ucp_get_version(&major, &minor, &release);
    prefixed = major > 1 || minor >= 17;
    (void) ucp_config_modify(config, prefixed ? "TCP_RX_SEG_SIZE" : "RX_SEG_SIZE", size);
    (void) ucp_config_modify(config, prefixed ? "TCP_TX_SEG_SIZE" : "TX_SEG_SIZE", size);
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (; *list != '\0'; list += strcspn(list, ","), list += *list == ',') {
        if (strcspn(list, ",") == length && strncmp(list, word, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether one of the two is among these transports. UCX warns of settings that no transport takes. */
static bool uses_memory(const char *transports)
{
    bool but = transports[0] == '^';
    const char *list = transports + but;
    bool both = has_word(list, "sm") || has_word(list, "shm") || has_word(list, "mm");

    if (but) {
        return !both && !(has_word(list, "posix") && has_word(list, "sysv"));
    }
    return both || has_word(list, "all") || has_word(list, "posix") || has_word(list, "sysv");
}

/*
 * UCX makes room for 512 messages at a time, in each of two transports through the node's memory,
 * and touches 4 KiB for each message: 4 MiB, of which a process may never use any.
 */
static void set_memory_buffers(ucp_config_t *config)
{
    if (flash_ucx_set_to("POSIX_RX_BUFS_GROW", NULL) == NULL &&
        flash_ucx_set_to("SYSV_RX_BUFS_GROW", NULL) == NULL &&
        flash_ucx_set_to("MM_RX_BUFS_GROW", NULL) == NULL &&
        uses_memory(flash_ucx_set_to("TLS", "all"))) {
        (void) ucp_config_modify(config, "MM_RX_BUFS_GROW", "64");
    }
}

/*
 * UCX's rendezvous over TCP waits for handshakes at both ends of each message: a ring of it reached
 * 40 % of a 2 Gbit/s link that eager messages fill. What rendezvous protects from, messages that
 * pile up at a receiver that is late, synchronous sends and the engine's limits do as well.
 * Rendezvous stays where it saves a copy: with RDMA devices, and in jobs of one node.
 *
 * Not from the user's memory (zcopy): UCX ends the process if a connection breaks when part of a
 * synchronous message has left that way.
 */
static int prefer_eager(ucp_config_t *config, char *reason)
{
    int rc;

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
    bool cma, posix, ib;
} avoided_t;

/* What comes of a word of a list of transports. */
static const char *remaining(avoided_t avoided, const char *word)
{
    static const char *const ib[] = {"ib", "rc", "ud", "dc"}; /* and their kinds: rc_verbs */

    for (size_t k = 0; avoided.ib && k < sizeof(ib) / sizeof(*ib); k++) {
        if (strncmp(word, ib[k], 2) == 0 && (word[2] == '\0' || word[2] == '_')) {
            return NULL;
        }
    }
    if (strcmp(word, "cma") == 0) {
        return avoided.cma ? NULL : word;
    }
    if (strcmp(word, "mm") == 0) {
        return avoided.posix ? "sysv" : word;
    }
    if (strcmp(word, "sm") == 0 || strcmp(word, "shm") == 0) {
        if (avoided.posix) {
            return avoided.cma ? "sysv" : "sysv,cma";
        }
        return avoided.cma ? "posix,sysv" : word;
    }
    return word;
}

/*
 * The list of transports without these; what stands for several, those among them, becomes the
 * others. False: it is too long.
 */
static bool remove_from(const char *transports, avoided_t avoided, char list[LIST_MAX])
{
    char removed[16]; /* behind its first comma */
    char text[LIST_MAX], *rest, *word;
    bool all = strlen(transports) < sizeof(text);

    snprintf(removed, sizeof(removed), "%s%s%s", avoided.cma ? ",cma" : "",
             avoided.posix ? ",posix" : "", avoided.ib ? ",ib" : "");
    list[0] = '\0';
    if (transports[0] == '^') {
        return append(list, transports) && append(list, removed + 1);
    }
    snprintf(text, sizeof(text), "%s", transports);
    for (word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        const char *left = remaining(avoided, word);

        if (strcmp(word, "all") == 0) {
            snprintf(list, LIST_MAX, "^%s", removed + 1);
            return true;
        }
        all &= left == NULL || append(list, left);
    }
    return all;
}

/*
 * Whether this process is in another user namespace than the system's first, whose number Linux
 * never changes.
 */
static bool is_in_user_namespace(void)
{
    const ino_t first = 0xEFFFFFFD;
    struct stat space;

    return stat("/proc/self/ns/user", &space) == 0 && space.st_ino != first;
}

/*
 * UCX's transport cma reads and writes the memory of the node's other processes. A process that the
 * kernel protects from that, as one whose program its user may execute and not read, tells the
 * others by its address that they do not reach it so: a message that fails there never ends. So
 * does one in a user namespace, which may be its own, as where a container is started for each
 * rank: from there the memory of others is not read.
 */
static bool is_cma_denied(void)
{
    return prctl(PR_GET_DUMPABLE) != 1 || is_in_user_namespace();
}

/*
 * UCX's transport posix takes its memory from /dev/shm, some 4 MiB for each rank at once. So does
 * Open MPI, which ends by SIGBUS where it finds none: a container has 64 MiB there. Not of it is
 * what the transport sysv takes.
 */
static bool is_shared_memory_short(unsigned ranks)
{
    enum { EACH = 16 << 20 }; /* as much again as both begin with, for what they take later */
    struct statvfs system;

    return statvfs("/dev/shm", &system) == 0 &&
           (uint64_t) system.f_bavail * system.f_frsize < (uint64_t) ranks * EACH;
}

static int avoid_transports(ucp_config_t *config, flash_ucx_devices_t devices, unsigned on_node,
                            char *reason)
{
    avoided_t avoided = {.cma = is_cma_denied(),
                         .posix = is_shared_memory_short(on_node),
                         .ib = devices == FLASH_UCX_WITHOUT_IB};
    char list[LIST_MAX];
    ucs_status_t status;

    if (!avoided.cma && !avoided.posix && !avoided.ib) {
        return FLASH_OK;
    }
    if (!remove_from(flash_ucx_set_to("TLS", "all"), avoided, list)) {
        snprintf(reason, FLASH_UCX_REASON_MAX, "the list of transports in UCX_TLS is too long");
        return FLASH_ERR_TRANSPORT;
    }
    status = ucp_config_modify(config, "TLS", list);
    return status == UCS_OK ? FLASH_OK
                            : flash_ucx_fail(reason, "UCX refuses to avoid a transport", status);
}

/* How often probes ask (flash_ucx_probe.c). There are none until a peer falls silent. */
static int set_keepalive(ucp_config_t *config, char *reason)
{
    return set_default(config, "KEEPALIVE_INTERVAL", "2s", reason);
}

static int apply(ucp_config_t *config, flash_ucx_devices_t devices,
                 const flash_ucx_surroundings_t *around, char *reason)
{
    bool rdma = devices == FLASH_UCX_RDMA;
    int rc = around->across_nodes && !rdma ? prefer_eager(config, reason) : FLASH_OK;

    set_memory_buffers(config);
    if (rc == FLASH_OK && around->networks != NULL && !rdma) {
        rc = set_default(config, "NET_DEVICES", around->networks, reason);
    }
    if (rc == FLASH_OK) {
        rc = set_keepalive(config, reason);
    }
    if (rc == FLASH_OK) {
        rc = apply_environment(config, reason);
    }
    return rc == FLASH_OK ? avoid_transports(config, devices, around->on_node, reason) : rc;
}

int flash_ucx_configure(flash_ucx_devices_t devices, const flash_ucx_surroundings_t *around,
                        ucp_config_t **config, char *reason)
{
    ucs_status_t status = ucp_config_read(UCX_OWN_PREFIX, NULL, config);
    int rc;

    if (status != UCS_OK) {
        return flash_ucx_fail(reason, "UCX cannot read its configuration", status);
    }
    rc = apply(*config, devices, around, reason);
    if (rc != FLASH_OK) {
        ucp_config_release(*config);
    }
    return rc;
}

/*
 * Not to wait for a connection: the lock is held, and UCX does not tell of one that is refused
 * meanwhile from one that it has no way for. Only UCX up to 1.13 gets such a context: the setting's
 * name has no prefix there.
 */
static int apply_probes(ucp_config_t *config, const char *devices, char *reason)
{
    int rc = set_keepalive(config, reason);
    ucs_status_t status;

    if (rc == FLASH_OK) {
        rc = apply_environment(config, reason);
    }
    if (rc != FLASH_OK) {
        return rc;
    }
    status = ucp_config_modify(config, "TLS", "tcp");
    if (status == UCS_OK) {
        status = ucp_config_modify(config, "NET_DEVICES", devices);
    }
    if (status == UCS_OK) {
        status = ucp_config_modify(config, "CONN_NB", "y");
    }
    return status == UCS_OK ? FLASH_OK
                            : flash_ucx_fail(reason, "UCX refuses TCP for probes", status);
}

int flash_ucx_configure_probes(const char *devices, ucp_config_t **config, char *reason)
{
    ucs_status_t status = ucp_config_read(UCX_OWN_PREFIX, NULL, config);
    int rc;

    if (status != UCS_OK) {
        return flash_ucx_fail(reason, "UCX cannot read its configuration", status);
    }
    rc = apply_probes(*config, devices, reason);
    if (rc != FLASH_OK) {
        ucp_config_release(*config);
    }
    return rc;
}
