/*
 * coll_flash_component.h: the component as Open MPI calls it, and what a job agrees on.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_COMPONENT_H
#define COLL_FLASH_COMPONENT_H

#include "request/coll_flash_module.h"

/* Whether this process does not open UCX before the agreement. */
bool mca_coll_flash_is_late(void);
/* When the component is opened: for all of MPI_Init. */
void mca_coll_flash_decide_late(void);
/*
 * Once the PML is selected: whether opening UCX behind MPI_Init would leave the C library's code as it
 * is, which other threads may then run.
 */
bool mca_coll_flash_opens_quietly(void);
/* Whether non-blocking calls of that communicator that fall back are libnbc's. */
bool mca_coll_flash_is_above_libnbc(ompi_communicator_t *comm);

/* Exported for the component proper, mca_coll_flash.so. */
int mca_coll_flash_register(void);
int mca_coll_flash_open(void);
int mca_coll_flash_close(void);
int mca_coll_flash_init_query(bool enable_progress_threads, bool enable_mpi_threads);
mca_coll_base_module_t *mca_coll_flash_comm_query(ompi_communicator_t *comm, int *priority);

/* --------------------------------------------------------------- agreement */

/* When the component is opened. */
void mca_coll_flash_agree_anew(void);
/*
 * Collective over MPI_COMM_WORLD, once, in MPI_Init: whether all have the same release, where each
 * process is, whether UCX is usable on every rank, and which parameters all of them go by. Forms the
 * module's ring. `passes_on`: what flash does not serve has somewhere to go here.
 */
int mca_coll_flash_agree(mca_coll_flash_module_t *world, bool passes_on);
/* Whether this process may serve communicators: true until the agreement says otherwise. */
bool mca_coll_flash_is_usable(void);

/* ------------------------------------------------------------ communicators */

/*
 * Once, while the communicator is made: follows its info keys from then on. OPAL_SUCCESS, or none.
 */
int mca_coll_flash_read_settings(ompi_communicator_t *comm, mca_coll_flash_settings_t *settings);

/* ------------------------------------------------------------------- tools */

/* Performance variables of the MPI tool interface. */
void mca_coll_flash_pvars_register(void);
/* If any process asks for it (coll_flash_summary): a table of all that, in MPI_Finalize. */
void mca_coll_flash_summary_open(void);
void mca_coll_flash_summary_close(void);

#endif /* COLL_FLASH_COMPONENT_H */
