/*
 * flash_panels.c: panels that each rank broadcasts in turn and all ranks compute with, as the rows of a
 * grid of ranks do in SUMMA and in the LU factorization of HPL: what hides the broadcasts.
 *
 *   tests/cluster/hosts -n 4 --mca coll flash --mca coll_flash_algorithm ring -- flash_panels
 *       [-m BYTES OF A PANEL] [-p PIECES] [-n PANELS] [-i ROUNDS] [-c cpu|clock|sleep]
 *       [-r COMPUTATION / BROADCAST ALONE]
 *
 * The ways to compute with a panel:
 *
 *   blocking   MPI_Bcast, then the whole panel
 *   plain      MPI_Ibcast, MPI_Wait, then the whole panel
 *   pieces     an MPI_Ibcast of each piece of the panel; each piece is computed with once it is there:
 *              what a broadcast with callbacks would do
 *   ahead      the MPI_Ibcast of the next panel is under way while this one is computed with
 *   both       ahead, in pieces
 *
 * A root has its panel, and computes before it waits. Times are medians over the rounds of the maximum
 * over ranks, for a panel; exposed: what is longer than the computation alone, relative to the broadcast
 * alone by the same collectives.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "bench_job.h"
#include "bench_parse.h"
#include "bench_stats.h"
#include "coll_compute.h"

enum { MOST_PIECES = 64, MOST_ROUNDS = 1000 };

typedef enum way { COMPUTATION, ALONE, BLOCKING, PLAIN, PIECES, AHEAD, BOTH, WAYS } way_t;

static const char *const way_names[WAYS] = {[COMPUTATION] = "computation alone",
                                            [ALONE] = "broadcast alone",
                                            [BLOCKING] = "blocking",
                                            [PLAIN] = "plain",
                                            [PIECES] = "pieces",
                                            [AHEAD] = "ahead",
                                            [BOTH] = "both"};

typedef struct bench {
    int rank, size;
    int bytes, pieces, panels, rounds;
    double ratio;
    coll_compute_kind_t kind;
    double seconds; /* of computation, for a panel */
    bool check;
    long wrong;
    unsigned char *own, *arriving[2]; /* the panel of this rank; those of others, in turn */
} bench_t;

/* A panel under way or here: its pieces. */
typedef struct panel {
    int number, root, pieces;
    unsigned char *data;
    MPI_Request requests[MOST_PIECES];
} panel_t;

static unsigned char byte_of(int root, int index)
{
    return (unsigned char) (31 * root + index % 251 + index / 251);
}

/* Where a piece begins: the first byte of that number. */
static int first_of(const bench_t *bench, const panel_t *panel, int piece)
{
    return (int) ((long long) bench->bytes * piece / panel->pieces);
}

static void begin(bench_t *bench, panel_t *panel, int number, int pieces, MPI_Comm comm)
{
    panel->number = number;
    panel->root = number % bench->size;
    panel->pieces = pieces;
    panel->data = panel->root == bench->rank ? bench->own : bench->arriving[number % 2];
    if (bench->check && panel->root != bench->rank) {
        memset(panel->data, 0, (size_t) bench->bytes);
    }
    for (int piece = 0; piece < pieces; piece++) {
        int first = first_of(bench, panel, piece);

        MPI_Ibcast(panel->data + first, first_of(bench, panel, piece + 1) - first, MPI_BYTE,
                   panel->root, comm, &panel->requests[piece]);
    }
}

static void check(bench_t *bench, const panel_t *panel)
{
    for (int k = 0; bench->check && k < bench->bytes; k++) {
        bench->wrong += panel->data[k] != byte_of(panel->root, k);
    }
}

/* Computes with the panel, piece by piece; `computes`: or waits alone. */
static void finish(bench_t *bench, panel_t *panel, bool computes)
{
    bool root = panel->root == bench->rank;

    for (int piece = 0; piece < panel->pieces; piece++) {
        if (!root) {
            MPI_Wait(&panel->requests[piece], MPI_STATUS_IGNORE);
        }
        if (computes) {
            coll_compute(bench->seconds / panel->pieces, bench->kind);
        }
    }
    MPI_Waitall(panel->pieces, panel->requests, MPI_STATUSES_IGNORE);
    check(bench, panel);
}

static void run_blocking(bench_t *bench, MPI_Comm comm)
{
    for (int number = 0; number < bench->panels; number++) {
        panel_t panel = {.root = number % bench->size, .data = bench->arriving[0]};

        panel.data = panel.root == bench->rank ? bench->own : panel.data;
        MPI_Bcast(panel.data, bench->bytes, MPI_BYTE, panel.root, comm);
        check(bench, &panel);
        coll_compute(bench->seconds, bench->kind);
    }
}

static void run_ahead(bench_t *bench, int pieces, MPI_Comm comm)
{
    panel_t panels[2];

    begin(bench, &panels[0], 0, pieces, comm);
    for (int number = 0; number < bench->panels; number++) {
        if (number + 1 < bench->panels) {
            begin(bench, &panels[(number + 1) % 2], number + 1, pieces, comm);
        }
        finish(bench, &panels[number % 2], true);
    }
}

static void run_in_turn(bench_t *bench, int pieces, bool computes, MPI_Comm comm)
{
    panel_t panel;

    for (int number = 0; number < bench->panels; number++) {
        begin(bench, &panel, number, pieces, comm);
        finish(bench, &panel, computes);
    }
}

