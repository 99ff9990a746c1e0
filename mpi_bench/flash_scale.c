/*
 * flash_scale.c: what flash exchanges before its first operation in jobs of any size: the exchanges
 * are gone through for every rank, without messages. Needs no MPI and no mpirun.
 *
 *   flash_scale [--per-node=P] RANKS...
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_parse.h"
#include "engine/flash_schedule.h"
#include "job/flash_rounds.h"

static const char program[] = "flash_scale";

enum { MAX_RANKS = 10000000, MAX_MET = 80 };

static const char help_text[] =
    "Counts what flash exchanges before its first operation, in jobs of so many ranks.\n"
    "\n"
    "  --per-node=P       ranks of a node, one node filled behind the other (default: all)\n"
    "\n"
    "Lines of CSV, each for the rank that has most: in MPI_Init; in the set-up of a\n"
    "communicator of all ranks, where UCX was not opened in MPI_Init; and before its first\n"
    "all-to-all then, where flash may serve that. The messages that the rank sends by Open MPI,\n"
    "and how many ranks' places or addresses come to it by others; what it asks PMIx for\n"
    "(besides, with the first operation, once for each rank of its node, where the progress\n"
    "thread is to be bound); the ranks with which it has such messages, and those of them on\n"
    "other nodes; and the UCX endpoints that it makes. A communicator that no call by messages\n"
    "is made on has none of it.\n";

typedef struct counts {
    uint32_t messages, told, lookups, peers, far, endpoints;
} counts_t;

/* The other ranks that a rank has messages with. */
typedef struct met {
    uint32_t ranks[MAX_MET], count;
} met_t;

typedef struct job {
    uint32_t size, per_node;
} job_t;

static void meet(met_t *met, uint32_t rank)
{
    for (uint32_t k = 0; k < met->count; k++) {
        if (met->ranks[k] == rank) {
            return;
        }
    }
    met->ranks[met->count++] = rank;
}

static bool is_near(const job_t *job, uint32_t rank, uint32_t other)
{
    return rank / job->per_node == other / job->per_node;
}

/* With itself. */
static uint32_t node_size(const job_t *job, uint32_t rank)
{
    uint32_t first = rank / job->per_node * job->per_node, rest = job->size - first;

    return rest < job->per_node ? rest : job->per_node;
}

/*
 * The rounds of one rank. It knows of itself and of the ranks below it, `known` in all; each message has to
 * continue that, and a rank knows as much at the begin of a round as all others.
 */
static bool go_round(const job_t *job, uint32_t rank, counts_t *counts, met_t *met)
{
    uint32_t known = 1;
    flash_round_t round, theirs;

    for (uint32_t k = 0; flash_round_of(rank, job->size, k, &round); k++) {
        bool meets = flash_round_of(round.from, job->size, k, &theirs) && theirs.to == rank &&
                     theirs.seats == round.seats && round.seats <= known &&
                     (rank + job->size - known) % job->size == round.from;

        if (!meets) {
            fprintf(stderr, "%s: round %u of rank %u among %u does not fit\n", program,
                    (unsigned) k, (unsigned) rank, (unsigned) job->size);
            return false;
        }
        known += round.seats;
        counts->messages++;
        meet(met, round.to);
        meet(met, round.from);
    }
    counts->told += known - 1;
    return known == job->size;
}

static void count_met(const job_t *job, uint32_t rank, const met_t *met, counts_t *counts)
{
    counts->peers = met->count;
    for (uint32_t k = 0; k < met->count; k++) {
        counts->far += !is_near(job, rank, met->ranks[k]);
    }
}

/* In each round the releases of those two, and once the places of the other ranks of the node. */
static bool count_init(const job_t *job, uint32_t rank, counts_t *counts)
{
    met_t met = {.count = 0};
    bool whole = go_round(job, rank, counts, &met);
    flash_round_t round;

    count_met(job, rank, &met, counts);
    counts->lookups = node_size(job, rank) - 1;
    for (uint32_t k = 0; flash_round_of(rank, job->size, k, &round); k++) {
        counts->lookups += round.to == round.from ? 1 : 2;
    }
    return whole;
}

/* To connect two ranks takes a look for one's networks, and on a node for its place. */
static uint32_t lookups_to_reach(const job_t *job, uint32_t rank, uint32_t other)
{
    return is_near(job, rank, other) ? 2 : 1;
}

