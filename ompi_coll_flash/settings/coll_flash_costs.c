/*
 * coll_flash_costs.c: the table of costs: the built-in one, and that of a file.
 *
 * A file has a line for each row: place, call, algorithm, and four numbers,
 *
 *     network reduce_scatter ring  900000 300000 0 0
 *
 * nanoseconds, nanoseconds for each other rank, nanoseconds for each doubling of the ranks, and
 * picoseconds for each byte that a rank sends. An algorithm without a row is not chosen by its
 * cost. Empty lines, and those that begin with #, are skipped. One more line says how many bytes a
 * reduce-scatter of three ranks between nodes must have to be pairwise by its cost:
 *
 *     network reduce_scatter pairwise_of_three 49152
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_costs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/coll_flash_params.h"

const char *const mca_coll_flash_path_names[] = {
    [FLASH_FALLBACK] = "fallback", [FLASH_RING] = "ring",         [FLASH_SHM] = "shm",
    [FLASH_RECDBL] = "recdbl",     [FLASH_PAIRWISE] = "pairwise", [FLASH_AUTO] = "auto"};
static const char *const place_names[] = {"network", "node"};
/* Some kinds have no blocking form here: the name is NULL. */
#define BLOCKING(kind) (FLASH_COST_KINDS + (kind))
const char *const mca_coll_flash_call_names[FLASH_COST_CALLS] = {
    [FLASH_ALLGATHER] = "allgather",
    [FLASH_REDUCE_SCATTER] = "reduce_scatter",
    [FLASH_ALLREDUCE] = "allreduce",
    [FLASH_ALLTOALL] = "alltoall",
    [FLASH_BCAST] = "bcast",
    [FLASH_REDUCE] = "reduce",
    [FLASH_GATHER] = "gather",
    [FLASH_SCATTER] = "scatter",
    [BLOCKING(FLASH_ALLGATHER)] = "blocking_allgather",
    [BLOCKING(FLASH_REDUCE_SCATTER)] = "blocking_reduce_scatter",
    [BLOCKING(FLASH_ALLREDUCE)] = "blocking_allreduce",
    [BLOCKING(FLASH_ALLTOALL)] = "blocking_alltoall",
    [BLOCKING(FLASH_BCAST)] = "blocking_bcast"};

typedef struct cost {
    bool known;
    uint64_t fixed_ns, rank_ns, doubling_ns, byte_ps;
} cost_t;

typedef cost_t table_t[2][FLASH_COST_CALLS][FLASH_PATHS];

/* More than any network takes; it keeps costs from overflowing. */
#define MOST_OF_ONE UINT64_C(1000000000000)

/*
 * The network's rows are for comparison, and no times: two of them cross near the size at which the
 * times that were measured over TCP at 2 Gbit/s cross, or at a larger one (docs/performance.md). The node's rows of the fallback
 * and of shared memory are fitted to measured times. The node's rows of the ring are not: no host
 * with two hardware threads for each rank was measured. For two ranks they cross shared memory's
 * rows at 1 MiB and 512 KiB.
 *
 * The ring of other calls than allgathers and reduce-scatters has no row within a node, where it was not
 * measured, so that the choice never is that: the rows of what falls back are there to be told.
 *
 * On more ranks than eight the rows choose the ring for larger blocks than a continuation of what was
 * measured would, since steps on the CPU grow with the ranks; on a chain each rank has the block later
 * than the rank before it, and of a gather or a scatter the root gains the time of all blocks, the others
 * that of one alone. A gather's rows are for links that are as fast both ways.
 *
 * Blocking calls have rows between nodes alone, and see is_left_out().
 */
