/*
 * flash_simulate.c: how long the rings take on machines that are not there: the engine that flash
 * runs, on a network that is simulated. Needs no MPI and no mpirun.
 *
 *   flash_simulate --ranks=4,64,1024,100000 --bytes=1M --rate=25G --latency=2 --message=0.5
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_file.h"
#include "bench_parse.h"
#include "model_ring.h"

static const char program[] = "flash_simulate";

enum { MAX_COUNTS = 64, MAX_RANKS = 1000000, MAX_BYTES = 1 << 30 };

typedef struct options {
    bool operations[2]; /* allgather, reduce-scatter */
    int ranks[MAX_COUNTS], counts;
    int places;
    double ratio;
    model_ring_t ring;
    const char *csv;
} options_t;

static const char help_text[] =
    "Simulates rings of many ranks: flash's engine, on links of a given kind.\n"
    "\n"
    "  --op=ag|rs|both    (default both)\n"
    "  --ranks=N[,N...]   (default 4,8,16,64,256,1024)\n"
    "  --bytes=B          a block (default 8M)\n"
    "  --compute-ratio=R  a block's computation against its transfer (default 2)\n"
    "  --pieces=P         to a block (default 1)\n"
    "  --segment=B        coll_flash_segment_bytes (default 0); --depth=D, --sends=S: likewise\n"
    "                     (defaults 32 and 8)\n"
    "  --rate=B           payload bytes a second of a link (default 239102K, in units of 1000: "
    "that\n"
    "                     of 2 Gbit/s with an MTU of 1500)\n"
    "  --message=US       what each message takes besides (default 0); --latency=US (default 50);\n"
    "                     --jitter=US, the mean of a random delay (default 0)\n"
    "  --combine=B        bytes a second that are added or copied (default 4G)\n"
    "  --places=K         of the folded ring, see below (default 8)\n"
    "  --seed=S           of the random delays (default 1)\n"
    "  --csv=FILE         all figures, comma-separated; '-' is the standard output\n"
    "\n"
    "A row has the collective alone and that as a multiple of the wire's time, (N - 1) blocks at "
    "the\n"
    "rate; then with callbacks that compute: the total, that as a multiple of the ideal ring's\n"
    "(t_g + (N - 1) max(t_g, t_c), and one block's addition), and what of the wire is exposed; "
    "then\n"
    "the messages of a rank, the memory of its operation (not the communicator's, which takes\n"
    "four bytes for each of its ranks), and the simulation's time. Endpoints are two a ring.\n"
    "The ring is folded: K places stand for all ranks, each going through all N steps. Random "
    "delays\n"
    "are therefore those of K ranks.\n";

static bench_parsed_t parse_ranks(const char *text, options_t *options)
{
    char copy[1024], *rest = NULL;

    if (strlen(text) >= sizeof(copy)) {
        return bench_complain(program, "--ranks: too long");
    }
    strcpy(copy, text);
    options->counts = 0;
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (options->counts == MAX_COUNTS ||
            bench_read_int(program, "--ranks", word, 2, MAX_RANKS,
                           &options->ranks[options->counts++]) != BENCH_RUN) {
            return BENCH_BAD;
        }
    }
    return options->counts > 0 ? BENCH_RUN : bench_complain(program, "--ranks: give some");
}

static bench_parsed_t parse_operation(const char *text, options_t *options)
{
    bool both = strcmp(text, "both") == 0;

    options->operations[0] = both || strcmp(text, "ag") == 0;
    options->operations[1] = both || strcmp(text, "rs") == 0;
    if (!options->operations[0] && !options->operations[1]) {
        return bench_complain(program, "--op: \"%s\": give ag, rs or both", text);
    }
    return BENCH_RUN;
}

static bench_parsed_t read_seconds(const char *name, const char *text, double *value)
{
    bench_parsed_t parsed = bench_read_number(program, name, text, 1, 0, 1e9, value);

    *value *= 1e-6;
    return parsed;
}

