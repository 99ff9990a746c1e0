/*
 * layer_options.c: the command line of a layer's benchmark.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum {
    OPT_COMPUTE = 256,
    OPT_CAUSAL,
    OPT_GROUPS,
    OPT_HEADS,
    OPT_LAYERS,
    OPT_RATE,
    OPT_PIECES,
    OPT_SLICES,
    OPT_TYPE,
    OPT_CSV
};
enum {
    MOST_TOKENS = 1 << 24,
    MOST_WIDTH = 1 << 20,
    MOST_PIECES = 4096,
    MOST_LAYERS = 1000,
    MOST_ITERATIONS = 100000
};

static const struct option long_options[] = {
    {"tokens", required_argument, NULL, 'm'},
    {"inner", required_argument, NULL, 'n'},
    {"hidden", required_argument, NULL, 'k'},
    {"layers", required_argument, NULL, OPT_LAYERS},
    {"groups", required_argument, NULL, OPT_GROUPS},
    {"heads", required_argument, NULL, OPT_HEADS},
    {"causal", no_argument, NULL, OPT_CAUSAL},
    {"iterations", required_argument, NULL, 'i'},
    {"warmup", required_argument, NULL, 'x'},
    {"compute", required_argument, NULL, OPT_COMPUTE},
    {"rate", required_argument, NULL, OPT_RATE},
    {"pieces", required_argument, NULL, OPT_PIECES},
    {"slices", required_argument, NULL, OPT_SLICES},
    {"type", required_argument, NULL, OPT_TYPE},
    {"csv", required_argument, NULL, OPT_CSV},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "Times a parallel layer of a transformer without overlap (by Open MPI's calls, and by flash's\n"
    "plain ones), with non-blocking calls, with data slicing and with flash's extension, in turn,\n"
    "and checks the results against double precision.\n"
    "\n"
    "  -m, --tokens=M       of all ranks together, a multiple of their number (default 256 a "
    "rank)\n"
    "  -k, --hidden=K       width of a token (default 256)\n"
    "  -n, --inner=N        width of the inner layer, all ranks together (default 4 K)\n"
    "      --layers=L       of a training step (default 4; the MLP is one)\n"
    "      --groups=G       of ranks that are data parallel to each other, where a layer has them\n"
    "                       (default: 2 if that leaves each more than one, else 1)\n"
    "      --heads=H        of attention: a multiple of the ranks that divides K (default 2 a "
    "rank)\n"
    "      --causal         a token attends to those before it alone; an accelerator's time is "
    "the\n"
    "                       same\n"
    "  -i, --iterations=I   (default 10); -x, --warmup=W  before (default 2)\n"
    "      --compute=blas|offload|cublas  products by BLAS, in single precision (default); or the "
    "time\n"
    "                       of an accelerator, which computes nothing; or on CUDA devices, by "
    "cuBLAS,\n"
    "                       with all matrices there: flash's calls, plain ones and the "
    "extension's,\n"
    "                       are given these, Open MPI's own copies of them in the host's memory\n"
    "      --rate=FLOPS|NAME  of that: floating-point operations a second (default 1000G); or the\n"
    "                       most that one has by its data sheet, dense products in 16 bits: v100,\n"
    "                       a100, h100 (SXM), h200\n"
    "      --pieces=P       to a block, by flash (default 4)\n"
    "      --slices=S,...   data slicings (default 2,4,8,16,32)\n"
    "      --type=fp32|bf16 what travels (default fp32); flash_block's weights and gradients do "
    "in\n"
    "                       fp32. Plain calls then add by a user's operation, which flash's "
    "thread\n"
    "                       may not run: they wait for the host. cuBLAS multiplies in it, too, "
    "from\n"
    "                       matrices in single precision\n"
    "      --csv=FILE       all figures, comma-separated; '-' is the standard output\n"
    "  -h, --help\n"
    "\n"
    "Times are medians over the iterations of the maximum over ranks. Exposed: total - "
    "computation.\n";

static bench_parsed_t parse_slices(const char *program, const char *text,
                                   layer_settings_t *settings)
{
    char copy[128] = "", *rest = copy;
    const char *word;

    if (strlen(text) < sizeof(copy)) {
        strcpy(copy, text);
    }
    settings->nslicings = 0;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (settings->nslicings == LAYER_MAX_SLICINGS ||
            !bench_parse_int(word, 2, 1024, &settings->slicings[settings->nslicings++])) {
            return bench_complain(program, "--slices=%s: give up to %d numbers from 2 to 1024",
                                  text, LAYER_MAX_SLICINGS);
        }
    }
    return BENCH_RUN;
}

/* NVIDIA's data sheets: tensor cores, fp16 (V100) or bf16, without sparsity. */
static const struct {
    const char *name;
    double rate;
} accelerators[] = {{"v100", 125e12}, {"a100", 312e12}, {"h100", 989e12}, {"h200", 989e12}};

static bench_parsed_t parse_rate(const char *program, const char *text, layer_options_t *options)
{
    for (size_t k = 0; k < sizeof(accelerators) / sizeof(accelerators[0]); k++) {
        if (strcmp(text, accelerators[k].name) == 0) {
            options->rate = accelerators[k].rate;
            return BENCH_RUN;
        }
    }
    return bench_parse_number(text, 1000, 1, 1e18, &options->rate)
               ? BENCH_RUN
               : bench_complain(program,
                                "--rate=%s: give a number from 1 to 1e18, which may end in K, M or "
                                "G, or v100, a100, h100 or h200",
                                text);
}

