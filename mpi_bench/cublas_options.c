/*
 * cublas_options.c: the options of flash_cublas.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "cublas_bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Times an allgather and a product, and a product and a reduce-scatter, on CUDA devices.\n"
    "\n"
    "  -m ROWS        of the product, on all ranks together (default 4096)\n"
    "  -n COLUMNS     of the product on each rank (default 2048)\n"
    "  -k LENGTH      of its sums on each rank (default 2048)\n"
    "  -t TYPE        of the factors: fp32, tf32, fp16, bf16 (default fp32); sums in fp32\n"
    "  -c CALL        allgather, reduce_scatter or both (default both)\n"
    "  -p PIECES[,PIECES]...  of a block (default 1), a run for each\n"
    "  -i ITERATIONS  (default 20)\n"
    "  -x WARMUP      (default 3)\n"
    "\n"
    "All times are medians over the iterations of the maximum over ranks, in ms: of the whole\n"
    "product alone (T_gemm), of its pieces alone (T_split), of the call alone (T_comm), of the "
    "call\n"
    "and the whole product one after the other (T_apart), and by the extension (T_together); "
    "below\n"
    "them their quartiles. IQR: the largest distance between quartiles, in percent of its median.\n"
    "E = (T_apart - T_together) / (T_apart - T_gemm): the part of the time beyond the product's "
    "that\n"
    "the extension saves (FLUX, arXiv 2406.06858). bound: the most that E can be by these times,\n"
    "since the extension takes at least max(T_split, T_comm). A dash: the quartiles of two times "
    "that\n"
    "the figure divides by the difference of overlap.\n"
    "Before all times, results are checked: all of the extension's against those of the call and\n"
    "the product, and some of them against sums that the host makes. Factors are then small "
    "integers,\n"
    "whose sums are exact; for the times they have full mantissas.\n";

static const struct {
    const char *name;
    cudaDataType_t type;
    cublasComputeType_t compute;
} types[] = {{"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F},
             {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
             {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F},
             {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F}};

const char *cublas_type_name(const cublas_options_t *options)
{
    size_t i = 0;

    while (types[i].type != options->type || types[i].compute != options->compute) {
        i++;
    }
    return types[i].name;
}

static bool read_type(const char *text, cublas_options_t *options)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(text, types[i].name) == 0) {
            options->type = types[i].type;
            options->compute = types[i].compute;
            return true;
        }
    }
    return false;
}

static bool read_call(const char *text, cublas_options_t *options)
{
    bool both = strcmp(text, "both") == 0;

    options->gathers = both || strcmp(text, "allgather") == 0;
    options->scatters = both || strcmp(text, "reduce_scatter") == 0;
    return options->gathers || options->scatters;
}

static bool read_pieces(char *list, cublas_options_t *options)
{
    options->runs = 0;
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        if (options->runs == MOST_RUNS ||
            !bench_parse_int(word, 1, MOST_PIECES, &options->pieces[options->runs++])) {
            return false;
        }
    }
    return options->runs > 0;
}

static bench_parsed_t read_option(int option, cublas_options_t *options)
{
    const char *name = (const char[]){'-', (char) option, '\0'};
    int *number = option == 'm'   ? &options->m
                  : option == 'n' ? &options->n
                  : option == 'k' ? &options->k
                  : option == 'i' ? &options->iterations
                                  : &options->warmup;

    switch (option) {
    case 'h':
        fputs(help, stdout);
        return BENCH_HELP;
    case '?':
        return BENCH_BAD;
    case 't':
        return read_type(optarg, options)
                   ? BENCH_RUN
                   : bench_complain("flash_cublas", "-t %s: give fp32, tf32, fp16 or bf16", optarg);
    case 'c':
        return read_call(optarg, options)
                   ? BENCH_RUN
                   : bench_complain("flash_cublas", "-c %s: give allgather, reduce_scatter or both",
                                    optarg);
    case 'p':
        return read_pieces(optarg, options)
                   ? BENCH_RUN
                   : bench_complain("flash_cublas", "-p: give up to %d numbers from 1 to %d",
                                    MOST_RUNS, MOST_PIECES);
    default:
        return bench_read_int("flash_cublas", name, optarg, option == 'x' ? 0 : 1, 1 << 24, number);
    }
}

bench_parsed_t cublas_read_options(int argc, char **argv, int nranks, cublas_options_t *options)
{
    bench_parsed_t parsed = BENCH_RUN;
    int option;

    *options = (cublas_options_t){.m = 4096,
                                  .n = 2048,
                                  .k = 2048,
                                  .pieces = {1},
                                  .runs = 1,
                                  .gathers = true,
                                  .scatters = true,
                                  .iterations = 20,
                                  .warmup = 3,
                                  .type = CUDA_R_32F,
                                  .compute = CUBLAS_COMPUTE_32F};
    while (parsed == BENCH_RUN && (option = getopt(argc, argv, "m:n:k:t:c:p:i:x:h")) != -1) {
        parsed = read_option(option, options);
    }
    if (parsed == BENCH_RUN && optind < argc) {
        return bench_complain("flash_cublas", "%s: not an option", argv[optind]);
    }
    if (parsed == BENCH_RUN && options->m % nranks != 0) {
        return bench_complain("flash_cublas", "-m %d: give a multiple of the %d ranks", options->m,
                              nranks);
    }
    return parsed;
}
