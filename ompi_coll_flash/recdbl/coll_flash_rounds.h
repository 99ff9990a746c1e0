/*
 * coll_flash_rounds.h: what the files of one operation's rounds share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_ROUNDS_H
#define COLL_FLASH_ROUNDS_H

#include "recdbl/coll_flash_doubling.h"
#include "recdbl/flash_doubling.h"

static inline const flash_op_params_t *flash_rounds_params(const mca_coll_flash_request_t *request)
{
    return &mca_coll_flash_doubling_of(request)->params;
}

static inline bool flash_rounds_gather(const mca_coll_flash_request_t *request)
{
    return request->kind == FLASH_ALLGATHER;
}

static inline uint32_t flash_rounds_ranks(const mca_coll_flash_request_t *request)
{
    return request->module->ring.nranks;
}

static inline uint32_t flash_rounds_rank(const mca_coll_flash_request_t *request)
{
    return (uint32_t) ompi_comm_rank(request->module->comm);
}

/* Room for any message, of which nothing is read: written in MPI_Init and MPI_Finalize only. */
extern mca_coll_flash_doubling_header_t *flash_rounds_trash;

/* Elements of the blocks at those places; where the first of them begins. */
size_t flash_rounds_count(const mca_coll_flash_request_t *request, uint32_t first, uint32_t count);
char *flash_rounds_place(const mca_coll_flash_request_t *request, uint32_t place);
/* Bytes of the longest message that may come. */
size_t flash_rounds_room(void);
/* False: there is none. */
bool flash_rounds_allocate(mca_coll_flash_request_t *request);
void flash_rounds_give_memory(char *memory);
/* To or from the blocks at their places: all, or this rank's alone. */
void flash_rounds_copy(mca_coll_flash_request_t *request, bool all, bool in);

#endif /* COLL_FLASH_ROUNDS_H */