/* The neighbours in the ring, which here is the order of ranks, and the rounds, in which no places are told. */
static bool count_set_up(const job_t *job, uint32_t rank, counts_t *counts)
{
    met_t met = {.count = 0};
    bool whole;

    meet(&met, (rank + 1) % job->size);
    meet(&met, (rank + job->size - 1) % job->size);
    counts->messages = counts->endpoints = met.count;
    for (uint32_t k = 0; k < met.count; k++) {
        counts->lookups += lookups_to_reach(job, rank, met.ranks[k]);
    }
    whole = go_round(job, rank, counts, &met);
    counts->told = 0;
    count_met(job, rank, &met, counts);
    return whole;
}

/* The rounds, in which addresses are told, and a connection to each rank that is no neighbour. */
static bool count_exchange(const job_t *job, uint32_t rank, counts_t *counts)
{
    met_t met = {.count = 0};
    bool whole = go_round(job, rank, counts, &met);

    count_met(job, rank, &met, counts);
    for (uint32_t k = 2; k + 1 < job->size; k++) {
        counts->lookups += lookups_to_reach(job, rank, (rank + k) % job->size);
        counts->endpoints++;
    }
    return whole;
}

static const struct row {
    const char *name;
    bool (*count)(const job_t *job, uint32_t rank, counts_t *counts);
} rows[] = {{"MPI_Init", count_init}, {"set-up", count_set_up}, {"exchange", count_exchange}};

static void take_largest(counts_t *most, const counts_t *counts)
{
#define TAKE(field) most->field = counts->field > most->field ? counts->field : most->field
    TAKE(messages);
    TAKE(told);
    TAKE(lookups);
    TAKE(peers);
    TAKE(far);
    TAKE(endpoints);
#undef TAKE
}

static bool print_row(const struct row *row, const job_t *job)
{
    counts_t most = {0};

    for (uint32_t rank = 0; rank < job->size; rank++) {
        counts_t counts = {0};

        if (!row->count(job, rank, &counts)) {
            return false;
        }
        take_largest(&most, &counts);
    }
    printf("%s,%u,%u,%u,%u,%u,%u,%u,%u\n", row->name, (unsigned) job->size,
           (unsigned) job->per_node, (unsigned) most.messages, (unsigned) most.told,
           (unsigned) most.lookups, (unsigned) most.peers, (unsigned) most.far,
           (unsigned) most.endpoints);
    return true;
}

static bool print_job(const char *text, int per_node)
{
    int ranks = 0;
    job_t job;

    if (bench_read_int(program, "RANKS", text, 2, MAX_RANKS, &ranks) != BENCH_RUN) {
        return false;
    }
    job = (job_t){.size = (uint32_t) ranks,
                  .per_node = (uint32_t) (per_node == 0 ? ranks : per_node)};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        if (job.size > FLASH_EXCHANGE_RANKS && rows[k].count == count_exchange) {
            break; /* the fallback serves these */
        }
        if (!print_row(&rows[k], &job)) {
            return false;
        }
    }
    return true;
}

static bench_parsed_t parse(int argc, char **argv, int *per_node)
{
    static const struct option long_options[] = {{"per-node", required_argument, NULL, 'p'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    bench_parsed_t parsed = BENCH_RUN;
    int option;

    while (parsed == BENCH_RUN &&
           (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (option == 'h') {
            printf("usage: %s [OPTION]... RANKS...\n\n%s", program, help_text);
            parsed = BENCH_HELP;
        } else if (option == 'p') {
            parsed = bench_read_int(program, "--per-node", optarg, 1, MAX_RANKS, per_node);
        } else {
            parsed = BENCH_BAD;
        }
    }
    return parsed == BENCH_RUN && optind == argc ? bench_complain(program, "give numbers of ranks")
                                                 : parsed;
}

int main(int argc, char **argv)
{
    int per_node = 0;
    bench_parsed_t parsed = parse(argc, argv, &per_node);

    if (parsed != BENCH_RUN) {
        return parsed == BENCH_HELP ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    printf("call,ranks,per_node,messages,told,lookups,peers,far_peers,endpoints\n");
    for (; optind < argc; optind++) {
        if (!print_job(argv[optind], per_node)) {
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
