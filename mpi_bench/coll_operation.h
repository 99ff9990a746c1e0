/*
 * coll_operation.h: the collective that a program measures, and its buffers.
 *
 * The thirteen programs flash_iallgather, flash_iallgatherv, flash_ireduce_scatter,
 * flash_ireduce_scatter_block, flash_iallreduce, flash_ialltoall, flash_ialltoallv, flash_ibcast,
 * flash_ireduce, flash_igather, flash_igatherv, flash_iscatter and flash_iscatterv are the same but for the
 * operation, which each of them defines.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_OPERATION_H
#define COLL_OPERATION_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

/*
 * For one message size, which counts as in the OSU benchmarks: what a rank contributes to a gather,
 * has for each rank or broadcasts (MPI_CHAR), what a rank contributes to all blocks of a reduction
 * together (MPI_FLOAT).
 */
typedef struct coll_data {
    int rank, nranks;
    MPI_Datatype type;
    size_t size; /* of an element */
    int count;   /* elements of this rank's block */
    int total;   /* of all blocks; of a broadcast, of its one block */
    int *counts, *displs;
    bool device;
    size_t offset;               /* of `host_recv` in its page */
    void *send, *recv;           /* the call's */
    void *host_send, *host_recv; /* what is in them; the same, unless they are a device's */
} coll_data_t;

typedef struct coll_operation {
    const char *program, *call;
    bool reduces;
    bool everywhere; /* a reduction whose result all ranks get: all blocks */
    bool exchanges;  /* a gather to which a rank has another block for each rank */
    bool rooted;     /* a gather of the root's block alone: a broadcast, in the receive buffer; or a
                        reduction whose result, all blocks, the root alone gets */
    bool collects;   /* a gather whose result, all blocks, the root alone gets */
    bool deals;      /* a scatter: the root has a block for each rank */
    bool equal;      /* a reduction that has equal blocks: rounds the size down to fit */
    int (*start)(const coll_data_t *data, MPI_Comm comm, MPI_Request *request);
    int (*block)(const coll_data_t *data, MPI_Comm comm); /* its blocking form */
} coll_operation_t;

enum { COLL_ROOT = 0 };

/* Defined by each program. */
extern coll_operation_t coll_operation;

/* Room for messages of up to `bytes`, in a device's memory if so; the host's receive buffer begins
   `offset` bytes into a page. False if there is none. */
bool coll_data_init(coll_data_t *data, size_t bytes, bool device, size_t offset);
void coll_data_free(coll_data_t *data);

/* Sets the counts for a size. False if it has no element for each rank (equal blocks). */
bool coll_data_shape(coll_data_t *data, size_t bytes);

/* New contents for the round of that number, and nothing valid where its result goes. */
void coll_data_fill(coll_data_t *data, int round);
/* Whether that round's result is there, and right in each element. */
bool coll_data_check(const coll_data_t *data, int round);

#endif /* COLL_OPERATION_H */