enum {
    OPT_OP = 256,
    OPT_RANKS,
    OPT_BYTES,
    OPT_RATIO,
    OPT_PIECES,
    OPT_SEGMENT,
    OPT_DEPTH,
    OPT_SENDS,
    OPT_RATE,
    OPT_MESSAGE,
    OPT_LATENCY,
    OPT_JITTER,
    OPT_COMBINE,
    OPT_PLACES,
    OPT_SEED,
    OPT_CSV
};

static const struct option long_options[] = {{"op", required_argument, NULL, OPT_OP},
                                             {"ranks", required_argument, NULL, OPT_RANKS},
                                             {"bytes", required_argument, NULL, OPT_BYTES},
                                             {"compute-ratio", required_argument, NULL, OPT_RATIO},
                                             {"pieces", required_argument, NULL, OPT_PIECES},
                                             {"segment", required_argument, NULL, OPT_SEGMENT},
                                             {"depth", required_argument, NULL, OPT_DEPTH},
                                             {"sends", required_argument, NULL, OPT_SENDS},
                                             {"rate", required_argument, NULL, OPT_RATE},
                                             {"message", required_argument, NULL, OPT_MESSAGE},
                                             {"latency", required_argument, NULL, OPT_LATENCY},
                                             {"jitter", required_argument, NULL, OPT_JITTER},
                                             {"combine", required_argument, NULL, OPT_COMBINE},
                                             {"places", required_argument, NULL, OPT_PLACES},
                                             {"seed", required_argument, NULL, OPT_SEED},
                                             {"csv", required_argument, NULL, OPT_CSV},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static bench_parsed_t parse_size(const char *name, const char *text, int least, size_t *bytes)
{
    int value = 0;
    bench_parsed_t parsed = bench_read_int(program, name, text, least, MAX_BYTES, &value);

    *bytes = (size_t) value;
    return parsed;
}

static bench_parsed_t parse_count(const char *name, const char *text, int low, uint32_t *count)
{
    int value = 0;
    bench_parsed_t parsed = bench_read_int(program, name, text, low, MAX_RANKS, &value);

    *count = (uint32_t) value;
    return parsed;
}

static bench_parsed_t parse_option(int option, const char *text, options_t *options)
{
    model_ring_t *ring = &options->ring;

    switch (option) {
    case OPT_OP:
        return parse_operation(text, options);
    case OPT_RANKS:
        return parse_ranks(text, options);
    case OPT_BYTES:
        return parse_size("--bytes", text, 1, &ring->block_bytes);
    case OPT_RATIO:
        return bench_read_number(program, "--compute-ratio", text, 1, 1e-3, 1e6, &options->ratio);
    case OPT_PIECES:
        return parse_count("--pieces", text, 1, &ring->pieces);
    case OPT_SEGMENT:
        return parse_size("--segment", text, 0, &ring->segment_bytes);
    case OPT_DEPTH:
        return parse_count("--depth", text, 1, &ring->depth);
    case OPT_SENDS:
        return parse_count("--sends", text, 0, &ring->sends);
    case OPT_RATE:
        return bench_read_number(program, "--rate", text, 1000, 1, 1e15, &ring->link.rate);
    case OPT_MESSAGE:
        return read_seconds("--message", text, &ring->link.message);
    case OPT_LATENCY:
        return read_seconds("--latency", text, &ring->link.latency);
    case OPT_JITTER:
        return read_seconds("--jitter", text, &ring->link.jitter);
    case OPT_COMBINE:
        return bench_read_number(program, "--combine", text, 1000, 1, 1e15, &ring->combine_rate);
    case OPT_PLACES:
        return bench_read_int(program, "--places", text, 2, 1024, &options->places);
    case OPT_SEED:
        return parse_count("--seed", text, 0, &ring->seed);
    case OPT_CSV:
        options->csv = text;
        return BENCH_RUN;
    case 'h':
        fputs(help_text, stdout);
        return BENCH_HELP;
    default:
        return bench_complain(program, "no such option, or one without its value");
    }
}

static bench_parsed_t parse(int argc, char **argv, options_t *options)
{
    bench_parsed_t parsed = BENCH_RUN;
    int option;

    opterr = 0;
    while (parsed == BENCH_RUN &&
           (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        parsed = parse_option(option, optarg, options);
    }
    if (parsed == BENCH_RUN && optind < argc) {
        parsed = bench_complain(program, "\"%s\": no argument is expected", argv[optind]);
    }
    return parsed;
}

typedef struct row {
    double alone, alone_wire, total, total_ideal, exposed;
    uint64_t messages;
    size_t memory;
    double took;
} row_t;

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* The collective alone, then with callbacks. */
static bool simulate(const options_t *options, bool allgather, int nranks, row_t *row)
{
    model_ring_t ring = options->ring;
    double transfer = (double) ring.block_bytes / ring.link.rate;
    double block = options->ratio * transfer, begin = seconds_now();
    double wire = (nranks - 1) * transfer;
    double ideal = block + (nranks - 1) * fmax(block, transfer);
    model_result_t alone, total;

    ring.allgather = allgather;
    ring.nranks = (uint32_t) nranks;
    ring.places = (uint32_t) (nranks < options->places ? nranks : options->places);
    if (!model_ring_run(&ring, &alone)) {
        return false;
    }
    ring.block_seconds = block;
    if (!model_ring_run(&ring, &total)) {
        return false;
    }
    if (!allgather) {
        ideal += (double) ring.block_bytes / ring.combine_rate;
    }
    *row = (row_t){.alone = alone.seconds,
                   .alone_wire = alone.seconds / wire,
                   .total = total.seconds,
                   .total_ideal = total.seconds / ideal,
                   .exposed = 100 * (total.seconds - nranks * block) / wire,
                   .messages = total.messages,
                   .memory = total.memory,
                   .took = seconds_now() - begin};
    return true;
}

static void print_row(FILE *table, FILE *csv, const char *operation, int nranks, const row_t *row)
{
    fprintf(table, "%-15s %8d %14.3f %8.4f %14.3f %8.4f %9.3f %10llu %12.1f %8.1f\n", operation,
            nranks, 1e3 * row->alone, row->alone_wire, 1e3 * row->total, row->total_ideal,
            row->exposed, (unsigned long long) row->messages, (double) row->memory / 1024,
            row->took);
    fflush(table);
    if (csv != NULL) {
        fprintf(csv, "%s,%d,%.6f,%.6f,%.6f,%.6f,%.4f,%llu,%zu\n", operation, nranks,
                1e3 * row->alone, row->alone_wire, 1e3 * row->total, row->total_ideal, row->exposed,
                (unsigned long long) row->messages, row->memory);
    }
}

static bool run(const options_t *options, FILE *table, FILE *csv)
{
    static const char *const names[] = {"allgather", "reduce-scatter"};
    row_t row;

    fprintf(table, "%-15s %8s %14s %8s %14s %8s %9s %10s %12s %8s\n", "# operation", "ranks",
            "alone ms", "/ wire", "computing ms", "/ ideal", "exposed %", "messages", "memory KiB",
            "took s");
    if (csv != NULL) {
        fprintf(csv, "operation,ranks,alone_ms,alone_over_wire,total_ms,total_over_ideal,"
                     "exposed_percent,messages,memory_bytes\n");
    }
    for (int operation = 0; operation < 2; operation++) {
        for (int k = 0; k < options->counts && options->operations[operation]; k++) {
            if (!simulate(options, operation == 0, options->ranks[k], &row)) {
                return false;
            }
            print_row(table, csv, names[operation], options->ranks[k], &row);
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    options_t options = {.operations = {true, true},
                         .ranks = {4, 8, 16, 64, 256, 1024},
                         .counts = 6,
                         .places = 8,
                         .ratio = 2,
                         .csv = "",
                         .ring = {.block_bytes = 8 << 20,
                                  .pieces = 1,
                                  .depth = 32,
                                  .sends = 8,
                                  .combine_rate = 4e9,
                                  .link = {.rate = 239102e3, .latency = 50e-6},
                                  .seed = 1}};
    bench_parsed_t parsed = parse(argc, argv, &options);
    FILE *csv = NULL;
    bool good;

    if (parsed != BENCH_RUN || !bench_file_open(program, "--csv", options.csv, &csv)) {
        return parsed == BENCH_HELP ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    good = run(&options, csv == stdout ? stderr : stdout, csv);
    good &= bench_file_close(program, options.csv, csv);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
