/*
 * coll_flash_doubling.h: operations in rounds: what coll_flash_doubling.c, which has those under way, and
 * coll_flash_rounds.c, which moves one of them, need of each other.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_DOUBLING_H
#define COLL_FLASH_DOUBLING_H

#include "coll_flash_operation.h"

/* The request's operation, refused if params->element is 0: posts its first round. */
void mca_coll_flash_rounds_begin(mca_coll_flash_request_t *request,
                                 const flash_op_params_t *params);
/* Goes on as far as it can. True: it is at its end. */
bool mca_coll_flash_rounds_advance(mca_coll_flash_request_t *request, bool *happened);
/* Of one that is: delivers the result, if there is one, and gives its memory back. */
void mca_coll_flash_rounds_end(mca_coll_flash_request_t *request);
/*
 * What it waits for, and how often it was found to. False: for nothing, or something has happened since it
 * was asked before.
 */
bool mca_coll_flash_rounds_watch(mca_coll_flash_request_t *request, flash_silence_t *silence);
/* A round's message is complete; frees what was to receive it. */
void mca_coll_flash_rounds_note(mca_coll_flash_doubling_t *doubling, ompi_request_t *receive);

/* What Open MPI calls then, see ompi_request_set_callback(). */
int mca_coll_flash_doubling_arrival(ompi_request_t *receive);

#endif /* COLL_FLASH_DOUBLING_H */