static bench_parsed_t parse_compute(const char *program, const char *text, layer_options_t *options)
{
    static const char *const names[] = {
        [LAYER_BLAS] = "blas", [LAYER_OFFLOAD] = "offload", [LAYER_CUBLAS] = "cublas"};

    for (int k = LAYER_BLAS; k <= LAYER_CUBLAS; k++) {
        if (strcmp(text, names[k]) == 0) {
            options->compute = (layer_compute_t) k;
            return BENCH_RUN;
        }
    }
    return bench_complain(program, "--compute=%s: give blas, offload or cublas", text);
}

static bench_parsed_t parse_type(const char *program, const char *text, layer_options_t *options)
{
    options->half = strcmp(text, "bf16") == 0;
    if (!options->half && strcmp(text, "fp32") != 0) {
        return bench_complain(program, "--type=%s: give fp32 or bf16", text);
    }
    return BENCH_RUN;
}

static bench_parsed_t parse_one(const char *program, int option, layer_settings_t *settings)
{
    layer_options_t *options = &settings->options;

    switch (option) {
    case 'm':
        return bench_read_int(program, "--tokens", optarg, 1, MOST_TOKENS, &options->tokens);
    case 'n':
        return bench_read_int(program, "--inner", optarg, 1, MOST_WIDTH, &options->inner);
    case 'k':
        return bench_read_int(program, "--hidden", optarg, 1, MOST_WIDTH, &options->hidden);
    case OPT_LAYERS:
        return bench_read_int(program, "--layers", optarg, 1, MOST_LAYERS, &options->layers);
    case 'i':
        return bench_read_int(program, "-i", optarg, 1, MOST_ITERATIONS, &options->iterations);
    case 'x':
        return bench_read_int(program, "-x", optarg, 0, MOST_ITERATIONS, &options->warmup);
    case OPT_HEADS:
        return bench_read_int(program, "--heads", optarg, 1, MOST_WIDTH, &options->heads);
    case OPT_GROUPS:
        return bench_read_int(program, "--groups", optarg, 1, MOST_WIDTH, &options->groups);
    case OPT_CAUSAL:
        options->causal = true;
        return BENCH_RUN;
    case OPT_COMPUTE:
        return parse_compute(program, optarg, options);
    case OPT_RATE:
        return parse_rate(program, optarg, options);
    case OPT_PIECES:
        return bench_read_int(program, "--pieces", optarg, 1, MOST_PIECES, &options->pieces);
    case OPT_SLICES:
        return parse_slices(program, optarg, settings);
    case OPT_TYPE:
        return parse_type(program, optarg, options);
    case OPT_CSV:
        if (strlen(optarg) >= sizeof(settings->csv)) {
            return bench_complain(program, "--csv: the path is too long");
        }
        strcpy(settings->csv, optarg);
        return BENCH_RUN;
    case 'h':
        fputs(help_text, stdout);
        return BENCH_HELP;
    default:
        return bench_complain(program, "no such option");
    }
}

static bench_parsed_t misfits(const char *program, int nranks, const layer_options_t *options)
{
    if (layer_workload.has_groups) {
        return bench_complain(
            program,
            "%d tokens, width %d, %d heads, %d groups: give multiples of the %d ranks, and a width "
            "that the heads divide, which are a multiple of a group's ranks",
            options->tokens, options->hidden, options->heads, options->groups, nranks);
    }
    if (layer_workload.has_heads) {
        return bench_complain(
            program,
            "%d tokens, width %d, %d heads: give multiples of the %d ranks, and a "
            "width that the heads divide",
            options->tokens, options->hidden, options->heads, nranks);
    }
    return bench_complain(program, "%d tokens, width %d: give multiples of the %d ranks",
                          options->tokens, options->hidden, nranks);
}

static bench_parsed_t check(const char *program, int nranks, layer_options_t *options)
{
    if (options->tokens == 0) {
        options->tokens = 256 * nranks;
    }
    if (options->inner == 0) {
        options->inner = 4 * options->hidden;
    }
    if (options->heads == 0) {
        options->heads = 2 * nranks;
    }
    if (options->groups == 0) {
        options->groups = layer_workload.has_groups && nranks % 2 == 0 && nranks > 2 ? 2 : 1;
    }
    if (options->tokens % nranks != 0 || layer_workload.block_rows(options, nranks) == 0) {
        return misfits(program, nranks, options);
    }
    if ((double) options->tokens * options->hidden > 2147483647.0 ||
        (double) options->hidden * options->hidden > 2147483647.0) {
        return bench_complain(program, "%d tokens of %d elements are more than MPI counts",
                              options->tokens, options->hidden);
    }
    return BENCH_RUN;
}

bench_parsed_t layer_options_parse(const char *program, int argc, char **argv, int nranks,
                                   layer_settings_t *settings)
{
    bench_parsed_t parsed = BENCH_RUN;
    int option;

    *settings = (layer_settings_t){
        .options =
            {.hidden = 256, .layers = 4, .pieces = 4, .iterations = 10, .warmup = 2, .rate = 1e12},
        .slicings = {2, 4, 8, 16, 32},
        .nslicings = 5};
    opterr = 0;
    while (parsed == BENCH_RUN &&
           (option = getopt_long(argc, argv, "m:n:k:i:x:h", long_options, NULL)) != -1) {
        parsed = parse_one(program, option, settings);
    }
    if (parsed == BENCH_RUN && optind < argc) {
        parsed = bench_complain(program, "%s: no such option", argv[optind]);
    }
    return parsed == BENCH_RUN ? check(program, nranks, &settings->options) : parsed;
}
