/*
 * coll_flash_ucx.c: see coll_flash_ucx.h.
 *
 * A program that never heard of UCX finds its process as it was:
 *
 *   handlers  UCX takes SIGSEGV, SIGFPE, SIGILL, SIGHUP and others from the program when it is
 *             loaded. Runtimes live by such handlers (Julia, JVMs).
 *   threads   UCX's own thread would run the program's other handlers, which may expect a thread of
 *             the program's.
 *   code      UCX writes over the first instructions of mmap(2), munmap(2), brk(2) and others in
 *             the C library, to hear of memory that goes. It needs that for memory that it has
 *             registered with a device, and only there.
 *
 * `calls` and `old_copy` are written once, under the mutex of coll_flash_job.c, `folder` in MPI_Init, and
 * `old_copy` in MPI_Finalize, too.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_ucx.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compat/coll_flash_compat.h"
#include "engine/flash_engine.h"

static const flash_ucx_calls_t *calls;

/* ------------------------------------------------------------ the program's signals */

typedef struct dispositions {
    struct sigaction of[NSIG];
} dispositions_t;

static void save(dispositions_t *dispositions)
{
    for (int signal = 1; signal < NSIG; signal++) {
        (void) sigaction(signal, NULL, &dispositions->of[signal]);
    }
}

/* Whether UCX has the handler: its libraries and the plugin have "uc" in their names. */
static bool is_of_ucx(const struct sigaction *action)
{
    Dl_info library;
    const char *name;

    if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN ||
        dladdr((const void *) (uintptr_t) action->sa_sigaction, &library) == 0) {
        return false;
    }
    name = strrchr(library.dli_fname, '/');
    name = name == NULL ? library.dli_fname : name + 1;
    return strncmp(name, "libuc", 5) == 0 || strcmp(name, "flash_ucx.so") == 0;
}

/* Those that UCX has set alone: the program may set others at the same time, by another thread. */
static void restore(const dispositions_t *dispositions)
{
    struct sigaction now;

    for (int signal = 1; signal < NSIG; signal++) {
        const struct sigaction *before = &dispositions->of[signal];

        if (sigaction(signal, NULL, &now) == 0 && now.sa_sigaction != before->sa_sigaction &&
            is_of_ucx(&now)) {
            (void) sigaction(signal, before, NULL);
        }
    }
}

/* A fault in a thread that blocks its signal would end the process without a word. */
static void block_all_but_faults(sigset_t *signals)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

    sigfillset(signals);
    for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++) {
        sigdelset(signals, faults[k]);
    }
}

/* --------------------------------------------------------- the C library's code */

/*
 * Where UCX may register memory: with network adapters, GPUs, and for other processes of the node.
 */
