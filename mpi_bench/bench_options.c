/*
 * bench_options.c: the command line of flash_gemm.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beyond these a number is a slip of the finger. */
enum { MAX_CUT = 1024, MAX_ITERATIONS = 1000000, MAX_MTU = 65536 };

enum {
    OPT_BYTES = 256,
    OPT_TYPE,
    OPT_OP,
    OPT_SLICES,
    OPT_PIECES,
    OPT_ITERATIONS,
    OPT_WARMUP,
    OPT_COMPUTE,
    OPT_BLOCK_TIME,
    OPT_RATIO,
    OPT_LINK_RATE,
    OPT_LINK_MTU,
    OPT_JSON,
    OPT_CHECK,
    OPT_NO_CHECK,
    OPT_PROGRESS,
    OPT_NO_OTHERS,
    OPT_THREADS,
    OPT_HELP
};

static const struct option long_options[] = {
    {"bytes", required_argument, NULL, OPT_BYTES},
    {"type", required_argument, NULL, OPT_TYPE},
    {"op", required_argument, NULL, OPT_OP},
    {"slices", required_argument, NULL, OPT_SLICES},
    {"pieces", required_argument, NULL, OPT_PIECES},
    {"iterations", required_argument, NULL, OPT_ITERATIONS},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"compute", required_argument, NULL, OPT_COMPUTE},
    {"block-time", required_argument, NULL, OPT_BLOCK_TIME},
    {"compute-ratio", required_argument, NULL, OPT_RATIO},
    {"link-rate", required_argument, NULL, OPT_LINK_RATE},
    {"link-mtu", required_argument, NULL, OPT_LINK_MTU},
    {"json", required_argument, NULL, OPT_JSON},
    {"check", no_argument, NULL, OPT_CHECK},
    {"no-check", no_argument, NULL, OPT_NO_CHECK},
    {"progress", no_argument, NULL, OPT_PROGRESS},
    {"no-others", no_argument, NULL, OPT_NO_OTHERS},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "usage: mpirun --mca coll flash flash_gemm [options]\n"
    "\n"
    "How much of a collective hides under a matrix product: AG+GEMM (allgather the rows of A, "
    "then\n"
    "C = A B) and GEMM+RS (reduce-scatter the rows of the sum of all ranks' A B). Compares flash\n"
    "with Open MPI's own blocking, non-blocking and sliced collectives in one run.\n"
    "\n"
    "problem\n"
    "  -m ROWS -n COLUMNS -k INNER  the whole product over all ranks (default 2048 each)\n"
    "  --bytes=SIZE          bytes of one rank's block; sets m, and n = k = 1024 if not given\n"
    "  --type=float|double   (default double)\n"
    "  --op=ag|rs|both       (default both)\n"
    "  --compute=gemm|offload  a product by BLAS, or a time that stands for an accelerator\n"
    "                        (default gemm)\n"
    "  --block-time=MS       offload: computation of one rank's block, in ms\n"
    "  --compute-ratio=R     offload: the same as R times the transfer of a block (default 2)\n"
    "  --threads=T           threads of OpenBLAS on each rank (default 1)\n"
    "variants\n"
    "  --slices=K[,K...]     data slicing into K slices (default 2,4)\n"
    "  --pieces=P[,R]        pieces that flash cuts a block into (default 1), R of them in\n"
    "                        reduce-scatters: more shorten the last addition\n"
    "measurement\n"
    "  --iterations=I        (default 10)\n"
    "  --warmup=W            (default 2)\n"
    "  --no-check            do not check results (default: --check)\n"
    "  --link-rate=BYTES     bytes per second of the slowest link, headers included; default\n"
    "                        $FLASH_LINK_RATE, or else a block's transfer is measured\n"
    "  --link-mtu=BYTES      default $FLASH_LINK_MTU, or else 1500\n"
    "output\n"
    "  --json=FILE           everything as JSON; '-' is the standard output, and the table then\n"
    "                        goes to the standard error output\n"
    "  --no-others           flash and a blocking collective alone: takes a third of the time\n"
    "  --progress            say on the standard error output how far it is\n"
    "  --help\n"
    "\n"
    "T_comp is the computation alone, T_split the same in flash's pieces and order, T_comm the\n"
    "communication alone, T_ring the ideal ring of whole blocks; exposed = T_total - T_comp, and\n"
    "E_overlap = 1 - exposed / what blocking exposes. All are medians over the iterations of the\n"
    "maximum over ranks. Whole numbers may end in K, M or G (powers of 1024), and so may a rate\n"
    "(powers of 1000).\n";