/* Seconds for a panel, on the slowest rank. */
static double run(bench_t *bench, way_t way, MPI_Comm comm)
{
    double start, taken;

    MPI_Barrier(MPI_COMM_WORLD);
    start = bench_now();
    switch (way) {
    case COMPUTATION:
        for (int number = 0; number < bench->panels; number++) {
            coll_compute(bench->seconds, bench->kind);
        }
        break;
    case BLOCKING:
        run_blocking(bench, comm);
        break;
    case AHEAD:
    case BOTH:
        run_ahead(bench, way == BOTH ? bench->pieces : 1, comm);
        break;
    default:
        run_in_turn(bench, way == PIECES ? bench->pieces : 1, way != ALONE, comm);
        break;
    }
    taken = (bench_now() - start) / bench->panels;
    MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return taken;
}

/* All ways by turns, on flash and on Open MPI's own: samples[comm][way][round]. */
static void measure(bench_t *bench, MPI_Comm comms[2], double medians[2][WAYS])
{
    double *samples = calloc((size_t) (2 * WAYS * bench->rounds), sizeof(*samples));

    if (samples == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    for (int round = -1; round < bench->rounds; round++) {
        bench->check = round < 0;
        for (int k = 0; k < 2 * WAYS; k++) {
            double seconds = run(bench, (way_t) (k / 2), comms[k % 2]);

            if (round >= 0) {
                samples[k * bench->rounds + round] = seconds;
            }
        }
    }
    for (int k = 0; k < 2 * WAYS; k++) {
        medians[k % 2][k / 2] = bench_stats(samples + k * bench->rounds, bench->rounds).median;
    }
    free(samples);
}

static void report(const bench_t *bench, double medians[2][WAYS], bool served)
{
    printf("# %d ranks, panels of %d bytes in %d pieces; %s\n", bench->size, bench->bytes,
           bench->pieces, served ? "served by flash" : "flash serves no rank");
    printf("| way | flash, ms | exposed, %% | Open MPI, ms | exposed, %% |\n"
           "| --- | --- | --- | --- | --- |\n");
    for (int way = 0; way < WAYS; way++) {
        printf("| %s |", way_names[way]);
        for (int comm = 0; comm < 2; comm++) {
            const double *times = medians[comm];

            printf(" %.2f |", 1e3 * times[way]);
            if (way > ALONE) {
                printf(" %.0f |", 100 * (times[way] - times[COMPUTATION]) / times[ALONE]);
            } else {
                printf("  |");
            }
        }
        printf("\n");
    }
}

static bool parse_kind(const char *text, coll_compute_kind_t *kind)
{
    static const char *const names[] = {
        [COLL_WORK] = "cpu", [COLL_CLOCK] = "clock", [COLL_SLEEP] = "sleep"};

    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (strcmp(text, names[k]) == 0) {
            *kind = (coll_compute_kind_t) k;
            return true;
        }
    }
    return false;
}

static bool parse(int argc, char **argv, bench_t *bench)
{
    bool good = true;
    int option;

    opterr = 0;
    while (good && (option = getopt(argc, argv, "m:p:n:i:c:r:")) != -1) {
        good = (option == 'm' && bench_parse_int(optarg, 1, INT_MAX, &bench->bytes)) ||
               (option == 'p' && bench_parse_int(optarg, 1, MOST_PIECES, &bench->pieces)) ||
               (option == 'n' && bench_parse_int(optarg, 1, INT_MAX, &bench->panels)) ||
               (option == 'i' && bench_parse_int(optarg, 1, MOST_ROUNDS, &bench->rounds)) ||
               (option == 'c' && parse_kind(optarg, &bench->kind)) ||
               (option == 'r' && bench_parse_number(optarg, 1, 0, 1000, &bench->ratio));
    }
    if ((!good || optind < argc) && bench->rank == 0) {
        fprintf(stderr,
                "usage: flash_panels [-m BYTES] [-p PIECES, up to %d] [-n PANELS] [-i ROUNDS] "
                "[-c cpu|clock|sleep] [-r RATIO]\n",
                MOST_PIECES);
    }
    return good && optind == argc;
}

static bool allocate(bench_t *bench)
{
    bench->own = malloc((size_t) bench->bytes);
    bench->arriving[0] = malloc((size_t) bench->bytes);
    bench->arriving[1] = malloc((size_t) bench->bytes);
    if (bench->own == NULL || bench->arriving[0] == NULL || bench->arriving[1] == NULL) {
        fprintf(stderr, "flash_panels: no memory for three panels: give -m a smaller number\n");
        return false;
    }
    for (int k = 0; k < bench->bytes; k++) {
        bench->own[k] = byte_of(bench->rank, k);
    }
    return true;
}

static int run_all(bench_t *bench)
{
    MPI_Comm comms[2] = {MPI_COMM_WORLD, bench_own_communicator(MPI_COMM_WORLD)};
    bool served = bench_served(MPI_COMM_WORLD, true);
    double medians[2][WAYS];

    bench_sleep_precisely();
    coll_compute_calibrate();
    run(bench, ALONE, comms[0]); /* connects */
    bench->seconds = bench->ratio * run(bench, ALONE, comms[0]);
    measure(bench, comms, medians);
    MPI_Allreduce(MPI_IN_PLACE, &bench->wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (bench->rank == 0) {
        report(bench, medians, served);
        printf("%ld wrong bytes\n", bench->wrong);
    }
    MPI_Comm_free(&comms[1]);
    return bench->wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    bench_t bench = {
        .bytes = 4 << 20, .pieces = 8, .panels = 8, .rounds = 5, .ratio = 1, .kind = COLL_WORK};
    int status = EXIT_FAILURE;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.size);
    if (!parse(argc, argv, &bench)) {
        MPI_Finalize();
        return 2;
    }
    if (allocate(&bench)) {
        status = run_all(&bench);
    } else {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    free(bench.own);
    free(bench.arriving[0]);
    free(bench.arriving[1]);
    MPI_Finalize();
    return status;
}
