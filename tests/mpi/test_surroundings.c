/*
 * test_surroundings.c: what MPI_Init, an operation and MPI_Finalize leave changed in the process,
 * as text: the script compares what they do with flash and without.
 *
 *   test_surroundings [handlers]     with `handlers` the program has some of its own before
 *                                    MPI_Init, and sets further ones after it
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <mpi.h>

#include "keep_libraries.h"

extern char **environ;

enum { COUNT = 1 << 20, FIRST_BYTES = 16 };
#define JUMP     0xe9        /* of x86: what is written over functions */
#define RESTORER 0x04000000U /* of the C library's own, whenever it sets a disposition */

static const char *stage;
static int rank;

static void tell(const char *what, const char *value)
{
    if (rank == 0) {
        printf("%s: %s: %s\n", stage, what, value);
    }
}

static void tell_number(const char *what, unsigned long long value)
{
    char text[32];

    snprintf(text, sizeof(text), "%llx", value);
    tell(what, text);
}

static void handle(int signal)
{
    (void) signal;
}

/* ---------------------------------------------------------------- signals, threads */

static const char *describe(const struct sigaction *action)
{
    static char text[256];
    Dl_info library;

    if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN) {
        return action->sa_handler == SIG_DFL ? "default" : "ignored";
    }
    if (action->sa_handler == handle) {
        return "the program's";
    }
    if (dladdr((const void *) (uintptr_t) action->sa_handler, &library) == 0) {
        return "somebody's";
    }
    snprintf(text, sizeof(text), "of %.200s", strrchr(library.dli_fname, '/'));
    return text;
}

static void tell_signals(void)
{
    struct sigaction action;
    sigset_t mask;
    char what[32];

    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int signal = 1; signal < NSIG; signal++) {
        if (sigaction(signal, NULL, &action) == 0) {
            snprintf(what, sizeof(what), "signal %d%s", signal,
                     sigismember(&mask, signal) == 1 ? " (blocked)" : "");
            tell(what, describe(&action));
            tell_number(what, (unsigned) action.sa_flags & ~RESTORER);
        }
    }
}

/*
 * Of that thread, as the kernel lists it: the bits of the signals from 1 on; all, of one that has
 * gone.
 */
static unsigned long long blocked_by(const char *thread)
{
    unsigned long long blocked = ~0ULL;
    char path[64], line[128];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", thread);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        (void) sscanf(line, "SigBlk: %llx", &blocked);
    }
    if (file != NULL) {
        fclose(file);
    }
    return blocked;
}

/* In how many threads beside this one a signal that is sent to the process may be handled. */
static unsigned count_threads(void)
{
    static const unsigned long long asynchronous = 1ULL << (SIGALRM - 1) | 1ULL << (SIGTERM - 1) |
                                                   1ULL << (SIGUSR1 - 1) | 1ULL << (SIGINT - 1);
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    unsigned open = 0;

    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        open += entry->d_name[0] != '.' && atoi(entry->d_name) != getpid() &&
                (blocked_by(entry->d_name) & asynchronous) != asynchronous;
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return open;
}

/* The least of many looks: one that ends is listed for a while. */
static void tell_threads(void)
{
    unsigned least = count_threads();

    for (int look = 0; look < 20; look++) {
        unsigned now = count_threads();

        least = now < least ? now : least;
        usleep(5000);
    }
    tell_number("threads that handle signals", least);
}

/* --------------------------------------------------------------------- all else */

static void tell_environment(void)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        /* What tells of the job, and which components are wanted. */
        if (strncmp(*entry, "OMPI_", 5) != 0 && strncmp(*entry, "PMIX_", 5) != 0 &&
            strncmp(*entry, "PRTE_", 5) != 0 && strncmp(*entry, "HFI_", 4) != 0) {
            tell("environment", *entry);
        }
    }
}

static void tell_limits(void)
{
    struct rlimit limit;
    char what[32];

    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        if (getrlimit((__rlimit_resource_t) resource, &limit) == 0) {
            snprintf(what, sizeof(what), "limit %d", resource);
            tell_number(what, limit.rlim_cur);
            tell_number(what, limit.rlim_max);
        }
    }
}

