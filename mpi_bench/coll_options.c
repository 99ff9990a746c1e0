/*
 * coll_options.c: the command line of a collective's benchmark. Letters mean what they mean in the
 * OSU benchmarks.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_operation.h"

enum { MAX_ITERATIONS = 1000000, MAX_TESTS = 1000000, MAX_MTU = 65536, MAX_TIMES = 1 << 20 };

enum {
    OPT_ALONE = 256,
    OPT_BLOCKING,
    OPT_COMPUTE,
    OPT_CSV,
    OPT_FLOOR,
    OPT_LINK_RATE,
    OPT_LINK_MTU,
    OPT_NO_CHECK,
    OPT_NO_OWN,
    OPT_OFFSET,
    OPT_SAME_WORK,
    OPT_RATIO,
    OPT_SECONDS,
    OPT_SEGMENT,
    OPT_TIMES,
};

static const struct option long_options[] = {
    {"message-size", required_argument, NULL, 'm'},
    {"iterations", required_argument, NULL, 'i'},
    {"warmup", required_argument, NULL, 'x'},
    {"full", no_argument, NULL, 'f'},
    {"num-test-calls", required_argument, NULL, 't'},
    {"validation", no_argument, NULL, 'c'},
    {"accelerator", required_argument, NULL, 'd'},
    {"alone", no_argument, NULL, OPT_ALONE},
    {"blocking", no_argument, NULL, OPT_BLOCKING},
    {"compute", required_argument, NULL, OPT_COMPUTE},
    {"csv", required_argument, NULL, OPT_CSV},
    {"floor", no_argument, NULL, OPT_FLOOR},
    {"link-rate", required_argument, NULL, OPT_LINK_RATE},
    {"link-mtu", required_argument, NULL, OPT_LINK_MTU},
    {"no-check", no_argument, NULL, OPT_NO_CHECK},
    {"no-own", no_argument, NULL, OPT_NO_OWN},
    {"offset", required_argument, NULL, OPT_OFFSET},
    {"ratio", required_argument, NULL, OPT_RATIO},
    {"same-work", no_argument, NULL, OPT_SAME_WORK},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"segment", required_argument, NULL, OPT_SEGMENT},
    {"times", required_argument, NULL, OPT_TIMES},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "Times %s alone and under computation, on flash and on Open MPI's own component in turn.\n"
    "\n"
    "  -m, --message-size=[MIN:]MAX  bytes, doubling from MIN (default 4:4M); of a rank's\n"
    "                        contribution to a gather, of its block of a scatter, of what is\n"
    "                        broadcast, of all blocks of a reduction\n"
    "      --times=N         each size is N times the one before (default 2)\n"
    "  -i, --iterations=I    (default: as many as fit in --seconds, 10 to 1000)\n"
    "      --seconds=S       for each size, about (default 2)\n"
    "  -x, --warmup=W        iterations before (default 5)\n"
    "  -f, --full            more columns: the parts of the overall time, the extremes, and what\n"
    "                        the progress thread did\n"
    "  -t, --num-test-calls=T  calls of MPI_Test spread over the computation (default 0)\n"
    "  -c, --validation      check results (the default); --no-check does not\n"
    "  -d, --accelerator=host|cuda  whose memory buffers are in (default: host); cuda: one of\n"
    "                        the host's devices for each rank, and --no-own\n"
    "      --compute=cpu|clock|sleep  the computation is so much work (default); keeps the core\n"
    "                        for a time, as in the OSU benchmarks; or sleeps, as while an\n"
    "                        accelerator computes\n"
    "      --ratio=R         it takes R times as long as the call alone (default 1, as in the OSU\n"
    "                        benchmarks)\n"
    "      --alone           times the calls alone, and none under computation\n"
    "      --blocking        times flash's blocking call alone, which is Open MPI's where flash\n"
    "                        does not serve it (coll_flash_blocking)\n"
    "      --no-own          without Open MPI's own calls, which have buffers of their own\n"
    "      --same-work       these are to hide what flash's hide, a computation as long as its\n"
    "                        call alone, instead of one as long as their own\n"
    "      --floor           a column more, Floor(us): what of a call that moves nothing is "
    "exposed,\n"
    "                        MPI_Isend to MPI_PROC_NULL, MPI_Wait, MPI_Iprobe: the time that\n"
    "                        Open MPI takes of its own, and that cores take to wake up\n"
    "      --offset=BYTES    where in its page the host's receive buffer begins, a multiple of 8\n"
    "                        (default 0, as that of the send buffer): copies may depend on it\n"
    "      --segment=BYTES[,BYTES]...  all sizes with each of up to 8 segments of flash's, which\n"
    "                        its calls get by the info key mpix_flash_segment_bytes; 0: its own\n"
    "                        choice\n"
    "      --csv=FILE        all figures, comma-separated; '-' is the standard output\n"
    "      --link-rate=BYTES  a second that a host can send, headers included, and receive if\n"
    "                        $FLASH_LINK_BOTH is set (default $FLASH_LINK_RATE);\n"
    "                        --link-mtu=BYTES (default $FLASH_LINK_MTU or "
    "1500)\n"
    "  -h, --help\n"
    "\n"
    "Overlap as in the OSU benchmarks: the computation takes as long as the call alone, and\n"
    "overlap = 100 - 100 (overall - compute) / alone. Unlike there it may be below 0, and cpu\n"
    "is a given amount of work: what communication takes from its core is not hidden.\n"
    "Columns of Open MPI's own calls are called Own; Comm./own compares with the faster of them,\n"
    "blocking or not; least and most are extremes over the iterations. All times are\n"
    "medians over the iterations of the maximum over ranks.\n";

#define complain(...) bench_complain(coll_operation.program, __VA_ARGS__)

static bench_parsed_t parse_compute(const char *text, coll_options_t *options)
{
    static const char *const names[] = {
        [COLL_WORK] = "cpu", [COLL_CLOCK] = "clock", [COLL_SLEEP] = "sleep"};

    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (strcmp(text, names[k]) == 0) {
            options->compute = (coll_compute_kind_t) k;
            return BENCH_RUN;
        }
    }
    return complain("--compute=%s: no such computation; give cpu, clock or sleep", text);
}

static bench_parsed_t parse_sizes(const char *text, coll_options_t *options)
{
    char copy[64] = "";
    char *rest = copy;
    const char *first;
    int low, high;

    if (strlen(text) < sizeof(copy)) {
        strcpy(copy, text);
    }
    first = strsep(&rest, ":");
    if (!bench_parse_int(first, 1, INT_MAX, &high)) {
        return complain("-m %s: give MAX, or MIN:MAX, in bytes", text);
    }
    low = rest == NULL ? (int) options->min_bytes : high;
    if ((rest != NULL && !bench_parse_int(rest, 1, INT_MAX, &high)) || low > high) {
        return complain("-m %s: give MAX, or MIN:MAX, in bytes, MAX not less than MIN", text);
    }
    options->min_bytes = (size_t) low;
    options->max_bytes = (size_t) high;
    return BENCH_RUN;
}

static bench_parsed_t parse_count(const char *name, const char *text, int low, int high, int *value)
{
    return bench_read_int(coll_operation.program, name, text, low, high, value);
}

static bench_parsed_t parse_real(const char *name, const char *text, double low, double high,
                                 double *value)
{
    return bench_read_number(coll_operation.program, name, text, 1000, low, high, value);
}

static bench_parsed_t parse_offset(const char *text, coll_options_t *options)
{
    if (!bench_parse_int(text, 0, COLL_PAGE - 1, &options->offset) || options->offset % 8 != 0) {
        return complain("--offset=%s: give a multiple of 8 below %d", text, COLL_PAGE);
    }
    return BENCH_RUN;
}

static bool is_too_short(int segment)
{
    return segment > 0 && segment < 64;
}

static bench_parsed_t parse_segments(const char *text, coll_options_t *options)
{
    char copy[128] = "";
    char *rest = copy;

    if (strlen(text) < sizeof(copy)) {
        strcpy(copy, text);
    }
    options->nsegments = 0;
    while (rest != NULL) {
        if (options->nsegments == COLL_SEGMENTS ||
            !bench_parse_int(strsep(&rest, ","), 0, INT_MAX,
                             &options->segments[options->nsegments]) ||
            is_too_short(options->segments[options->nsegments++])) {
            return complain("--segment=%s: give up to %d numbers of bytes, 64 and more, or 0", text,
                            COLL_SEGMENTS);
        }
    }
    return BENCH_RUN;
}

static bench_parsed_t parse_accelerator(const char *text, coll_options_t *options)
{
    options->device = strcmp(text, "cuda") == 0;
    if (options->device) {
        options->own = false;
    } else if (strcmp(text, "host") != 0) {
        return complain("-d %s: no memory of that name; give host or cuda", text);
    }
    return BENCH_RUN;
}

static bench_parsed_t parse_words(int option, const char *text, coll_options_t *options)
{
    switch (option) {
    case 'd':
        return parse_accelerator(text, options);
    case OPT_COMPUTE:
        return parse_compute(text, options);
    case OPT_SEGMENT:
        return parse_segments(text, options);
    default:
        if (text[0] == '\0' || strlen(text) >= sizeof(options->csv)) {
            return complain("--csv: give the name of a file, or '-' for the standard output");
        }
        strcpy(options->csv, text);
        return BENCH_RUN;
    }
}

static bench_parsed_t parse_numbers(int option, const char *text, coll_options_t *options)
{
    switch (option) {
    case 'm':
        return parse_sizes(text, options);
    case 'i':
        return parse_count("-i", text, 1, MAX_ITERATIONS, &options->iterations);
    case 'x':
        return parse_count("-x", text, 0, MAX_ITERATIONS, &options->warmup);
    case 't':
        return parse_count("-t", text, 0, MAX_TESTS, &options->tests);
    case OPT_TIMES:
        return parse_count("--times", text, 2, MAX_TIMES, &options->times);
    case OPT_OFFSET:
        return parse_offset(text, options);
    case OPT_LINK_RATE:
        return parse_real("--link-rate", text, 1, 1e13, &options->link_rate);
    case OPT_LINK_MTU:
        return parse_count("--link-mtu", text, 68, MAX_MTU, &options->link_mtu);
    default:
        return parse_real("--seconds", text, 1e-3, 1e6, &options->seconds);
    case OPT_RATIO:
        return parse_real("--ratio", text, 0.01, 100, &options->ratio);
    }
}

static bench_parsed_t parse_option(int option, char **argv, coll_options_t *options)
{
    switch (option) {
    case 'h':
        printf(help_text, coll_operation.call);
        return BENCH_HELP;
    case ':':
        return complain("%s wants a value: give one behind it", argv[optind - 1]);
    case '?':
        return complain("%s is no option of this program, or takes no value", argv[optind - 1]);
    case 'f':
        options->full = true;
        return BENCH_RUN;
    case 'c':
    case OPT_NO_CHECK:
        options->check = option == 'c';
        return BENCH_RUN;
    case OPT_ALONE:
        options->alone = true;
        return BENCH_RUN;
    case OPT_BLOCKING:
        options->alone = options->blocking = true;
        return BENCH_RUN;
    case OPT_NO_OWN:
        options->own = false;
        return BENCH_RUN;
    case OPT_FLOOR:
        options->floor = true;
        return BENCH_RUN;
    case OPT_SAME_WORK:
        options->same_work = true;
        return BENCH_RUN;
    case 'd':
    case OPT_COMPUTE:
    case OPT_CSV:
    case OPT_SEGMENT:
        return parse_words(option, optarg, options);
    default:
        return parse_numbers(option, optarg, options);
    }
}

bench_parsed_t coll_options_parse(int argc, char **argv, coll_options_t *options)
{
    const char *rate = getenv("FLASH_LINK_RATE"), *mtu = getenv("FLASH_LINK_MTU");
    bench_parsed_t parsed = BENCH_RUN;
    int option;

    *options = (coll_options_t){.min_bytes = 4,
                                .max_bytes = 4 << 20,
                                .times = 2,
                                .warmup = 5,
                                .seconds = 2,
                                .ratio = 1,
                                .check = true,
                                .own = true,
                                .link_both = getenv("FLASH_LINK_BOTH") != NULL,
                                .link_mtu = 1500};
    if (rate != NULL && rate[0] != '\0') {
        parsed = parse_real("FLASH_LINK_RATE", rate, 1, 1e13, &options->link_rate);
    }
    if (parsed == BENCH_RUN && mtu != NULL && mtu[0] != '\0') {
        parsed = parse_count("FLASH_LINK_MTU", mtu, 68, MAX_MTU, &options->link_mtu);
    }
    while (parsed == BENCH_RUN &&
           (option = getopt_long(argc, argv, ":m:i:x:ft:cd:h", long_options, NULL)) != -1) {
        parsed = parse_option(option, argv, options);
    }
    if (parsed == BENCH_RUN && optind < argc) {
        return complain("%s: only options are understood, and these begin with a dash",
                        argv[optind]);
    }
    return parsed;
}
