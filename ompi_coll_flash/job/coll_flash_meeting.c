/*
 * coll_flash_meeting.c: what the ranks of MPI_COMM_WORLD tell each other in MPI_Init.
 *
 * In each round (flash_rounds.h) a rank sends all that it knows, and receives what another one knows: a
 * difference of releases, the smallest of each value, and the seats of the ranks below it.
 *
 * A message begins with the difference, which has the same form in all releases. A rank that knows
 * of one sends nothing else: what follows depends on the release.
 *
 * A rank always sends, even if PMIx has told it nothing of the receiver, because that one may wait.
 * It receives if PMIx has told it that the sender has flash; if not, it has seen a difference. Where
 * there is one, a message may be for a process that never looks: it stays in memory, and has a tag that
 * Open MPI's own messages have not. A rank of another release looks for a tag that these may have; a
 * message has that one only if PMIx has told of such a receiver.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <stdlib.h>
#include <string.h>

#include "job/flash_rounds.h"

typedef mca_coll_flash_difference_t difference_t;

/* Calls of opal_progress() that a message may take to leave, if its receiver may never look for it. */
enum { POLLS = 100000 };

typedef struct sent {
    ompi_request_t *request;
    char *message; /* owned */
} sent_t;

static bool is_difference(difference_t found)
{
    return found.one != FLASH_NOBODY;
}

static size_t seat_bytes(const mca_coll_flash_meeting_t *meeting)
{
    return meeting->words * sizeof(*meeting->seats);
}

size_t mca_coll_flash_meeting_bytes(const mca_coll_flash_meeting_t *meeting, uint32_t seats)
{
    return meeting->values * sizeof(*meeting->least) + seats * seat_bytes(meeting);
}

/* The length of a message with so many seats. */
static size_t message_bytes(const mca_coll_flash_meeting_t *meeting, uint32_t seats)
{
    return sizeof(difference_t) + mca_coll_flash_meeting_bytes(meeting, seats);
}

/* The seat of the rank that is so far below that one. */
static uint32_t *seat_below(const mca_coll_flash_meeting_t *meeting, uint32_t size, uint32_t rank,
                            uint32_t below)
{
    return meeting->seats + (size_t) ((rank + size - below) % size) * meeting->words;
}

void mca_coll_flash_meeting_pack(char *message, const mca_coll_flash_meeting_t *meeting,
                                 uint32_t size, uint32_t rank, uint32_t seats)
{
    memcpy(message, meeting->least, meeting->values * sizeof(*meeting->least));
    message += meeting->values * sizeof(*meeting->least);
    for (uint32_t k = 0; k < seats; k++, message += seat_bytes(meeting)) {
        memcpy(message, seat_below(meeting, size, rank, k), seat_bytes(meeting));
    }
}

void mca_coll_flash_meeting_unpack(const char *message, const mca_coll_flash_meeting_t *meeting,
                                   uint32_t size, uint32_t from, uint32_t seats)
{
    int64_t value;

    for (size_t k = 0; k < meeting->values; k++, message += sizeof(value)) {
        memcpy(&value, message, sizeof(value));
        meeting->least[k] = value < meeting->least[k] ? value : meeting->least[k];
    }
    for (uint32_t k = 0; k < seats; k++, message += seat_bytes(meeting)) {
        memcpy(seat_below(meeting, size, from, k), message, seat_bytes(meeting));
    }
}

