/*
 * coll_flash_release.c: whether all processes of the job have flash, and the same release of it.
 *
 * What releases tell each other, in messages and in the modex records, is free to change between
 * them. So each process publishes its release by itself, and nothing else is exchanged before all
 * processes know that theirs are equal. What this file publishes and sends is the same in all
 * releases.
 *
 * Nobody can wait for a process whose Open MPI has no flash, or which was told to leave it out: it
 * would never answer. Each process first asks PMIx for the releases of the ranks that are 2^k away,
 * for all k. Then, in round k, it tells the one 2^k above it whether it knows of a difference, and
 * hears the same from the one below if that has flash. After log2(N) rounds all have heard: whom
 * the path through a process without flash would have reached, has seen that there is none.
 *
 * PMIx may fail for one process and not for another. A process therefore always sends to the one
 * above, even if PMIx has told it nothing of that process, because that process may wait for it. A
 * process receives from the one below only if PMIx has told it that the one below has flash;
 * otherwise it has seen a difference, which all others learn from it. A message that nobody
 * receives is under a tag of its own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEX_KEY   "coll_flash_release"
#define TEXT(x)     #x
#define TEXT_OF(x)  TEXT(x)
#define RELEASE_MAX 64
#define NOBODY      UINT32_MAX
#define ROUNDS      31 /* ranks are not negative */

/* Tests change the text in the library's file, of which the compiler is to know nothing. */
static const char *volatile own_release = "mpix_flash " TEXT_OF(FLASH_MAJOR_VERSION) "." TEXT_OF(
    FLASH_MINOR_VERSION) "." TEXT_OF(FLASH_RELEASE_VERSION);
static bool published; /* in MPI_Init */

/* Two ranks of MPI_COMM_WORLD that differ, or NOBODY. */
typedef struct difference {
    uint32_t one, other;
} difference_t;

void mca_coll_flash_release_publish(void)
{
    const char *text = own_release;
    int rc;

    FLASH_MODEX_SEND(rc, MODEX_KEY, text, strlen(text) + 1);
    published = rc == OPAL_SUCCESS;
}

/* The release of that rank, or an empty text. */
static void fetch(ompi_communicator_t *world, uint32_t rank, char text[RELEASE_MAX])
{
    opal_process_name_t name = ompi_group_get_proc_name(world->c_local_group, (int) rank);
    void *data = NULL;
    size_t size = 0;
    int rc;

    FLASH_MODEX_FIND(rc, MODEX_KEY, &name, &data, &size);
    snprintf(text, RELEASE_MAX, "%.*s", rc == OPAL_SUCCESS ? (int) size : 0, (char *) data);
    free(data);
}

/* Whether that rank has flash; and if it differs from this one, notes that. */
static bool look(ompi_communicator_t *world, uint32_t rank, difference_t *found)
{
    char release[RELEASE_MAX];

    fetch(world, rank, release);
    if (strcmp(release, own_release) != 0) {
        *found = (difference_t){.one = (uint32_t) ompi_comm_rank(world), .other = rank};
    }
    return release[0] != '\0';
}

/* The round in which the ranks are 2^round away. */
static int exchange(ompi_communicator_t *world, uint32_t round, bool hears, difference_t *found)
{
    static difference_t
        told[ROUNDS]; /* may be sent after MPI_Init, to a process that does not look */
    uint32_t rank = (uint32_t) ompi_comm_rank(world), size = (uint32_t) ompi_comm_size(world);
    uint32_t distance = UINT32_C(1) << round;
    difference_t heard = {NOBODY, NOBODY};
    ompi_request_t *sends = MPI_REQUEST_NULL, *receives = MPI_REQUEST_NULL;
    int rc, waited = OMPI_SUCCESS;

    told[round] = *found;
    rc = flash_compat_isend(&told[round], 2, MPI_UINT32_T, (int) ((rank + distance) % size), world,
                            &sends);
    if (rc == OMPI_SUCCESS) {
        ompi_request_free(&sends);
    }
    if (hears) {
        waited = flash_compat_irecv(&heard, 2, MPI_UINT32_T,
                                    (int) ((rank + size - distance) % size), world, &receives);
    }
    if (receives != MPI_REQUEST_NULL) {
        waited = ompi_request_wait(&receives, MPI_STATUS_IGNORE);
    }
    if (heard.one != NOBODY) {
        *found = heard;
    }
    return rc == OMPI_SUCCESS ? waited : rc;
}

/*
 * By those who have no rank with flash right before them, so that not all do, and nobody asks for
 * all: Open MPI shows equal messages once.
 */
static void tell(ompi_communicator_t *world, difference_t found)
{
    uint32_t rank = (uint32_t) ompi_comm_rank(world);
    char one[RELEASE_MAX] = "", other[RELEASE_MAX];

    if (rank > 0) {
        fetch(world, rank - 1, one);
    }
    if (one[0] != '\0') {
        return;
    }
    fetch(world, found.one, one);
    fetch(world, found.other, other);
    if (strcmp(one, other) == 0) {
        snprintf(other, sizeof(other), "PMIx did not tell rank %u", (unsigned) found.one);
    } else if (other[0] == '\0') {
        snprintf(other, sizeof(other), "none that PMIx tells of");
    }
    FLASH_HELP("releases-differ", (int) found.one, one, (int) found.other, other);
}

int mca_coll_flash_release_agree(ompi_communicator_t *world)
{
    uint32_t rank = (uint32_t) ompi_comm_rank(world), size = (uint32_t) ompi_comm_size(world);
    difference_t found = {NOBODY, NOBODY};
    bool hears[ROUNDS];
    uint32_t rounds = 0;
    int rc = OMPI_SUCCESS;

    if (!published) {
        return OMPI_ERR_NOT_AVAILABLE; /* the others take this process for one without flash */
    }
    for (uint32_t distance = 1; distance < size; distance *= 2) {
        hears[rounds++] = look(world, (rank + size - distance) % size, &found);
        (void) look(world, (rank + distance) % size, &found);
    }
    for (uint32_t round = 0; round < rounds && rc == OMPI_SUCCESS; round++) {
        rc = exchange(world, round, hears[round], &found);
    }
    if (rc == OMPI_SUCCESS && found.one != NOBODY) {
        tell(world, found);
        rc = OMPI_ERR_NOT_AVAILABLE;
    }
    return rc;
}