static const table_t built_in = {
    {[FLASH_ALLGATHER] = {[FLASH_FALLBACK] = {true, 0, 0, 46000, 4000},
                          [FLASH_RING] = {true, 900000, 300000, 0, 0},
                          [FLASH_RECDBL] = {true, 8000, 0, 30000, 4500}},
     [FLASH_REDUCE_SCATTER] = {[FLASH_FALLBACK] = {true, 0, 0, 92000, 8000},
                               [FLASH_RING] = {true, 900000, 300000, 0, 0},
                               [FLASH_RECDBL] = {true, 0, 0, 30000, 4000},
                               [FLASH_PAIRWISE] = {true, 106000, 22000, 0, 3000}},
     [FLASH_ALLREDUCE] =
         {[FLASH_FALLBACK] = {true, 0, 0, 92000, 4000}, [FLASH_RING] = {true, 0, 730000, 0, 0}},
     [FLASH_ALLTOALL] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 4000}, [FLASH_RING] = {true, 1130000, 350000, 0, 0}},
     [FLASH_BCAST] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 4000}, [FLASH_RING] = {true, 1600000, 400000, 0, 0}},
     [FLASH_REDUCE] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 4000}, [FLASH_RING] = {true, 1600000, 400000, 0, 0}},
     [FLASH_GATHER] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 4000}, [FLASH_RING] = {true, 1100000, 330000, 0, 0}},
     [FLASH_SCATTER] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 4000}, [FLASH_RING] = {true, 1100000, 330000, 0, 0}},
     [BLOCKING(FLASH_ALLGATHER)] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 1000}, [FLASH_RING] = {true, 0, 400000, 0, 0}},
     [BLOCKING(FLASH_REDUCE_SCATTER)] = {[FLASH_FALLBACK] = {true, 0, 0, 0, 8000},
                                         [FLASH_RING] = {true, 200000, 600000, 0, 3500},
                                         [FLASH_PAIRWISE] = {true, 200000, 100000, 0, 4000}},
     [BLOCKING(FLASH_ALLREDUCE)] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 1000}, [FLASH_RING] = {true, 0, 900000, 0, 0}},
     [BLOCKING(FLASH_ALLTOALL)] =
         {[FLASH_FALLBACK] = {true, 0, 0, 0, 1000}, [FLASH_RING] = {true, 1500000, 500000, 0, 0}},
     [BLOCKING(FLASH_BCAST)] = {[FLASH_FALLBACK] = {true, 0, 0, 750000, 1000},
                                [FLASH_RING] = {true, 1200000, 780000, 0, 0}}},
    {[FLASH_ALLGATHER] = {[FLASH_FALLBACK] = {true, 0, 3800, 0, 260},
                          [FLASH_RING] = {true, 0, 17000, 0, 186},
                          [FLASH_SHM] = {true, 0, 1700, 0, 215}},
     [FLASH_REDUCE_SCATTER] = {[FLASH_FALLBACK] = {true, 0, 7700, 0, 900},
                               [FLASH_RING] = {true, 0, 41000, 0, 0},
                               [FLASH_SHM] = {true, 0, 2000, 0, 160}},
     [FLASH_ALLREDUCE] = {[FLASH_FALLBACK] = {true, 0, 7700, 0, 900}},
     [FLASH_ALLTOALL] = {[FLASH_FALLBACK] = {true, 0, 3800, 0, 260}},
     [FLASH_BCAST] = {[FLASH_FALLBACK] = {true, 0, 3800, 0, 260}},
     [FLASH_REDUCE] = {[FLASH_FALLBACK] = {true, 0, 7700, 0, 900}},
     [FLASH_GATHER] = {[FLASH_FALLBACK] = {true, 0, 3800, 0, 260}},
     [FLASH_SCATTER] = {[FLASH_FALLBACK] = {true, 0, 3800, 0, 260}}}};

/*
 * Reduce-scatters of three ranks between nodes have no pairwise cost below these bytes, all blocks
 * together, unless a file of costs has another number. Open MPI's call was measured to take less
 * time there, and the formula, in which three ranks are as many doublings as four, cannot say so,
 * whatever its coefficients are.
 */
#define PAIRWISE_OF_THREE ((size_t) 48 << 10)

static table_t table;
static uint64_t pairwise_of_three = PAIRWISE_OF_THREE;
static bool from_file;

/*
 * The most ranks of a blocking all-to-all that the built-in rows give to the exchange: it took less time
 * than Open MPI's call on three to eight hosts, and more on sixteen, which shared two cores.
 */
