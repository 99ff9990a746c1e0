/*
 * coll_flash_board.h: boards (flash_board.h) among the processes of a node.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_BOARD_H
#define COLL_FLASH_BOARD_H

#include "job/coll_flash_card.h"
#include "request/coll_flash_request.h"
#include "shm/flash_board.h"

/* ------------------------------------------- their memory: coll_flash_board.c */

/*
 * Makes this process' sides of all boards that it may take part in, if it is to have any, for
 * processes of this node to find by mca_coll_flash_board_memory_t; before its card is published.
 */
void mca_coll_flash_boards_open(void);
mca_coll_flash_board_memory_t mca_coll_flash_boards_memory(void);
/* In MPI_Init: finds those of all other processes of this node. Whether it has; else, says why. */
bool mca_coll_flash_boards_meet(ompi_communicator_t *world);
/* Behind that: whether it may read their memory; else, why not has been said. */
bool mca_coll_flash_boards_may_read(void);
/* Everybody has, or nobody will: whether boards are used. */
void mca_coll_flash_boards_agree(bool used);
void mca_coll_flash_boards_close(void);

/*
 * The board of a communicator on one node; NULL: it has none, as on all its ranks. False if there is
 * no memory.
 */
bool mca_coll_flash_board_of(ompi_communicator_t *comm, flash_board_t **board);
/* Whether the process with that rank in MPI_COMM_WORLD, of this node, is there no more. */
bool mca_coll_flash_board_rank_is_gone(uint32_t world_rank);

/* --------------------------------- operations on them: coll_flash_board_calls.c */

extern const mca_coll_flash_algorithm_t mca_coll_flash_shm;

/* The next operation over the communicator's board. */
mca_coll_flash_ticket_t mca_coll_flash_board_ticket(mca_coll_flash_module_t *module);
/* For each that is not done, with the lock that orders them; or for none, if another thread has it. */
void mca_coll_flash_boards_each(void (*look)(flash_board_t *board));
/* For the algorithm's table. */
void mca_coll_flash_boards_watch(void);

#endif /* COLL_FLASH_BOARD_H */
