/*
 * coll_flash_shared.h: calls that flash shares with the fallback: some of the blocks go by the ring's
 * exchange, the rest by a call of the module below.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_SHARED_H
#define COLL_FLASH_SHARED_H

#include "calls/coll_flash_calls.h"

/*
 * Starts a call that goes by the ring's exchange. `setup`: the state of the communicator's set-up, as of
 * mca_coll_flash_choose_path(); pending, the call is held; refused, it falls back, out of libnbc's turn.
 */
int mca_coll_flash_start_by_ring(const mca_coll_flash_collective_t *collective, const char *name,
                                 mca_coll_flash_module_t *module,
                                 mca_coll_flash_arguments_t *arguments,
                                 mca_coll_flash_setup_state_t setup, ompi_request_t **request);
/*
 * Starts both parts of a call: the ring's part as mca_coll_flash_start_by_ring() does, and the rest by the
 * module below. *request ends when both parts have. Each rank gives the module below its rest, which may
 * be empty: all ranks have called that module then.
 */
int mca_coll_flash_start_shared(const mca_coll_flash_collective_t *collective, const char *name,
                                mca_coll_flash_module_t *module,
                                mca_coll_flash_arguments_t *by_ring,
                                const mca_coll_flash_arguments_t *rest,
                                mca_coll_flash_setup_state_t setup, ompi_request_t **request);

/* Whether the rest has a root, and no data on this rank: if a process has gone, it may wait without need. */
bool mca_coll_flash_moves_nothing(const mca_coll_flash_module_t *module,
                                  const mca_coll_flash_arguments_t *rest);

/* mca_coll_flash_make_persistent(), of a call whose path is known: FLASH_RING or FLASH_FALLBACK. For the
   former, the caller has found an operation id for it. */
int mca_coll_flash_persist(const mca_coll_flash_collective_t *collective,
                           mca_coll_flash_module_t *module, mca_coll_flash_path_t path,
                           const mca_coll_flash_arguments_t *arguments, struct ompi_info_t *info,
                           ompi_request_t **request);
/* A request of a shared call, each of whose rounds starts both parts. */
int mca_coll_flash_persist_shared(const mca_coll_flash_collective_t *collective,
                                  mca_coll_flash_module_t *module,
                                  const mca_coll_flash_arguments_t *by_ring,
                                  const mca_coll_flash_arguments_t *rest, struct ompi_info_t *info,
                                  ompi_request_t **request);
/* On a rank that has no block for the ring: the module below makes the request of the whole call. The
   rank takes the operation id all the same, as the other ranks do. */
int mca_coll_flash_persist_aside(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 const mca_coll_flash_arguments_t *arguments,
                                 struct ompi_info_t *info, ompi_request_t **request);

#endif /* COLL_FLASH_SHARED_H */