static int send_to(ompi_communicator_t *world, uint32_t to, mca_coll_flash_told_t told,
                   const mca_coll_flash_meeting_t *meeting, difference_t found, uint32_t seats,
                   sent_t *sent)
{
    int tag = told == FLASH_TOLD_OTHER ? FLASH_TAG_OTHER_RELEASES : FLASH_TAG_MEETING;
    size_t bytes = message_bytes(meeting, seats);

    sent->message = malloc(bytes);
    if (sent->message == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    memcpy(sent->message, &found, sizeof(found));
    mca_coll_flash_meeting_pack(sent->message + sizeof(found), meeting,
                                (uint32_t) ompi_comm_size(world), (uint32_t) ompi_comm_rank(world),
                                seats);
    return flash_compat_isend(sent->message, is_difference(found) ? sizeof(found) : bytes, MPI_BYTE,
                              (int) to, tag, world, &sent->request);
}

/* A message of another length is of another protocol, whatever PMIx says of its sender. */
static difference_t take(const char *message, size_t length, size_t bytes, difference_t unknown)
{
    difference_t heard = unknown;

    if (length == bytes || length == sizeof(heard)) {
        memcpy(&heard, message, sizeof(heard));
    }
    return length != bytes && !is_difference(heard) ? unknown : heard;
}

static int await(ompi_request_t **request, ompi_status_public_t *status)
{
    mca_coll_flash_patience_t patience = {0, 0};

    while (!flash_compat_is_complete(*request)) {
        mca_coll_flash_be_patient(&patience);
    }
    return ompi_request_wait(request, status);
}

/*
 * The tag of that rank's message, once it is known. PMIx may have told a rank of another release nothing
 * of this one.
 */
static int find_tag(ompi_communicator_t *world, uint32_t from, mca_coll_flash_told_t told, int *tag)
{
    static const int tags[] = {FLASH_TAG_MEETING, FLASH_TAG_OTHER_RELEASES};
    mca_coll_flash_patience_t patience = {0, 0};
    bool found = told == FLASH_TOLD_SAME;
    int rc = OMPI_SUCCESS;

    *tag = FLASH_TAG_MEETING;
    for (int turn = 0; rc == OMPI_SUCCESS && !found; turn++) {
        *tag = tags[turn % 2];
        rc = flash_compat_iprobe((int) from, *tag, world, &found);
        if (!found) {
            mca_coll_flash_be_patient(&patience);
        }
    }
    return rc;
}

static int receive_from(ompi_communicator_t *world, uint32_t from, mca_coll_flash_told_t told,
                        const mca_coll_flash_meeting_t *meeting, uint32_t seats,
                        difference_t *found)
{
    difference_t unknown = {(uint32_t) ompi_comm_rank(world), from}, heard;
    size_t bytes = message_bytes(meeting, seats);
    ompi_request_t *request = MPI_REQUEST_NULL;
    ompi_status_public_t status;
    char *message = malloc(bytes);
    int tag, rc;

    if (message == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = find_tag(world, from, told, &tag);
    if (rc == OMPI_SUCCESS) {
        rc = flash_compat_irecv(message, bytes, MPI_BYTE, (int) from, tag, world, &request);
    }
    if (rc == OMPI_SUCCESS) {
        rc = await(&request, &status);
    }
    if (rc == MPI_ERR_TRUNCATE) { /* longer than this protocol's: the other ranks must hear of it */
        (void) ompi_request_free(&request); /* Open MPI keeps what ended with an error */
        *found = unknown;
        rc = OMPI_SUCCESS;
    } else if (rc == OMPI_SUCCESS) {
        heard = take(message, status._ucount, bytes, unknown);
        if (is_difference(heard)) {
            *found = heard;
        } else {
            mca_coll_flash_meeting_unpack(message + sizeof(heard), meeting,
                                          (uint32_t) ompi_comm_size(world), from, seats);
        }
    }
    free(message);
    return rc;
}

static bool has_left(const sent_t *sent)
{
    return sent->request == NULL || flash_compat_is_complete(sent->request);
}

/*
 * A receiver in MPI_Init may need this process to send the rest of a long message, and the program
 * may not call MPI for a long time.
 */
static void let_leave(const sent_t *sent, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        for (int poll = 0; poll < POLLS && !has_left(&sent[k]); poll++) {
            opal_progress();
        }
    }
}

static char *left[FLASH_MEETING_ROUNDS]; /* messages that stay, where tools find them */

/* `all_receive`: no rank knows of a difference, so that each message has a receiver. */
static void end_sends(sent_t *sent, uint32_t count, bool all_receive)
{
    if (!all_receive) {
        let_leave(sent, count);
    }
    for (uint32_t k = 0; k < count; k++) {
        if (!all_receive && !has_left(&sent[k])) {
            ompi_request_free(&sent[k].request);
            left[k] = sent[k].message;
            continue;
        }
        if (sent[k].request != NULL) {
            (void) await(&sent[k].request, MPI_STATUS_IGNORE);
        }
        free(sent[k].message);
    }
}

int mca_coll_flash_meet(ompi_communicator_t *world, mca_coll_flash_releases_t *releases,
                        mca_coll_flash_meeting_t *meeting)
{
    uint32_t rank = (uint32_t) ompi_comm_rank(world), size = (uint32_t) ompi_comm_size(world);
    sent_t sent[FLASH_MEETING_ROUNDS] = {{NULL, NULL}};
    flash_round_t round;
    uint32_t k = 0;
    int rc = OMPI_SUCCESS;

    /* Else Open MPI looks for new connections every 10 ms. */
    opal_progress_event_users_increment();
    for (; rc == OMPI_SUCCESS && flash_round_of(rank, size, k, &round); k++) {
        rc = send_to(world, round.to, releases->above[k], meeting, releases->differ, round.seats,
                     &sent[k]);
        if (rc == OMPI_SUCCESS && releases->below[k] != FLASH_TOLD_NOTHING) {
            rc = receive_from(world, round.from, releases->below[k], meeting, round.seats,
                              &releases->differ);
        }
    }
    end_sends(sent, k, rc == OMPI_SUCCESS && !is_difference(releases->differ));
    opal_progress_event_users_decrement();
    return rc;
}
