/*
 * random_ops.c: random collective calls, see random_ops.h: options, threads, what is said when it
 * fails.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "keep_libraries.h"

enum { MOST_THREADS = 16 };

options_t options = {.seed = 1, .operations = 1000, .threads = 1, .most = 4096};

static sequence_t sequences[MOST_THREADS];

/* ------------------------------------------------------------------- complaints */

/* The command line, with flash's parameters, that runs a few operations again. */
static int again(char *text, size_t room, uint64_t first, uint64_t operations)
{
    int length = snprintf(text, room, "    mpirun -np %d", world_size);

    for (char **entry = environ; *entry != NULL; entry++) {
        if (strncmp(*entry, "OMPI_MCA_coll_flash_", 20) == 0 &&
            strncmp(*entry + 20, "help_dir", 8) != 0 && length < (int) room) {
            int name = (int) strcspn(*entry, "=");

            length += snprintf(text + length, room - (size_t) length, " --mca %.*s %s", name - 9,
                               *entry + 9, *entry + name + 1);
        }
    }
    if (length < (int) room) {
        length += snprintf(text + length, room - (size_t) length,
                           " random_ops --seed=%" PRIu64 " --first=%" PRIu64
                           " --operations=%" PRIu64 " --threads=%d --most=%zu\n",
                           options.seed, first, operations, options.threads, options.most);
    }
    return length < (int) room ? length : (int) room - 1;
}

void fail(const sequence_t *sequence, uint64_t number, const char *text, ...)
{
    /* The calls before may matter, too: from the beginning of the epoch before on. */
    uint64_t epoch = number / RANDOM_EPOCH, before = (epoch > 0 ? epoch - 1 : 0) * RANDOM_EPOCH;
    char message[4096];
    int length = snprintf(message, sizeof(message),
                          "seed %" PRIu64 ", operation %" PRIu64 ", rank %d of %d, thread %d: ",
                          options.seed, number, world_rank, world_size, sequence->thread);
    va_list args;

    va_start(args, text);
    length += vsnprintf(message + length, 1024, text, args);
    va_end(args);
    length += snprintf(message + length, 64, "\nagain, alone and with those before:\n");
    length += again(message + length, 1024, number, 1);
    again(message + length, 1024, before, sequence->number - before + 1);
    fputs(message, stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void must(int error, const sequence_t *sequence, uint64_t number, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (error != MPI_SUCCESS) {
        MPI_Error_string(error, text, &length);
        fail(sequence, number, "%s: %s", what, text);
    }
}

/* Where each thread is, for a crash and a hang. */
static void say_where(const char *what)
{
    for (int thread = 0; thread < options.threads; thread++) {
        const sequence_t *sequence = &sequences[thread];
        char line[1024];
        int length = snprintf(line, sizeof(line),
                              "seed %" PRIu64 ", rank %d of %d %s: thread %d at operation %" PRIu64
                              ", %s; pending:",
                              options.seed, world_rank, world_size, what, thread, sequence->number,
                              sequence->doing == NULL ? "start" : sequence->doing);

        for (int k = 0; k < sequence->count && length < 1000; k++) {
            length += snprintf(line + length, sizeof(line) - (size_t) length, " %" PRIu64,
                               sequence->pending[k]->number);
        }
        line[length++] = '\n';
        if (write(STDERR_FILENO, line, (size_t) length) != length) {
            return;
        }
    }
}

static struct sigaction previous[NSIG];

static void report_crash(int signal)
{
    say_where("crashes");
    sigaction(signal, &previous[signal], NULL);
    raise(signal);
}

static void report_hang(int signal)
{
    (void) signal;
    say_where("hangs");
    sleep(2); /* the other ranks say the same before this one's end ends them */
    _exit(1);
}

/* After MPI_Init, where Open MPI's own handlers, which are to follow, are set. */
static void watch_signals(unsigned seconds)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    struct sigaction crash = {.sa_handler = report_crash};

    for (size_t k = 0; k < LENGTH(crashes); k++) {
        sigaction(crashes[k], &crash, &previous[crashes[k]]);
    }
    signal(SIGALRM, report_hang);
    alarm(seconds);
}

/* ------------------------------------------------------------------------- main */

static void read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"seed", required_argument, NULL, 's'},       {"first", required_argument, NULL, 'f'},
        {"operations", required_argument, NULL, 'o'}, {"threads", required_argument, NULL, 't'},
        {"most", required_argument, NULL, 'm'},       {"patience", required_argument, NULL, 'w'},
        {"watch-memory", no_argument, NULL, 'p'},     {NULL, 0, NULL, 0}};
    int letter;

    while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (letter) {
        case 's':
            options.seed = strtoull(optarg, NULL, 0);
            break;
        case 'f':
            options.first = strtoull(optarg, NULL, 0);
            break;
        case 'o':
            options.operations = strtoull(optarg, NULL, 0);
            break;
        case 't':
            options.threads = atoi(optarg);
            break;
        case 'm':
            options.most = strtoull(optarg, NULL, 0);
            break;
        case 'w':
            options.patience = (unsigned) atoi(optarg);
            break;
        case 'p':
            options.watch_memory = true;
            break;
        default:
            exit(2);
        }
    }
    if (optind != argc || options.threads < 1 || options.threads > MOST_THREADS) {
        fprintf(stderr,
                "usage: %s [--seed=S] [--first=K] [--operations=N] [--threads=T] "
                "[--most=BYTES] [--patience=SECONDS] [--watch-memory]\n",
                argv[0]);
        exit(2);
    }
}

/* How long the next operation may take before it counts as a hang; the run may take any time. */
static unsigned patience(void)
{
    const char *limit = getenv("FLASH_TEST_TIMEOUT");

    if (options.patience == 0 && limit != NULL && atoi(limit) > 10) {
        options.patience = (unsigned) atoi(limit) - 10;
    }
    return options.patience;
}

static void *thread_main(void *sequence)
{
    run_sequence(sequence);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[MOST_THREADS];

    for (int k = 0; k < options.threads; k++) {
        sequences[k].thread = k;
        MPI_Comm_dup(MPI_COMM_WORLD, &sequences[k].home);
    }
    for (int k = 0; k < options.threads; k++) {
        pthread_create(&threads[k], NULL, thread_main, &sequences[k]);
    }
    for (int k = 0; k < options.threads; k++) {
        pthread_join(threads[k], NULL);
        MPI_Comm_free(&sequences[k].home);
    }
}

int main(int argc, char **argv)
{
    int wanted, provided;
    size_t count;

    read_options(argc, argv);
    wanted = options.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* inherited by all others */
    watch_signals(patience());
    begin_progress();
    reductions(&count); /* makes its list, before there are threads */
    if (provided < wanted) {
        fail(&sequences[0], 0, "thread level %d instead of %d", provided, wanted);
    }
    count_paths();
    if (options.threads > 1) {
        run_threads();
    } else {
        sequences[0].home = MPI_COMM_WORLD;
        run_sequence(&sequences[0]);
    }
    end_later();
    check_paths(&sequences[0]);
    MPI_Finalize();
    return 0;
}
