/*
 * test_coll_data.c: the benchmarks' check of results finds one wrong element, wherever it is. One
 * rank stands for one of five.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

#include "../../mpi_bench/coll_operation.h"

enum { RANKS = 5, BYTES = 388, ROUND = 3 }; /* does not divide */

coll_operation_t coll_operation;

/* The data of a rank of RANKS, whose buffers this process has room for. */
static coll_data_t data_of(int rank)
{
    coll_data_t data;

    coll_data_init(&data, BYTES * RANKS, false, 0);
    data.counts = realloc(data.counts, RANKS * sizeof(int));
    data.displs = realloc(data.displs, RANKS * sizeof(int));
    data.nranks = RANKS;
    data.rank = rank;
    coll_data_shape(&data, BYTES);
    return data;
}

/* Of the result. */
static int elements_of(const coll_data_t *data)
{
    bool own = coll_operation.deals || (coll_operation.reduces && !coll_operation.everywhere);

    return own ? data->count : data->total;
}

/* What the collective leaves, from all ranks' own data. */
static void collect(coll_data_t *data)
{
    for (int rank = 0; rank < RANKS; rank++) {
        coll_data_t other = data_of(rank);

        coll_data_fill(&other, ROUND);
        if (coll_operation.deals && rank == COLL_ROOT) {
            memcpy(data->recv, (char *) other.send + data->displs[data->rank],
                   (size_t) data->count);
        } else if (!coll_operation.reduces && !coll_operation.deals) {
            memcpy((char *) data->recv + data->displs[rank],
                   (char *) other.send +
                       (coll_operation.exchanges ? (size_t) data->displs[data->rank] : 0),
                   (size_t) other.count);
        }
        for (int i = 0; coll_operation.reduces && i < elements_of(data); i++) {
            int first = coll_operation.everywhere ? 0 : data->displs[data->rank];

            ((float *) data->recv)[i] += ((float *) other.send)[first + i];
        }
        coll_data_free(&other);
    }
}

static void check_all(int rank)
{
    coll_data_t data = data_of(rank);
    int elements = elements_of(&data);

    coll_data_fill(&data, ROUND);
    check(!coll_data_check(&data, ROUND), "an untouched buffer passes");
    memset(data.recv, 0, (size_t) elements * data.size);
    collect(&data);
    check(coll_data_check(&data, ROUND), "a right result does not pass");
    for (int i = 0; i < elements; i++) {
        char *byte = (char *) data.recv + (size_t) i * data.size;

        *byte ^= 1;
        check(!coll_data_check(&data, ROUND), "element %d may be wrong", i);
        *byte ^= 1;
    }
    coll_data_free(&data);
}

static void gather(void)
{
    coll_operation = (coll_operation_t){.reduces = false};
    check_all(2);
}

static void exchange(void)
{
    coll_operation = (coll_operation_t){.exchanges = true};
    check_all(0);
    check_all(3);
}

static void reduce(void)
{
    coll_operation = (coll_operation_t){.reduces = true};
    check_all(0);
    check_all(4);
    coll_operation.equal = true;
    check_all(4);
}

static void reduce_everywhere(void)
{
    coll_operation = (coll_operation_t){.reduces = true, .everywhere = true};
    check_all(0);
    check_all(4);
}

/* Of ranks that are not the root nothing is asked. */
static void check_root(void)
{
    coll_data_t data;

    check_all(COLL_ROOT);
    data = data_of(3);
    coll_data_fill(&data, ROUND);
    check(coll_data_check(&data, ROUND), "a rank that is not the root has to have a result");
    coll_data_free(&data);
}

static void reduce_to_root(void)
{
    coll_operation = (coll_operation_t){.reduces = true, .everywhere = true, .rooted = true};
    check_root();
}

static void gather_to_root(void)
{
    coll_operation = (coll_operation_t){.collects = true};
    check_root();
}

static void scatter(void)
{
    coll_operation = (coll_operation_t){.deals = true};
    check_all(COLL_ROOT);
    check_all(4);
}

/* The root has what it sends, and all others nothing before. */
static void broadcast(void)
{
    coll_data_t root, other;

    coll_operation = (coll_operation_t){.rooted = true};
    root = data_of(COLL_ROOT);
    other = data_of(4);
    coll_data_fill(&root, ROUND);
    coll_data_fill(&other, ROUND);
    check(coll_data_check(&root, ROUND), "the root lacks the block");
    check(!coll_data_check(&other, ROUND), "an untouched buffer passes");
    memcpy(other.recv, root.recv, (size_t) root.total);
    check(coll_data_check(&other, ROUND), "a right result does not pass");
    for (int i = 0; i < other.total; i++) {
        ((char *) other.recv)[i] ^= 1;
        check(!coll_data_check(&other, ROUND), "element %d may be wrong", i);
        ((char *) other.recv)[i] ^= 1;
    }
    coll_data_free(&root);
    coll_data_free(&other);
}

TEST_PROGRAM(test_coll_data, MPI_THREAD_SINGLE, {"gather", gather}, {"exchange", exchange},
             {"reduce", reduce}, {"reduce_everywhere", reduce_everywhere},
             {"reduce_to_root", reduce_to_root}, {"broadcast", broadcast},
             {"gather_to_root", gather_to_root}, {"scatter", scatter});
TEST_MAIN(test_coll_data)