#define complain(...) bench_complain("flash_gemm", __VA_ARGS__)

static bool parse_slices(const char *text, bench_options_t *options)
{
    char copy[256];
    char *rest = copy;
    const char *word;

    if (strlen(text) >= sizeof(copy)) {
        return false;
    }
    strcpy(copy, text);
    options->nslices = 0;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (options->nslices == BENCH_MAX_SLICES ||
            !bench_parse_int(word, 1, MAX_CUT, &options->slices[options->nslices])) {
            return false;
        }
        options->nslices++;
    }
    return options->nslices > 0;
}

/* P, or P,R for the two operations. */
static bool parse_pieces(const char *text, bench_options_t *options)
{
    char copy[64];
    char *rest = copy;

    if (strlen(text) >= sizeof(copy)) {
        return false;
    }
    strcpy(copy, text);
    if (!bench_parse_int(strsep(&rest, ","), 1, MAX_CUT, &options->gather_pieces)) {
        return false;
    }
    options->reduce_pieces = options->gather_pieces;
    return rest == NULL || bench_parse_int(rest, 1, MAX_CUT, &options->reduce_pieces);
}

/* One of two words, or both of them by a third. */
static bool parse_choice(const char *text, const char *first, const char *second, bool *is_second)
{
    *is_second = strcmp(text, second) == 0;
    return *is_second || strcmp(text, first) == 0;
}

static bench_parsed_t parse_op(const char *text, bench_options_t *options)
{
    bool both = strcmp(text, "both") == 0;

    options->allgather = both || strcmp(text, "ag") == 0;
    options->reduce_scatter = both || strcmp(text, "rs") == 0;
    if (!options->allgather && !options->reduce_scatter) {
        return complain("--op=%s: no such operation; give ag, rs or both", text);
    }
    return BENCH_RUN;
}

static bench_parsed_t parse_count(const char *name, const char *text, int low, int high, int *value)
{
    return bench_read_int("flash_gemm", name, text, low, high, value);
}

static bench_parsed_t parse_real(const char *name, const char *text, double unit, double low,
                                 double high, double *value)
{
    return bench_read_number("flash_gemm", name, text, unit, low, high, value);
}

/* The options that describe the problem. */
static bench_parsed_t parse_problem(int option, const char *text, bench_options_t *options)
{
    bench_parsed_t parsed = BENCH_RUN;
    double number;

    switch (option) {
    case 'm':
        return parse_count("-m", text, 1, INT_MAX, &options->m);
    case 'n':
        return parse_count("-n", text, 1, INT_MAX, &options->n);
    case 'k':
        return parse_count("-k", text, 1, INT_MAX, &options->k);
    case OPT_BYTES:
        parsed = parse_real("--bytes", text, 1024, 1, 1024.0 * INT_MAX, &number);
        options->block_bytes = parsed == BENCH_RUN ? (size_t) number : 0;
        return parsed;
    case OPT_TYPE:
        if (!parse_choice(text, "float", "double", &options->is_double)) {
            parsed = complain("--type=%s: no such type; give float or double", text);
        }
        return parsed;
    case OPT_OP:
        return parse_op(text, options);
    case OPT_COMPUTE:
        if (!parse_choice(text, "gemm", "offload", &options->offload)) {
            parsed = complain("--compute=%s: no such computation; give gemm or offload", text);
        }
        return parsed;
    case OPT_BLOCK_TIME:
        parsed = parse_real("--block-time", text, 1, 1e-6, 1e6, &number);
        options->block_time = number * 1e-3;
        return parsed;
    case OPT_RATIO:
        return parse_real("--compute-ratio", text, 1, 1e-6, 1e6, &options->compute_ratio);
    default:
        return parse_count("--threads", text, 1, MAX_CUT, &options->threads);
    }
}

