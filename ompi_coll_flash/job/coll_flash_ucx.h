/*
 * coll_flash_ucx.h: UCX, which a process loads when it opens it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_UCX_H
#define COLL_FLASH_UCX_H

#include "flash_ucx.h"

/*
 * The interfaces that Open MPI's own messages by TCP are told to use, with commas, in `size` bytes.
 * False: it is told nothing, or nothing that this host has.
 */
bool mca_coll_flash_interfaces(char *list, size_t size);

/* Whether the job is to go on when one of its processes has died. */
bool mca_coll_flash_ucx_outlives(void);

/* Whether opening it writes over functions of the C library, if nothing in the process has done so. */
bool mca_coll_flash_ucx_writes_code(void);

/* In MPI_Init: finds the plugin. In MPI_Finalize: what opening UCX has left. */
void mca_coll_flash_ucx_prepare(void);
void mca_coll_flash_ucx_fini(void);

/*
 * Loads the plugin, unless it is loaded, and opens UCX; see `create` in flash_ucx.h. In one thread.
 * The process' signal handlers are afterwards those that were there before.
 */
flash_transport_t *mca_coll_flash_ucx_open(bool across_nodes, unsigned on_node,
                                           char reason[FLASH_UCX_REASON_MAX]);

/*
 * The plugin's functions; NULL before the plugin is loaded, so there as long as there is a
 * transport.
 */
const flash_ucx_calls_t *mca_coll_flash_ucx(void);

#endif /* COLL_FLASH_UCX_H */
