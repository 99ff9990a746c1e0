/*
 * coll_flash_persistent.h: what the files about persistent requests share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_PERSISTENT_H
#define COLL_FLASH_PERSISTENT_H

#include "calls/coll_flash_bounce.h"
#include "calls/coll_flash_kept.h"
#include "calls/coll_flash_shared.h"
#include "calls/flash_fallback.h"

typedef struct mca_coll_flash_persistent {
    mca_coll_flash_handle_t handle;
    mca_coll_flash_module_t *module;    /* with its communicator, kept */
    uint32_t sequence;                  /* of each of its rounds; 0: it has none */
    bool failed;                        /* a round by the ring has */
    bool out_of_step;                   /* `beside`: it has missed a round */
    mca_coll_flash_settings_t settings; /* of each round: ranks start it at times of their own */
    int refused;                        /* MPI_SUCCESS, or why the rest of its rounds will be */
    const mca_coll_flash_collective_t *collective;
    mca_coll_flash_arguments_t arguments; /* types and operation kept */
    flash_count_t *arrays;                /* owned, what the arguments point to */
    ompi_request_t *below;                /* owned: started instead of a ring; or NULL */
    ompi_request_t *beside;               /* owned: started with each ring; or NULL */
    bool beside_moves_nothing;            /* though it has a root, see flash_fallback_t */
    flash_count_t *kept;                  /* owned: counts of `beside` */
    flash_host_bounce_t *bounce;          /* owned: what `below` is of */
} mca_coll_flash_persistent_t;

OBJ_CLASS_DECLARATION(mca_coll_flash_persistent_t);

/* Of calls whose path is known: requests by the ring, which take an operation id on all ranks, and by
   the module below. */
int mca_coll_flash_persist_ring(const mca_coll_flash_collective_t *collective,
                                mca_coll_flash_module_t *module,
                                const mca_coll_flash_arguments_t *arguments,
                                ompi_request_t **request);
int mca_coll_flash_persist_below(const mca_coll_flash_collective_t *collective,
                                 mca_coll_flash_module_t *module,
                                 const mca_coll_flash_arguments_t *arguments,
                                 struct ompi_info_t *info, ompi_request_t **request);
/* A round is at its end. */
void mca_coll_flash_complete_round(ompi_request_t *request, int error);

/* coll_flash_shared_persistent.c */
/* What stands for the parts of a round, where there are two; else, or without memory, NULL. */
flash_fallback_t *mca_coll_flash_beside_new(mca_coll_flash_persistent_t *persistent);
/* Starts `beside`; `ring`: the other part, which was started with that outcome. */
void mca_coll_flash_beside_start(mca_coll_flash_persistent_t *persistent, flash_fallback_t *both,
                                 ompi_request_t *ring, int error);

#endif /* COLL_FLASH_PERSISTENT_H */