#define BLOCKING_EXCHANGE_RANKS 8

/*
 * Whether the algorithm is left out, although there may be a row of it, whose formula cannot say so. A
 * blocking allgather, allreduce or broadcast of two ranks takes as long, whatever serves it. The rows of
 * a file are those of a site that has measured.
 */
static bool is_left_out(bool node, size_t call, mca_coll_flash_path_t path, size_t bytes,
                        uint32_t ranks)
{
    if (path == FLASH_PAIRWISE) {
        return !node && ranks == 3 && bytes < pairwise_of_three;
    }
    return !from_file && path == FLASH_RING &&
           ((ranks == 2 && (call == BLOCKING(FLASH_ALLGATHER) ||
                            call == BLOCKING(FLASH_ALLREDUCE) || call == BLOCKING(FLASH_BCAST))) ||
            (call == BLOCKING(FLASH_ALLTOALL) && ranks > BLOCKING_EXCHANGE_RANKS));
}

static uint64_t doublings(uint32_t ranks)
{
    uint64_t rounds = 0;

    while ((UINT64_C(1) << rounds) < ranks) {
        rounds++;
    }
    return rounds;
}

/*
 * What a rank sends at least, of an allgather and of a reduce-scatter alike, and of both; of a gather or
 * a scatter, what the root receives or sends. Of a broadcast or a reduce, what the root of a binomial
 * tree sends or receives, the block for each doubling.
 */
static uint64_t sent_bytes(flash_kind_t kind, size_t bytes, uint32_t ranks)
{
    uint64_t once = bytes - bytes / ranks;

    if (flash_schedule_chains(kind)) {
        return bytes * doublings(ranks);
    }
    return kind == FLASH_ALLREDUCE ? 2 * once : once;
}

uint64_t mca_coll_flash_cost(bool node, size_t call, mca_coll_flash_path_t path, size_t bytes,
                             uint32_t ranks)
{
    const cost_t *row = &table[node][call][path];
    uint64_t sent;

    if (!row->known || is_left_out(node, call, path, bytes, ranks)) {
        return FLASH_NO_COST;
    }
    sent = sent_bytes((flash_kind_t) (call % FLASH_COST_KINDS), bytes, ranks);
    if (row->byte_ps > 0 && sent > UINT64_MAX / 4 / row->byte_ps) {
        return UINT64_MAX / 2;
    }
    /* The three others are below 2^62 together: 10^12 each, and FLASH_COST_RANKS. */
    return row->fixed_ns + row->rank_ns * (ranks - 1) + row->doubling_ns * doublings(ranks) +
           sent * row->byte_ps / 1000;
}

bool mca_coll_flash_has_costs(bool node, size_t call)
{
    for (size_t path = FLASH_FALLBACK + 1; path < FLASH_PATHS; path++) {
        if (table[node][call][path].known) {
            return true;
        }
    }
    return false;
}

