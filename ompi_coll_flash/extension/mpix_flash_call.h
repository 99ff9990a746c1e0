/*
 * mpix_flash_call.h: what the extension's calls do with their arguments before anything starts.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MPIX_FLASH_CALL_H
#define MPIX_FLASH_CALL_H

#include "calls/coll_flash_calls.h"

/* A callback, and what it is called with. */
typedef struct call {
    MPIX_Flash_compute_fn *fn;
    void *arg;
} flash_call_t;

/* Whether MPI_COMM_WORLD is there: between MPI_Init and MPI_Finalize. */
bool flash_call_has_world(void);

/*
 * Where MPI is not there, hands that to its handler for such calls: it ends the program and says
 * why, unless Open MPI 5's mpi_initial_errhandler is another one; then the communicator is invalid.
 */
void flash_call_begin(const char *function);

/* Hands a function's error to the communicator's handler, or to MPI_COMM_WORLD's if it has none. */
int flash_call_raise(MPI_Comm comm, int error, const char *function);

/* MPI_SUCCESS or an error class. */
int flash_call_check_comm(MPI_Comm comm);
int flash_call_check_type(MPI_Datatype type);
int flash_call_check_counts(int count, const int counts[], MPI_Comm comm);
/* *op becomes what serves the extension's own types. */
int flash_call_check_reduction(const void *recvbuf, int recvcount, const int recvcounts[],
                               MPI_Datatype datatype, MPI_Op *op, MPI_Comm comm);
/* `own`: the hints' callback, or NULL: they are to have none. */
int flash_call_read(flash_call_t produce, flash_call_t consume, const MPIX_Flash_hints *hints,
                    flash_call_t *own, mca_coll_flash_compute_t *compute);

/* The module that serves the communicator, or NULL; its info keys say what the hints do not. */
mca_coll_flash_module_t *flash_call_module(MPI_Comm comm, mca_coll_flash_compute_t *compute);

size_t flash_call_bytes(MPI_Datatype type, int count);

/* Why there is no ring; size does not matter, but below: callbacks between the steps of a ring are
   what the user asked for. */
mca_coll_flash_reason_t flash_call_reason(const mca_coll_flash_module_t *module);
mca_coll_flash_reason_t flash_call_reduce_reason(const mca_coll_flash_module_t *module,
                                                 MPI_Datatype datatype, MPI_Op op);
/* Of a call that has no other reason: where its callbacks are better made in one. */
mca_coll_flash_reason_t flash_call_merge_reason(const mca_coll_flash_module_t *module,
                                                const mca_coll_flash_compute_t *compute,
                                                flash_kind_t kind, int count, const int counts[],
                                                MPI_Datatype type);
/*
 * Likewise, of a communicator that is set up by its first calls: waits for that, and for all ranks to
 * make the call.
 */
mca_coll_flash_reason_t flash_call_setup_reason(mca_coll_flash_module_t *module, flash_kind_t kind,
                                                mca_coll_flash_reason_t reason);
void flash_call_tell(const char *name, int count, const int counts[], MPI_Datatype type,
                     MPI_Comm comm, mca_coll_flash_reason_t reason);

#endif /* MPIX_FLASH_CALL_H */
