/*
 * coll_flash_silence.h: ranks that have fallen silent: what is said of them.
 *
 * A rank is not at fault for being late, so that silence alone ends no operation unless its user
 * says so.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_SILENCE_H
#define COLL_FLASH_SILENCE_H

#include "request/coll_flash_request.h"

/* Ranks that one watch of an algorithm's looks at. */
#define FLASH_MOST_SILENCES 128

/* What there is to say of one, copied while its request cannot end. */
typedef struct mca_coll_flash_report {
    char operation[48]; /* and its id, if it has one */
    char comm[MPI_MAX_OBJECT_NAME];
    opal_process_name_t peer;
    ompi_group_t *group; /* retained */
    bool stalled;        /* and not told so far */
    bool gives_up;       /* then */
    bool asks;           /* it is time to ask whether the process is there */
} mca_coll_flash_report_t;

/*
 * With what orders the request of silence->user, which is marked as told where `stalled` is set.
 * The shape is flash_engine_watch()'s: `reports` is an array of them.
 */
void mca_coll_flash_silence_describe(void *reports, size_t k, const flash_silence_t *silence);
/* Without it. Prints that it is stalled. */
void mca_coll_flash_silence_warn(const flash_silence_t *silence,
                                 const mca_coll_flash_report_t *report);

#endif /* COLL_FLASH_SILENCE_H */
