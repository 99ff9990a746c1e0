/*
 * coll_flash_ring.h: operations by messages of flash's own: rings, and exchanges with all others.
 *
 *   coll_flash_seats.c       where the processes of the job are
 *   coll_flash_order.c       in which order the ranks of a communicator stand in its ring
 *   coll_flash_tags.c        how messages of a communicator are told apart from others
 *   coll_flash_op_id.c      how those of its operations are
 *   coll_flash_neighbours.c  the processes that it exchanges messages with
 *   coll_flash_ring.c        a request's beginning and end
 *   coll_flash_ring_watch.c  neighbours that fall silent
 *   coll_flash_setup.h       what comes before a communicator's first operation
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_RING_H
#define COLL_FLASH_RING_H

#include "request/coll_flash_request.h"

extern const mca_coll_flash_algorithm_t mca_coll_flash_ring;

/* The next operation of a communicator: whoever calls takes part in it, or fails. */
mca_coll_flash_ticket_t mca_coll_flash_ring_ticket(mca_coll_flash_module_t *module);

/* ------------------------------------------------------------------- seats */

/* In MPI_Init each process learns where all others of MPI_COMM_WORLD are, by their seats. */
enum { FLASH_SEAT_WORDS = 6 };

typedef struct mca_coll_flash_standing {
    uint32_t node;     /* the lowest rank of MPI_COMM_WORLD there */
    uint32_t standing; /* its place among all processes; the same for those with equal seats */
} mca_coll_flash_standing_t;

typedef struct mca_coll_flash_standings mca_coll_flash_standings_t;

/* Those of so many ranks. */
size_t mca_coll_flash_seats_bytes(uint32_t ranks);
/* Fills in this rank's seat among the seats of all ranks. */
void mca_coll_flash_seats_fill(ompi_communicator_t *world, uint32_t *seats);
/*
 * Makes standings of `count` seats, which it leaves in another order. `shared`: where this node's
 * processes have them, until mca_coll_flash_seats_fini(); zeros before its `first` process fills them in.
 * NULL: this process has its own. False: there is no memory.
 */
bool mca_coll_flash_seats_learn(uint32_t count, uint32_t *seats, mca_coll_flash_standings_t *shared,
                                bool first);
void mca_coll_flash_seats_fini(void);
/* Whether a rank wants rings to go by the order of ranks. */
bool mca_coll_flash_seats_by_rank(void);
mca_coll_flash_standing_t mca_coll_flash_seats_standing(uint32_t world_rank);

/* ------------------------------------------------------------------- order */

/* Whether all ranks share a node; equal on all of them. */
bool mca_coll_flash_ring_on_one_node(ompi_communicator_t *comm);
/* Where this rank stands in the communicator's ring. False if there is no memory. */
bool mca_coll_flash_ring_form(ompi_communicator_t *comm, flash_ring_t *ring);

/* -------------------------------------------------------------------- tags */

/* Whether the communicator's number has a place in a tag. */
bool mca_coll_flash_tags_fit(ompi_communicator_t *comm);
/* The ring's part, once the ring has been formed; before the module has its communicator. */
void mca_coll_flash_ring_tag(mca_coll_flash_module_t *module, ompi_communicator_t *comm);
/*
 * Before the first all-to-all: an array for each distance, with the communicator's part of the
 * tags, and without peers. Like the one above ends the job if there is no memory.
 */
void mca_coll_flash_pairs_tag(mca_coll_flash_module_t *module);
/* Frees what all communicators share, when there are no more of them. */
void mca_coll_flash_tags_fini(void);

/* --------------------------------------------------------- operation ids */

/*
 * Takes the request's operation id. False if an operation 8192 calls older still has it: then the
 * request waits, with a copy of `params`.
 */
bool mca_coll_flash_op_id_take_or_wait(mca_coll_flash_request_t *request,
                                       const flash_op_params_t *params);
/* Gives it back. The request that has waited for it, has it now and is to be started, or NULL. */
mca_coll_flash_request_t *mca_coll_flash_op_id_leave(const mca_coll_flash_request_t *request);
/*
 * Whether another persistent request of the communicator can have an operation id; equal on all
 * ranks. Collective, and waits for the other ranks, once no id is known to be free on all of them;
 * ends the job where that fails on this one, for the others would wait.
 */
bool mca_coll_flash_persistent_id_find(mca_coll_flash_module_t *module);
/* Takes an id that has been found: the same one on all ranks, from 0. */
uint32_t mca_coll_flash_persistent_id_take(mca_coll_flash_module_t *module);
/* Gives it back when this rank's last round has ended without an error. Any thread. */
void mca_coll_flash_persistent_id_return(mca_coll_flash_module_t *module, uint32_t id);
/* What a request that waits is to be started with. */
flash_op_params_t *mca_coll_flash_op_id_waiting(const mca_coll_flash_request_t *request);

/* -------------------------------------------------------------- neighbours */

/*
 * What the first operation of a kind on a communicator, and of the process, needs; and the first one
 * in which this rank takes that part, which says which ranks it exchanges with.
 */
int mca_coll_flash_ring_prepare(mca_coll_flash_module_t *module, flash_kind_t kind,
                                flash_part_t part);

/* For the algorithm's table. */
void mca_coll_flash_ring_watch(void);

#endif /* COLL_FLASH_RING_H */