static bool has_registering_device(void)
{
    static const char *const devices[] = {
        "/dev/infiniband", "/dev/nvidiactl", "/proc/driver/nvidia", "/dev/nvmap",
        "/dev/dxg",        "/dev/kfd",       "/dev/xpmem",          "/dev/knem"};

    for (size_t k = 0; k < sizeof(devices) / sizeof(devices[0]); k++) {
        if (access(devices[k], F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* A user who has set the variable may want it. */
bool mca_coll_flash_ucx_writes_code(void)
{
    return has_registering_device() || getenv("UCX_MEM_EVENTS") != NULL;
}

/* --------------------------------------------------------------------- the plugin */

static char folder[PATH_MAX]; /* written in MPI_Init; empty: not to be found */

/* The folder of this library, wherever it was put. The program may go to another folder later. */
void mca_coll_flash_ucx_prepare(void)
{
    Dl_info library;
    char *end;

    if (dladdr((const void *) (uintptr_t) mca_coll_flash_ucx_open, &library) == 0 ||
        realpath(library.dli_fname, folder) == NULL) {
        folder[0] = '\0';
        return;
    }
    end = strrchr(folder, '/');
    *end = '\0';
}

/*
 * The plugin stays loaded, and UCX with it: when UCX is unloaded, it puts back the signal handlers
 * that it found, over those that the program has set since.
 */
static void *load_from(const char *below, char *reason)
{
    char path[PATH_MAX + 32];
    void *plugin;

    snprintf(path, sizeof(path), "%s%s/flash_ucx.so", folder, below);
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (plugin == NULL && (reason[0] == '\0' || access(path, F_OK) == 0)) {
        snprintf(reason, FLASH_UCX_REASON_MAX, "%s", dlerror());
    }
    return plugin;
}

/*
 * Installed, in the folder of flash's plugins; in the folder where it was built, beside the
 * library.
 */
static const flash_ucx_calls_t *load(char *reason)
{
    const flash_ucx_calls_t *found = NULL;
    void *plugin;

    if (folder[0] == '\0') {
        strcpy(reason, "the folder of libmpix_flash.so is not to be found");
        return NULL;
    }
    reason[0] = '\0';
    plugin = load_from("/" FLASH_PLUGINS, reason);
    if (plugin == NULL) {
        plugin = load_from("", reason);
    }
    if (plugin != NULL) {
        found = dlsym(plugin, FLASH_UCX_SYMBOL);
        if (found == NULL) {
            snprintf(reason, FLASH_UCX_REASON_MAX, "flash_ucx.so is of another version of flash");
        }
    }
    return found;
}

/* ---------------------------------------------------------------- its environment */

enum { VARIABLES = 2 };

static const struct {
    const char *name;
    char *entry; /* of an environment */
} variables[VARIABLES] = {{"UCX_HANDLE_ERRORS", "UCX_HANDLE_ERRORS=none"},
                          {"UCX_MEM_EVENTS", "UCX_MEM_EVENTS=n"}};

/* The program's environment, and a copy with those of the variables that it lacks. */
typedef struct surroundings {
    char **own, **all;
    size_t count; /* entries of `own` */
    bool adds[VARIABLES];
} surroundings_t;

/* False: there is no memory. */
static bool copy_environment(surroundings_t *around)
{
    static char *none[] = {NULL};
    size_t next;

    around->own = environ == NULL ? none : environ;
    for (around->count = 0; around->own[around->count] != NULL; around->count++) {
    }
    next = around->count;
    around->all = calloc(around->count + VARIABLES + 1, sizeof(*around->all));
    if (around->all == NULL) {
        return false;
    }
    memcpy(around->all, around->own, around->count * sizeof(*around->all));
    for (int k = 0; k < VARIABLES; k++) {
        around->adds[k] =
            getenv(variables[k].name) == NULL && (k == 0 || !has_registering_device());
        if (around->adds[k]) {
            around->all[next++] = variables[k].entry;
        }
    }
    return true;
}

/* Back to the program's, unless a thread of the program has changed the copy, or replaced it. */
static void restore_environment(const surroundings_t *around)
{
    char **copy = around->all;
    bool same = environ == copy;

    for (size_t k = 0; same && k < around->count; k++) {
        same = around->all[k] == around->own[k];
    }
    same = same && __atomic_compare_exchange_n(&environ, &copy, around->own, false,
                                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    for (int k = 0; !same && k < VARIABLES; k++) {
        if (around->adds[k]) {
            (void) unsetenv(variables[k].name);
        }
    }
}

static char **old_copy; /* owned; NULL: there is none */

void mca_coll_flash_ucx_fini(void)
{
    free(old_copy);
    old_copy = NULL;
}

/*
 * UCX reads these two variables once, when the process loads it first: not to install handlers for
 * faults, and not to write over functions. Handlers that it had installed it would also remove at
 * the end of the process, over the program's.
 *
 * Other threads may read the environment at any time. setenv() could free what they read. So UCX gets a
 * copy, which stays until MPI_Finalize, as some thread may still read that.
 */
static const flash_ucx_calls_t *load_quietly(char *reason)
{
    surroundings_t around;
    const flash_ucx_calls_t *found;

    if (!copy_environment(&around)) {
        strcpy(reason, "out of memory");
        return NULL;
    }
    __atomic_store_n(&environ, around.all, __ATOMIC_RELEASE); /* other threads find its entries */
    found = load(reason);
    restore_environment(&around);
    old_copy = environ != around.all ? around.all : NULL; /* else it is the program's now */
    return found;
}

/*
 * Whether the user wants the job to go on when one of its processes has died: by mpirun's
 * --enable-recovery, of which Open MPI 4 tells by a parameter, or by asking for probes.
 */
bool mca_coll_flash_ucx_outlives(void)
{
    int recovery = mca_base_var_find("orte", "orte", NULL, "enable_recovery");
    int probes = mca_base_var_find("ompi", "coll", "flash", "probe_seconds");
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    const bool *recovers = NULL;
    const unsigned *seconds = NULL;

    if (recovery >= 0 && mca_base_var_get_value(recovery, &recovers, NULL, NULL) == OPAL_SUCCESS &&
        recovers != NULL && *recovers) {
        return true;
    }
    return probes >= 0 && mca_base_var_get_value(probes, &seconds, &source, NULL) == OPAL_SUCCESS &&
           source != MCA_BASE_VAR_SOURCE_DEFAULT;
}

/* Larger communicators exchange no messages of flash's. */
static unsigned most_peers(void)
{
    const uint32_t most = UINT32_C(1) << FLASH_TAG_STEP_BITS;
    uint32_t ranks = flash_compat_job_size();

    return (ranks < most ? ranks : most) - 1;
}

flash_transport_t *mca_coll_flash_ucx_open(bool across_nodes, unsigned on_node,
                                           char reason[FLASH_UCX_REASON_MAX])
{
    char networks[FLASH_UCX_NETWORKS_MAX];
    dispositions_t dispositions;
    flash_transport_t *transport = NULL;
    sigset_t all, mask;

    save(&dispositions);
    block_all_but_faults(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &mask); /* UCX's thread inherits that */
    if (calls == NULL) {
        calls = load_quietly(reason);
    }
    if (calls != NULL) {
        flash_ucx_surroundings_t around = {.across_nodes = across_nodes,
                                           .on_node = on_node,
                                           .peers = most_peers(),
                                           .outlives = mca_coll_flash_ucx_outlives()};

        if (mca_coll_flash_interfaces(networks, sizeof(networks))) {
            around.networks = networks;
        }
        transport = calls->create(&around, reason);
    }
    (void) pthread_sigmask(SIG_SETMASK, &mask, NULL);
    restore(&dispositions);
    return transport;
}

const flash_ucx_calls_t *mca_coll_flash_ucx(void)
{
    return calls;
}
