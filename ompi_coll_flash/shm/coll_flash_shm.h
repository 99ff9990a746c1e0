/*
 * coll_flash_shm.h: shared-memory channels (flash_shm.h) among the processes of a node.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_SHM_H
#define COLL_FLASH_SHM_H

#include "job/coll_flash_modex.h"
#include "request/coll_flash_request.h"
#include "shm/flash_shm.h"

/* ------------------------------------------- their memory: coll_flash_shm.c */

/*
 * Makes this process' sides of all channels that it may take part in, if it is to have any, for
 * processes of this node to find by mca_coll_flash_shm_memory_t; before its modex record is
 * published. The same file has room for a table of `table_bytes`.
 */
void mca_coll_flash_shm_open(size_t table_bytes);
mca_coll_flash_shm_memory_t mca_coll_flash_shm_memory(void);
/* In MPI_Init: finds those of all other processes of this node. Whether it has; else, says why. */
bool mca_coll_flash_shm_meet(ompi_communicator_t *world);
/* Behind that: whether it may read their memory; else, why not has been said. */
bool mca_coll_flash_shm_may_read(void);
/*
 * Behind that, if all have met: the table of this node's first process, which it may write to, and all
 * others of the node may read until mca_coll_flash_shm_agree(false). Zeros at first. NULL: there is none of
 * so many bytes.
 */
void *mca_coll_flash_shm_table(size_t bytes);
/* Whether this process is the first. */
bool mca_coll_flash_shm_is_first(void);
/* Everybody has, or nobody will: whether channels are used. */
void mca_coll_flash_shm_agree(bool used);
void mca_coll_flash_shm_close(void);

/*
 * The channel of a communicator on one node; NULL: it has none, as on all its ranks. False if there
 * is no memory.
 */
bool mca_coll_flash_shm_of(ompi_communicator_t *comm, flash_shm_t **shm);
/* Whether the process with that rank in MPI_COMM_WORLD, of this node, is there no more. */
bool mca_coll_flash_shm_rank_is_gone(uint32_t world_rank);

/* --------------------------------- operations on them: coll_flash_shm_calls.c */

extern const mca_coll_flash_algorithm_t mca_coll_flash_shm;

/* The next operation over the communicator's channel. */
mca_coll_flash_ticket_t mca_coll_flash_shm_ticket(mca_coll_flash_module_t *module);
/*
 * For each that is not done, with the lock that orders them; or for none, if another thread has it.
 */
void mca_coll_flash_shm_each(void (*look)(flash_shm_t *shm));
/* For the algorithm's table. */
void mca_coll_flash_shm_watch(void);

#endif /* COLL_FLASH_SHM_H */