/* Those of the C library that communication libraries write over, to hear of memory that goes. */
static void tell_code(void)
{
    static const char *const registering[] = {
        "/dev/infiniband", "/dev/nvidiactl", "/proc/driver/nvidia", "/dev/nvmap",
        "/dev/dxg",        "/dev/kfd",       "/dev/xpmem",          "/dev/knem"};
    static const char *const functions[] = {
        "mmap",   "munmap", "mremap", "madvise", "shmat",  "shmdt",  "brk",     "sbrk",
        "malloc", "free",   "fork",   "open",    "signal", "calloc", "realloc", "sigaction"};

    for (size_t k = 0; k < sizeof(registering) / sizeof(registering[0]); k++) {
        if (access(registering[k], F_OK) == 0 || getenv("UCX_MEM_EVENTS") != NULL) {
            return; /* there UCX writes over functions, as documented */
        }
    }
    for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) {
        const unsigned char *code = dlsym(RTLD_DEFAULT, functions[k]);
        char text[2 * FIRST_BYTES + 1] = "none";
        Dl_info library;

        for (int byte = 0; code != NULL && byte < FIRST_BYTES; byte++) {
            snprintf(text + (size_t) 2 * (size_t) byte, 3, "%02x", code[byte]);
        }
        if (code != NULL && code[0] == JUMP) { /* to where it is this time */
            strcpy(text, "a jump");
        }
        tell(functions[k], text);
        if (code != NULL && dladdr(code, &library) != 0) {
            tell(functions[k], library.dli_fname);
        }
    }
}

static void tell_file(const char *path)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");

    if (file != NULL) {
        (void) !fgets(text, sizeof(text), file);
        fclose(file);
    }
    text[strcspn(text, "\n")] = '\0';
    tell(path, text);
}

static void tell_settings(void)
{
    char folder[4096];
    mode_t mask = umask(0);
    struct itimerval timer;
    cpu_set_t cores;

    umask(mask);
    tell_number("umask", mask);
    tell("folder", getcwd(folder, sizeof(folder)));
    tell("locale", setlocale(LC_ALL, NULL));
    tell_number("dumpable", (unsigned) prctl(PR_GET_DUMPABLE));
    tell_number("timer slack", (unsigned) prctl(PR_GET_TIMERSLACK));
    tell_number("no new privileges", (unsigned) prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    tell_number("exceptions", (unsigned) fegetexcept());
    tell_number("rounding", (unsigned) fegetround());
    for (int file = 0; file < 3; file++) {
        tell_number("flags of a standard file", (unsigned) fcntl(file, F_GETFL));
    }
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        getitimer((__itimer_which_t) which, &timer);
        tell_number("timer", (unsigned long long) timer.it_interval.tv_sec);
    }
    sched_getaffinity(0, sizeof(cores), &cores);
    tell_number("cores", (unsigned) CPU_COUNT(&cores));
    tell_number("scheduler", (unsigned) sched_getscheduler(0));
    tell_number("priority", (unsigned) getpriority(PRIO_PROCESS, 0));
    tell_file("/proc/self/coredump_filter");
    tell_file("/proc/self/oom_score_adj");
    tell_file("/proc/self/personality");
}

static void look(const char *when)
{
    stage = when;
    tell_signals();
    tell_threads();
    tell_environment();
    tell_limits();
    tell_code();
    tell_settings();
}

static void set_handlers(int first, int second)
{
    struct sigaction action = {.sa_handler = handle};

    sigaction(first, &action, NULL);
    sigaction(second, &action, NULL);
}

static void exchange(void)
{
    int *own = calloc(COUNT, sizeof(int)), *all, ranks;
    MPI_Request request;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    all = calloc((size_t) COUNT * (size_t) ranks, sizeof(int));
    if (own == NULL || all == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Iallgather(own, COUNT, MPI_INT, all, COUNT, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(own);
    free(all);
}

int main(int argc, char **argv)
{
    bool handlers = argc > 1 && strcmp(argv[1], "handlers") == 0;

    if (handlers) {
        set_handlers(SIGSEGV, SIGHUP);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    look("MPI_Init");
    if (handlers) {
        set_handlers(SIGFPE, SIGILL);
    }
    exchange();
    look("operation");
    MPI_Finalize();
    look("MPI_Finalize");
    if (rank == 0 && dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD) != NULL) {
        printf("UCX is loaded\n");
    }
    return 0;
}
