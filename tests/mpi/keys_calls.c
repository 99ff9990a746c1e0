/*
 * keys_calls.c: calls on communicators with info keys, and the way that they have taken.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "keys.h"

#include "mpitest.h"
#include "pvars.h"

const char *const keys_counter_names[WAYS] = {[RING] = "coll_flash_ring_calls",
                                              [PAIRWISE] = "coll_flash_pairwise_calls",
                                              [SHM] = "coll_flash_shm_calls",
                                              [RECDBL] = "coll_flash_recdbl_calls",
                                              [PASSED_ON] = "coll_flash_fallback_calls"};
static MPI_T_pvar_handle counters[WAYS];

void keys_open_counters(void)
{
    for (size_t way = 0; way < WAYS; way++) {
        counters[way] =
            pvar_of(keys_counter_names[way], MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    }
}

void keys_close_counters(void)
{
    for (size_t way = 0; way < WAYS; way++) {
        pvar_free(&counters[way]);
    }
}

void keys_count(unsigned long long counts[WAYS])
{
    for (size_t way = 0; way < WAYS; way++) {
        counts[way] = pvar_count(counters[way]);
    }
}

int keys_element(int rank, int k)
{
    return rank * 1000 + k;
}

void keys_gather(MPI_Comm comm, int bytes)
{
    int elements = bytes / (int) sizeof(int);
    int *send = get_memory((size_t) bytes), *recv = get_memory((size_t) (world_size * bytes));
    bool good = true;
    MPI_Request request;

    for (int k = 0; k < elements; k++) {
        send[k] = keys_element(world_rank, k);
    }
    MPI_Iallgather(send, elements, MPI_INT, recv, elements, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < world_size * elements; k++) {
        good &= recv[k] == keys_element(k / elements, k % elements);
    }
    check(good, "an allgather is wrong");
    free(send);
    free(recv);
}

static void reduce(MPI_Comm comm, int bytes)
{
    int elements = bytes / (int) sizeof(int), ranks = world_size * (world_size - 1) / 2;
    int *send = get_memory((size_t) (world_size * bytes)), *recv = get_memory((size_t) bytes);
    bool good = true;
    MPI_Request request;

    for (int k = 0; k < world_size * elements; k++) {
        send[k] = keys_element(world_rank, k);
    }
    MPI_Ireduce_scatter_block(send, recv, elements, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < elements; k++) {
        good &= recv[k] == ranks * 1000 + world_size * (world_rank * elements + k);
    }
    check(good, "a reduce-scatter is wrong");
    free(send);
    free(recv);
}

way_t keys_way_of(MPI_Comm comm, kind_t kind, int bytes)
{
    unsigned long long before[WAYS], after[WAYS];
    way_t taken = WAYS;

    keys_count(before);
    (kind == GATHER ? keys_gather : reduce)(comm, bytes);
    keys_count(after);
    for (size_t way = 0; way < WAYS; way++) {
        if (after[way] == before[way] + 1 && taken == WAYS) {
            taken = (way_t) way;
        } else if (after[way] != before[way]) {
            return WAYS;
        }
    }
    return taken;
}

void keys_set(MPI_Comm comm, const char *name, const char *value)
{
    char key[MPI_MAX_INFO_KEY + 1] = "mpix_flash_";
    MPI_Info info;

    strncat(key, name, sizeof(key) - strlen(key) - 1);
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    check_class(MPI_Comm_set_info(comm, info), MPI_SUCCESS, "MPI_Comm_set_info");
    MPI_Info_free(&info);
}

MPI_Comm keys_dup_that_passes_on(void)
{
    static const char *const keys[][2] = {
        {"algorithm", "fallback"}, {"on_node", "true"}, {"shm", "no"}, {"segment_bytes", "65536"}};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (size_t k = 0; k < LENGTH(keys); k++) {
        keys_set(comm, keys[k][0], keys[k][1]);
    }
    return comm;
}
