/*
 * coll_flash_recdbl_rounds.h: what the files of one operation's rounds share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_RECDBL_ROUNDS_H
#define COLL_FLASH_RECDBL_ROUNDS_H

#include "recdbl/coll_flash_recdbl.h"
#include "recdbl/flash_recdbl.h"

static inline const flash_op_params_t *flash_recdbl_params(const mca_coll_flash_request_t *request)
{
    return &mca_coll_flash_recdbl_of(request)->params;
}

static inline bool flash_recdbl_gather(const mca_coll_flash_request_t *request)
{
    return request->kind == FLASH_ALLGATHER;
}

static inline uint32_t flash_recdbl_ranks(const mca_coll_flash_request_t *request)
{
    return request->module->ring.nranks;
}

static inline uint32_t flash_recdbl_rank(const mca_coll_flash_request_t *request)
{
    return (uint32_t) ompi_comm_rank(request->module->comm);
}

/* Room for any message, of which nothing is read: written in MPI_Init and MPI_Finalize only. */
extern mca_coll_flash_recdbl_header_t *flash_recdbl_trash;

/* Elements of the blocks at those places; where the first of them begins. */
size_t flash_recdbl_count(const mca_coll_flash_request_t *request, uint32_t first, uint32_t count);
char *flash_recdbl_place(const mca_coll_flash_request_t *request, uint32_t place);
/* Bytes of the longest message that may come. */
size_t flash_recdbl_room(void);
/* False: there is none. */
bool flash_recdbl_allocate(mca_coll_flash_request_t *request);
void flash_recdbl_give_memory(char *memory);
/* To or from the blocks at their places: all, or this rank's alone. */
void flash_recdbl_copy(mca_coll_flash_request_t *request, bool all, bool in);

#endif /* COLL_FLASH_RECDBL_ROUNDS_H */
