/*
 * coll_flash_rounds.c: a meeting of a communicator's ranks that no rank waits for: see flash_rounds.h.
 * opal_progress() moves it on.
 *
 * The messages go by Open MPI's PML on the communicator itself, with a tag that no application and no
 * collective uses. Of one meeting a rank has one message from another rank at most: no order of messages
 * matters.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <stdlib.h>

#include "job/flash_rounds.h"

typedef struct message {
    ompi_request_t *request; /* NULL: it is over */
    char *bytes;             /* owned */
} message_t;

struct mca_coll_flash_rounds {
    ompi_communicator_t *comm;
    mca_coll_flash_meeting_t *meeting;
    int tag;
    uint32_t size, rank;
    uint32_t k; /* this round */
    message_t in, out[FLASH_MEETING_ROUNDS];
};

uint32_t mca_coll_flash_rounds_awaited(const mca_coll_flash_rounds_t *rounds)
{
    flash_round_t round = {.to = rounds->rank};

    if (flash_round_of(rounds->rank, rounds->size, rounds->k, &round)) {
        return round.from;
    }
    /* All messages have come, and the last one of this rank has not left. */
    (void) flash_round_of(rounds->rank, rounds->size, rounds->k - 1, &round);
    return round.to;
}

mca_coll_flash_rounds_t *mca_coll_flash_rounds_begin(ompi_communicator_t *comm,
                                                     mca_coll_flash_meeting_t *meeting, int tag)
{
    mca_coll_flash_rounds_t *rounds = calloc(1, sizeof(*rounds));

    if (rounds != NULL) {
        rounds->comm = comm;
        rounds->meeting = meeting;
        rounds->tag = tag;
        rounds->size = (uint32_t) ompi_comm_size(comm);
        rounds->rank = (uint32_t) ompi_comm_rank(comm);
    }
    return rounds;
}

/* Whether the message has left, or arrived; OMPI_SUCCESS, FLASH_ROUNDS_BUSY, or an error. */
static int end_message(message_t *message)
{
    if (message->request == NULL) {
        return OMPI_SUCCESS;
    }
    if (!flash_compat_is_complete(message->request)) {
        return FLASH_ROUNDS_BUSY;
    }
    return ompi_request_wait(&message->request, MPI_STATUS_IGNORE);
}

static void forget(message_t *message)
{
    free(message->bytes);
    *message = (message_t){NULL, NULL};
}

static int begin_round(mca_coll_flash_rounds_t *rounds, const flash_round_t *round)
{
    message_t *out = &rounds->out[rounds->k], *in = &rounds->in;
    size_t bytes = mca_coll_flash_meeting_bytes(rounds->meeting, round->seats);
    int rc;

    out->bytes = malloc(bytes);
    in->bytes = malloc(bytes);
    if (out->bytes == NULL || in->bytes == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    mca_coll_flash_meeting_pack(out->bytes, rounds->meeting, rounds->size, rounds->rank,
                                round->seats);
    rc = flash_compat_irecv(in->bytes, bytes, MPI_BYTE, (int) round->from, rounds->tag,
                            rounds->comm, &in->request);
    if (rc == OMPI_SUCCESS) {
        rc = flash_compat_isend(out->bytes, bytes, MPI_BYTE, (int) round->to, rounds->tag,
                                rounds->comm, &out->request);
    }
    return rc;
}

/* The round's message has arrived. */
static void end_round(mca_coll_flash_rounds_t *rounds, const flash_round_t *round)
{
    mca_coll_flash_meeting_unpack(rounds->in.bytes, rounds->meeting, rounds->size, round->from,
                                  round->seats);
    forget(&rounds->in);
    rounds->k++;
}

static int end_sends(mca_coll_flash_rounds_t *rounds)
{
    for (uint32_t k = 0; k < rounds->k; k++) {
        int rc = end_message(&rounds->out[k]);

        if (rc != OMPI_SUCCESS) {
            return rc;
        }
        forget(&rounds->out[k]);
    }
    return OMPI_SUCCESS;
}

int mca_coll_flash_rounds_advance(mca_coll_flash_rounds_t *rounds)
{
    flash_round_t round;
    int rc = OMPI_SUCCESS;

    while (rc == OMPI_SUCCESS && flash_round_of(rounds->rank, rounds->size, rounds->k, &round)) {
        if (rounds->in.bytes == NULL) {
            rc = begin_round(rounds, &round);
        }
        if (rc == OMPI_SUCCESS) {
            rc = end_message(&rounds->in);
        }
        if (rc == OMPI_SUCCESS) {
            end_round(rounds, &round);
        }
    }
    return rc == OMPI_SUCCESS ? end_sends(rounds) : rc;
}

void mca_coll_flash_rounds_free(mca_coll_flash_rounds_t *rounds)
{
    free(rounds);
}
