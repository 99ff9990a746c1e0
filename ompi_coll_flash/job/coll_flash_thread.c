/*
 * coll_flash_thread.c: the progress thread: where it may run, and starting it there.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_modex.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int hardware_thread; /* for the progress thread; -1: any. Written before that is started */

/* The bindings of this node's ranks in the order of their ranks; *self is this one's place. */
static char (*local_bindings(int *count, int *self))[FLASH_AFFINITY_MAX]
{
    int size = ompi_comm_size(MPI_COMM_WORLD), rank = ompi_comm_rank(MPI_COMM_WORLD);
    char(*bindings)[FLASH_AFFINITY_MAX] = NULL, (*longer)[FLASH_AFFINITY_MAX];

    *count = 0;
    for (int peer = 0; peer < size; peer++) {
        /* Does not make the structures of remote processes: those of this node exist. */
        ompi_proc_t *proc = ompi_group_peer_lookup_existing(MPI_COMM_WORLD->c_local_group, peer);
        mca_coll_flash_place_t *place;

        if (proc == NULL || (peer != rank && !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags))) {
            continue;
        }
        place = mca_coll_flash_place_fetch(proc->super.proc_name);
        longer = realloc(bindings, sizeof(*bindings) * (size_t) (*count + 1));
        if (place == NULL || longer == NULL) {
            free(place);
            free(longer != NULL ? longer : bindings);
            return NULL;
        }
        bindings = longer;
        memcpy(bindings[*count], place->binding, FLASH_AFFINITY_MAX);
        free(place);
        *self = peer == rank ? *count : *self;
        (*count)++;
    }
    return bindings;
}

static int choose_hardware_thread(void)
{
    char own[FLASH_AFFINITY_MAX], (*bindings)[FLASH_AFFINITY_MAX];
    int count, self = 0, chosen = -1;

    flash_affinity_binding(own);
    if (!mca_coll_flash_params.bind || own[0] == '\0') {
        return -1;
    }
    bindings = local_bindings(&count, &self);
    if (bindings != NULL) {
        chosen = flash_affinity_choose(bindings, count, self);
    }
    free(bindings);
    return chosen;
}

static void place_thread(void *arg)
{
    (void) arg;
    if (hardware_thread >= 0 && !flash_affinity_bind(hardware_thread)) {
        FLASH_VERBOSE(1, "coll:flash: cannot bind the progress thread to hardware thread %d",
                      hardware_thread);
    }
}

void mca_coll_flash_thread_start(flash_progress_t *progress)
{
    const char *why;
    int rc;

    hardware_thread = choose_hardware_thread();
    rc = flash_progress_start_thread(progress, place_thread, NULL);
    if (rc == FLASH_OK) {
        FLASH_VERBOSE(1, "coll:flash: progress thread started, hardware thread %d (-1: unbound)",
                      hardware_thread);
        return;
    }
    why = rc == FLASH_ERR_TRANSPORT ? "UCX was built without support for threads"
                                    : "the system refused to start a thread";
    if (mca_coll_flash_params.progress == FLASH_PROGRESS_ON) {
        FLASH_HELP("no-progress-thread", opal_process_info.nodename, (int) getpid(), why);
    } else {
        FLASH_VERBOSE(1, "coll:flash: no progress thread, data moves only inside MPI calls: %s",
                      why);
    }
}