/* The options that describe what is measured and how it is reported. */
static bench_parsed_t parse_measurement(int option, const char *text, bench_options_t *options)
{
    switch (option) {
    case OPT_SLICES:
        if (!parse_slices(text, options)) {
            return complain("--slices=%s: give 1 to %d numbers from 1 to %d, with commas "
                            "between them",
                            text, BENCH_MAX_SLICES, MAX_CUT);
        }
        return BENCH_RUN;
    case OPT_PIECES:
        if (!parse_pieces(text, options)) {
            return complain("--pieces=%s: give a number from 1 to %d, or two with a comma", text,
                            MAX_CUT);
        }
        return BENCH_RUN;
    case OPT_ITERATIONS:
        return parse_count("--iterations", text, 1, MAX_ITERATIONS, &options->iterations);
    case OPT_WARMUP:
        return parse_count("--warmup", text, 0, MAX_ITERATIONS, &options->warmup);
    case OPT_LINK_RATE:
        options->link_from_environment = false;
        return parse_real("--link-rate", text, 1000, 1, 1e13, &options->link_rate);
    case OPT_LINK_MTU:
        return parse_count("--link-mtu", text, 68, MAX_MTU, &options->link_mtu);
    case OPT_JSON:
        if (text[0] == '\0' || strlen(text) >= sizeof(options->json)) {
            return complain("--json: give the name of a file, or '-' for the standard output");
        }
        strcpy(options->json, text);
        return BENCH_RUN;
    case OPT_PROGRESS:
        options->progress = true;
        return BENCH_RUN;
    case OPT_NO_OTHERS:
        options->no_others = true;
        return BENCH_RUN;
    default:
        options->check = option == OPT_CHECK;
        return BENCH_RUN;
    }
}

static bench_parsed_t parse_option(int option, char **argv, bench_options_t *options)
{
    switch (option) {
    case OPT_HELP:
        fputs(help_text, stdout);
        return BENCH_HELP;
    case ':':
        return complain("%s wants a value: give one behind it", argv[optind - 1]);
    case '?':
        return complain("%s is no option of this program, or takes no value", argv[optind - 1]);
    case 'm':
    case 'n':
    case 'k':
    case OPT_BYTES:
    case OPT_TYPE:
    case OPT_OP:
    case OPT_COMPUTE:
    case OPT_BLOCK_TIME:
    case OPT_RATIO:
    case OPT_THREADS:
        return parse_problem(option, optarg, options);
    default:
        return parse_measurement(option, optarg, options);
    }
}

/* The environment describes the machine, the command line overrides it. */
static bench_parsed_t parse_environment(bench_options_t *options)
{
    const char *rate = getenv("FLASH_LINK_RATE");
    const char *mtu = getenv("FLASH_LINK_MTU");
    bench_parsed_t parsed = BENCH_RUN;

    if (rate != NULL && rate[0] != '\0') {
        options->link_from_environment = true;
        parsed = parse_real("FLASH_LINK_RATE", rate, 1000, 1, 1e13, &options->link_rate);
    }
    if (parsed == BENCH_RUN && mtu != NULL && mtu[0] != '\0') {
        parsed = parse_count("FLASH_LINK_MTU", mtu, 68, MAX_MTU, &options->link_mtu);
    }
    return parsed;
}

static bench_parsed_t find_contradictions(const bench_options_t *options)
{
    if (options->block_bytes != 0 && options->m != 0) {
        return complain("--bytes and -m both set the rows: give one of them");
    }
    if (!options->offload && (options->block_time > 0 || options->compute_ratio > 0)) {
        return complain("--block-time and --compute-ratio set an accelerator's time, but the "
                        "computation is a product: add --compute=offload");
    }
    if (options->block_time > 0 && options->compute_ratio > 0) {
        return complain("--block-time and --compute-ratio both set the time of a block: give one "
                        "of them");
    }
    return BENCH_RUN;
}

bench_parsed_t bench_options_parse(int argc, char **argv, bench_options_t *options)
{
    bench_parsed_t parsed;
    int option;

    *options = (bench_options_t){.is_double = true,
                                 .allgather = true,
                                 .reduce_scatter = true,
                                 .slices = {2, 4},
                                 .nslices = 2,
                                 .gather_pieces = 1,
                                 .reduce_pieces = 1,
                                 .iterations = 10,
                                 .warmup = 2,
                                 .link_mtu = 1500,
                                 .check = true,
                                 .threads = 1};
    options->progress = isatty(STDERR_FILENO);
    parsed = parse_environment(options);
    while (parsed == BENCH_RUN &&
           (option = getopt_long(argc, argv, ":m:n:k:", long_options, NULL)) != -1) {
        parsed = parse_option(option, argv, options);
    }
    if (parsed == BENCH_RUN && optind < argc) {
        return complain("%s: only options are understood, and these begin with a dash",
                        argv[optind]);
    }
    return parsed == BENCH_RUN ? find_contradictions(options) : parsed;
}