/* Of names, some of which may be NULL: nothing has that number. */
static bool find(const char *word, const char *const names[], size_t count, size_t *index)
{
    for (*index = 0; *index < count; ++*index) {
        if (names[*index] != NULL && strcmp(names[*index], word) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_comment(const char *line)
{
    line += strspn(line, " \t\r\n");
    return *line == '\0' || *line == '#';
}

/* False: it is no row. */
static bool read_row(const char *line, table_t rows)
{
    char place[16], call[32], path[16], rest[2];
    size_t at_place, at_call, at_path;
    cost_t row = {.known = true};
    int words =
        sscanf(line, "%15s %31s %15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %1s", place,
               call, path, &row.fixed_ns, &row.rank_ns, &row.doubling_ns, &row.byte_ps, rest);

    if (words != 7 || strchr(line, '-') != NULL || !find(place, place_names, 2, &at_place) ||
        !find(call, mca_coll_flash_call_names, FLASH_COST_CALLS, &at_call) ||
        !find(path, mca_coll_flash_path_names, FLASH_PATHS, &at_path) ||
        row.fixed_ns > MOST_OF_ONE || row.rank_ns > MOST_OF_ONE || row.doubling_ns > MOST_OF_ONE ||
        row.byte_ps > MOST_OF_ONE) {
        return false;
    }
    if (rows[at_place][at_call][at_path].known) {
        return false;
    }
    rows[at_place][at_call][at_path] = row;
    return true;
}

/* The line about three ranks, if there is none yet: UINT64_MAX. */
static bool read_three(const char *line, uint64_t *three)
{
    uint64_t bytes;
    char rest[2];

    if (sscanf(line, " network reduce_scatter pairwise_of_three %" SCNu64 " %1s", &bytes, rest) !=
            1 ||
        strchr(line, '-') != NULL || bytes > MOST_OF_ONE || *three != UINT64_MAX) {
        return false;
    }
    *three = bytes;
    return true;
}

/* 0, or the number of the line that is no row, or that of one before it. */
static int read_rows(FILE *file, table_t rows, uint64_t *three)
{
    char *line = NULL;
    size_t room = 0;
    int wrong = 0;

    for (int number = 1; wrong == 0 && getline(&line, &room, file) >= 0; number++) {
        if (!is_comment(line) && !read_row(line, rows) && !read_three(line, three)) {
            wrong = number;
        }
    }
    free(line);
    return wrong;
}

static void tell_ignored(const char *name, const char *why)
{
    FLASH_HELP("costs-ignored", name, why, opal_process_info.nodename, (int) getpid());
}

static void read_file(const char *name)
{
    FILE *file = fopen(name, "re");
    table_t rows = {0};
    uint64_t three = UINT64_MAX;
    char why[64];
    int wrong;

    if (file == NULL) {
        tell_ignored(name, strerror(errno));
        return;
    }
    wrong = read_rows(file, rows, &three);
    if (ferror(file)) {
        tell_ignored(name, strerror(errno));
    } else if (wrong != 0) {
        snprintf(why, sizeof(why), "line %d is no row of the table, or its second", wrong);
        tell_ignored(name, why);
    } else {
        memcpy(table, rows, sizeof(table));
        pairwise_of_three = three != UINT64_MAX ? three : PAIRWISE_OF_THREE;
        from_file = true;
    }
    fclose(file);
}

void mca_coll_flash_costs_reset(void)
{
    memcpy(table, built_in, sizeof(table));
    pairwise_of_three = PAIRWISE_OF_THREE;
    from_file = false;
}

const char *mca_coll_flash_costs_source(void)
{
    return from_file ? mca_coll_flash_params.costs : "built in";
}

void mca_coll_flash_costs_open(void)
{
    const char *name = mca_coll_flash_params.costs;

    mca_coll_flash_costs_reset();
    if (name != NULL && name[0] != '\0') {
        read_file(name);
    }
}

static uint64_t mixed_in(uint64_t hash, const cost_t *row)
{
    const uint64_t words[] = {row->known, row->fixed_ns, row->rank_ns, row->doubling_ns,
                              row->byte_ps};

    for (size_t word = 0; word < sizeof(words) / sizeof(words[0]); word++) {
        hash = (hash ^ words[word]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/*
 * FNV-1a over all that costs go by: the numbers, the bytes below which the table leaves calls of three
 * ranks out, and whether it is a file's. The sign bit is left out: the hash is compared by its negative,
 * too.
 */
static int64_t hash_of(const table_t rows, uint64_t left_out, bool of_file)
{
    uint64_t hash = (UINT64_C(0xcbf29ce484222325) ^ left_out) + of_file;

    for (size_t place = 0; place < 2; place++) {
        for (size_t call = 0; call < FLASH_COST_CALLS; call++) {
            for (size_t path = 0; path < FLASH_PATHS; path++) {
                hash = mixed_in(hash, &rows[place][call][path]);
            }
        }
    }
    return (int64_t) (hash >> 1);
}

int64_t mca_coll_flash_costs_hash(void)
{
    return hash_of(table, pairwise_of_three, from_file);
}

int64_t mca_coll_flash_costs_built_in(void)
{
    return hash_of(built_in, PAIRWISE_OF_THREE, false);
}
