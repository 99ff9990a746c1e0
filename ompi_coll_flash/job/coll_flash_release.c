/*
 * coll_flash_release.c: whether all processes of the job have flash, and the same release of it.
 *
 * What releases tell each other, in messages and in the modex records, is free to change between
 * them. So each process publishes its release by itself, and asks PMIx for the releases of the
 * ranks that are 2^k away, for all k, before it exchanges anything with them. What this file
 * publishes, and the difference that messages begin with (coll_flash_meeting.c), is the same in all
 * releases.
 *
 * Nobody can wait for a process whose Open MPI has no flash, or which was told to leave it out: it
 * would never answer.
 *
 * PMIx may fail for one process and not for another. A process therefore hears of the one below
 * only if PMIx has told it that the one below has flash; otherwise it has seen a difference, which
 * all others learn from it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/flash_rounds.h"

#define MODEX_KEY   "coll_flash_release"
#define TEXT(x)     #x
#define TEXT_OF(x)  TEXT(x)
#define RELEASE_MAX 64
/* Goes up with each change to what processes tell each other, in messages and in modex records. */
#define PROTOCOL    9

/* Tests change the text in the library's file, of which the compiler is to know nothing. */
static const char *volatile own_release = "mpix_flash " TEXT_OF(FLASH_MAJOR_VERSION) "." TEXT_OF(
    FLASH_MINOR_VERSION) "." TEXT_OF(FLASH_RELEASE_VERSION) ", protocol " TEXT_OF(PROTOCOL);
static bool published; /* in MPI_Init */

const char *mca_coll_flash_release(void)
{
    return own_release;
}

void mca_coll_flash_release_publish(void)
{
    const char *text = own_release;
    int rc;

    FLASH_MODEX_SEND(rc, FLASH_MODEX_JOB, MODEX_KEY, text, strlen(text) + 1);
    published = rc == OPAL_SUCCESS;
}

/* The release of that rank, or an empty text. */
static void fetch(ompi_communicator_t *world, uint32_t rank, char text[RELEASE_MAX])
{
    opal_process_name_t name = ompi_group_get_proc_name(world->c_local_group, (int) rank);
    /* Without making it: those of this node exist. */
    ompi_proc_t *proc = ompi_group_peer_lookup_existing(world->c_local_group, (int) rank);
    bool on_node = proc != NULL && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
    void *data = NULL;
    size_t size = 0;
    int rc = flash_compat_modex_find(MODEX_KEY, &name, on_node, &data, &size);

    snprintf(text, RELEASE_MAX, "%.*s", rc == OPAL_SUCCESS ? (int) size : 0, (char *) data);
    free(data);
}

/* What PMIx tells of that rank; if it differs from this one, notes that. */
static mca_coll_flash_told_t look(ompi_communicator_t *world, uint32_t rank,
                                  mca_coll_flash_releases_t *releases)
{
    char release[RELEASE_MAX];

    fetch(world, rank, release);
    if (strcmp(release, own_release) == 0) {
        return FLASH_TOLD_SAME;
    }
    releases->differ =
        (mca_coll_flash_difference_t){.one = (uint32_t) ompi_comm_rank(world), .other = rank};
    return release[0] == '\0' ? FLASH_TOLD_NOTHING : FLASH_TOLD_OTHER;
}

int mca_coll_flash_releases_look(ompi_communicator_t *world, mca_coll_flash_releases_t *releases)
{
    uint32_t rank = (uint32_t) ompi_comm_rank(world), size = (uint32_t) ompi_comm_size(world);
    flash_round_t round;

    releases->differ = (mca_coll_flash_difference_t){FLASH_NOBODY, FLASH_NOBODY};
    if (!published) {
        return OMPI_ERR_NOT_AVAILABLE; /* the others take this process for one without flash */
    }
    for (uint32_t k = 0; flash_round_of(rank, size, k, &round); k++) {
        releases->below[k] = look(world, round.from, releases);
        releases->above[k] =
            round.to == round.from ? releases->below[k] : look(world, round.to, releases);
    }
    return OMPI_SUCCESS;
}

/*
 * By those who have no rank with flash right before them, so that not all do, and nobody asks for
 * all: Open MPI shows equal messages once.
 */
void mca_coll_flash_releases_tell(ompi_communicator_t *world, mca_coll_flash_difference_t found)
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
