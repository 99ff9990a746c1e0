/*
 * coll_flash_recdbl.h: operations by recursive doubling: what coll_flash_recdbl.c, which has those
 * under way, and coll_flash_recdbl_rounds.c, which moves one of them, need of each other.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_RECDBL_H
#define COLL_FLASH_RECDBL_H

#include "request/coll_flash_request.h"

extern const mca_coll_flash_algorithm_t mca_coll_flash_recdbl;

/* The next operation by recursive doubling, which has no number: Open MPI orders its messages. */
mca_coll_flash_ticket_t mca_coll_flash_recdbl_ticket(mca_coll_flash_module_t *module);
/* Before the ranks agree; false: there is no memory. */
bool mca_coll_flash_recdbl_open(void);
void mca_coll_flash_recdbl_close(void);

/* ---------------------------------------------------- one operation: coll_flash_recdbl_rounds.c */

/* What each message begins with; as long as what follows it is aligned. */
typedef struct mca_coll_flash_recdbl_header {
    uint64_t mark;     /* FLASH_RECDBL_MARK */
    uint32_t poisoned; /* nothing follows, by the fault of that rank */
    uint32_t failed_rank;
} mca_coll_flash_recdbl_header_t;

/*
 * Ranks that disagree about sizes may find Open MPI's own messages, where they expect one of these.
 */
#define FLASH_RECDBL_MARK UINT64_C(0x666c6173685f7264)

/* Of a request; see there. */
typedef struct mca_coll_flash_recdbl {
    flash_op_params_t params;
    struct mca_coll_flash_request *next; /* of those under way */
    bool listed;                         /* it is one of them: its message may move it on */
    int tag;
    uint32_t round;
    ompi_request_t *sending, *receiving; /* NULL: done, or Open MPI calls when it is */
    bool arrived;                        /* what the round receives, in this way: */
    int error;
    size_t length;
    char *memory; /* owned, or NULL; of `blocks`, `out` and `in` */
    char *blocks;
    mca_coll_flash_recdbl_header_t *out, *in;
    mca_coll_flash_recdbl_header_t alone;  /* what is sent where there are no blocks */
    mca_coll_flash_recdbl_header_t header; /* what the next message begins with */
    int status;
    uint32_t failed_rank;
    uint32_t watched, watches; /* what the latest watch has found, and how many found it so */
} mca_coll_flash_recdbl_t;

static inline mca_coll_flash_recdbl_t *
mca_coll_flash_recdbl_of(const mca_coll_flash_request_t *request)
{
    return request->algorithm_state;
}

/* The request's operation, refused if params->element is 0: posts its first round. */
void mca_coll_flash_recdbl_begin(mca_coll_flash_request_t *request,
                                 const flash_op_params_t *params);
/* Goes on as far as it can. True: it is at its end. */
bool mca_coll_flash_recdbl_advance(mca_coll_flash_request_t *request, bool *happened);
/* Of one that is: delivers the result, if there is one, and gives its memory back. */
void mca_coll_flash_recdbl_end(mca_coll_flash_request_t *request);
/*
 * What it waits for, and how often it was found to. False: for nothing, or something has happened
 * since it was asked before.
 */
bool mca_coll_flash_recdbl_watch(mca_coll_flash_request_t *request, flash_silence_t *silence);
/* A round's message is complete; frees what was to receive it. */
void mca_coll_flash_recdbl_note(mca_coll_flash_recdbl_t *recdbl, ompi_request_t *receive);

/* What Open MPI calls then, see ompi_request_set_callback(). */
int mca_coll_flash_recdbl_arrival(ompi_request_t *receive);

#endif /* COLL_FLASH_RECDBL_H */
