/*
 * coll_data.c: buffers of a collective, filled with what any rank can work out for any other.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

#include <stdlib.h>
#include <string.h>

#include "bench_device.h"
#include "coll_options.h"

static bool is_broadcast(void)
{
    return coll_operation.rooted && !coll_operation.reduces;
}

static size_t recv_room(const coll_data_t *data, size_t bytes)
{
    return (coll_operation.reduces ? bytes : (size_t) data->nranks * bytes) + 1;
}

static size_t send_room(const coll_data_t *data, size_t bytes)
{
    bool all = coll_operation.exchanges || coll_operation.deals;

    return (all ? (size_t) data->nranks * bytes : bytes) + 1;
}

/* From the beginning of a page on, as OSU's, or behind it: by that a copy may take twenty times as
   long (flash_copy.c). */
static char *allocate(size_t bytes, size_t offset)
{
    char *memory =
        aligned_alloc(COLL_PAGE, (offset + bytes + COLL_PAGE - 1) / COLL_PAGE * COLL_PAGE);

    return memory == NULL ? NULL : memory + offset;
}

bool coll_data_init(coll_data_t *data, size_t bytes, bool device, size_t offset)
{
    bool reduces = coll_operation.reduces;
    size_t nranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &data->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &data->nranks);
    nranks = (size_t) data->nranks;
    data->type = reduces ? MPI_FLOAT : MPI_CHAR;
    data->size = reduces ? sizeof(float) : 1;
    data->counts = malloc(nranks * sizeof(int));
    data->displs = malloc(nranks * sizeof(int));
    data->device = device;
    data->offset = offset;
    data->host_send = allocate(send_room(data, bytes), 0);
    data->host_recv = allocate(recv_room(data, bytes), offset);
    data->send = device ? bench_device_allocate(send_room(data, bytes)) : data->host_send;
    data->recv = device ? bench_device_allocate(recv_room(data, bytes)) : data->host_recv;
    if (data->counts == NULL || data->displs == NULL || data->send == NULL || data->recv == NULL ||
        data->host_send == NULL || data->host_recv == NULL) {
        coll_data_free(data);
        return false;
    }
    return true;
}

void coll_data_free(coll_data_t *data)
{
    free(data->counts);
    free(data->displs);
    free(data->host_send);
    if (data->host_recv != NULL) {
        free((char *) data->host_recv - data->offset);
    }
    if (data->device) {
        bench_device_free(data->send);
        bench_device_free(data->recv);
    }
}

/* The first blocks of a reduction have one element more where the size does not divide. */
bool coll_data_shape(coll_data_t *data, size_t bytes)
{
    int elements = (int) (bytes / data->size), next = 0;
    int i;

    for (i = 0; i < data->nranks; i++) {
        data->counts[i] = elements;
        if (coll_operation.reduces) {
            data->counts[i] = elements / data->nranks;
            data->counts[i] += !coll_operation.equal && i < elements % data->nranks;
        }
        data->displs[i] = next;
        next += data->counts[i];
    }
    data->count = data->counts[data->rank];
    data->total = is_broadcast() ? data->count : next;
    return next > 0;
}

/* Element `index` of what a rank gives to a gather. */
static char gathered(int rank, int index, int round)
{
    return (char) (31U * (unsigned) rank + 7U * (unsigned) index + (unsigned) index / 251 +
                   (unsigned) round);
}

/* Element `index` of what is reduced, times the rank's weight: all sums are exact, to 10^5 ranks.
 */
static float reduced(int index, int round)
{
    return (float) (1 + (unsigned) index % 13 + (unsigned) round % 2);
}

static int weight(int rank)
{
    return 1 + rank % 7;
}

/* Elements of the two buffers. */
static int sent(const coll_data_t *data)
{
    bool all = coll_operation.reduces || coll_operation.exchanges || coll_operation.deals;

    return all ? data->total : data->count;
}

static int received(const coll_data_t *data)
{
    bool own = coll_operation.deals || (coll_operation.reduces && !coll_operation.everywhere);

    return own ? data->count : data->total;
}

void coll_data_fill(coll_data_t *data, int round)
{
    int i;

    for (i = 0; i < sent(data); i++) {
        if (coll_operation.reduces) {
            ((float *) data->host_send)[i] = (float) weight(data->rank) * reduced(i, round);
        } else {
            ((char *) data->host_send)[i] = gathered(data->rank, i, round);
        }
    }
    for (i = 0; i < received(data); i++) {
        if (coll_operation.reduces) {
            ((float *) data->host_recv)[i] = -1;
        } else {
            bool root = is_broadcast() && data->rank == COLL_ROOT;

            ((char *) data->host_recv)[i] = root ? gathered(COLL_ROOT, i, round) : 0;
        }
    }
    if (data->device) {
        bench_device_write(data->send, data->host_send, (size_t) sent(data) * data->size);
        bench_device_write(data->recv, data->host_recv, (size_t) received(data) * data->size);
    }
}

static bool check_sums(const coll_data_t *data, int round)
{
    const float *recv = data->host_recv;
    int first = coll_operation.everywhere ? 0 : data->displs[data->rank], weights = 0, i;

    for (i = 0; i < data->nranks; i++) {
        weights += weight(i);
    }
    for (i = 0; i < received(data); i++) {
        if (recv[i] != (float) weights * reduced(first + i, round)) {
            return false;
        }
    }
    return true;
}

/* What is broadcast, or the own block of what is scattered. */
static bool check_from_root(const coll_data_t *data, int round)
{
    const char *recv = data->host_recv;
    int first = coll_operation.deals ? data->displs[data->rank] : 0, i;

    for (i = 0; i < received(data); i++) {
        if (recv[i] != gathered(COLL_ROOT, first + i, round)) {
            return false;
        }
    }
    return true;
}

static bool check_blocks(const coll_data_t *data, int round)
{
    const char *recv = data->host_recv;
    int first = coll_operation.exchanges ? data->displs[data->rank] : 0, rank, i;

    for (rank = 0; rank < data->nranks; rank++) {
        for (i = 0; i < data->counts[rank]; i++) {
            if (recv[data->displs[rank] + i] != gathered(rank, first + i, round)) {
                return false;
            }
        }
    }
    return true;
}

bool coll_data_check(const coll_data_t *data, int round)
{
    if (data->device) {
        bench_device_read(data->host_recv, data->recv, (size_t) received(data) * data->size);
    }
    if (is_broadcast() || coll_operation.deals) {
        return check_from_root(data, round);
    }
    if ((coll_operation.rooted || coll_operation.collects) && data->rank != COLL_ROOT) {
        return true; /* has no result */
    }
    return coll_operation.reduces ? check_sums(data, round) : check_blocks(data, round);
}
