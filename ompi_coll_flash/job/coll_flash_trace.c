/*
 * coll_flash_trace.c: each process' file for the timeline (coll_flash_trace).
 *
 * Opened in MPI_Init, so that a name that cannot be written is known before the job runs; written
 * in MPI_Finalize, by one thread.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct {
    flash_trace_t *trace;
    FILE *file;
    char path[4096];
} output;

static void tell(const char *what, const char *reason)
{
    FLASH_HELP("no-trace", what, opal_process_info.nodename, (int) getpid(), output.path, reason);
}

/* Those of the first job by their ranks alone; those it spawns by their jobs' numbers, too. */
static void name_file(const char *prefix)
{
    unsigned job = flash_compat_job_number(), rank = (unsigned) OPAL_PROC_MY_NAME.vpid;

    if (job > 1) {
        snprintf(output.path, sizeof(output.path), "%s.job%u.%u.json", prefix, job, rank);
    } else {
        snprintf(output.path, sizeof(output.path), "%s.%u.json", prefix, rank);
    }
}

flash_trace_t *mca_coll_flash_trace_open(void)
{
    const char *prefix = mca_coll_flash_params.trace;

    if (prefix == NULL || prefix[0] == '\0') {
        return NULL;
    }
    name_file(prefix);
    output.file = fopen(output.path, "we");
    if (output.file == NULL) {
        tell("opened", strerror(errno));
        return NULL;
    }
    output.trace = flash_trace_create();
    if (output.trace == NULL) {
        tell("kept", strerror(ENOMEM));
        fclose(output.file);
        return NULL;
    }
    return output.trace;
}

void mca_coll_flash_trace_close(void)
{
    char title[256];
    bool failed;

    if (output.trace == NULL) {
        return;
    }
    snprintf(title, sizeof(title), "rank %u on %s", (unsigned) OPAL_PROC_MY_NAME.vpid,
             opal_process_info.nodename);
    errno = 0;
    flash_trace_write(output.trace, output.file, (int) OPAL_PROC_MY_NAME.vpid, title);
    failed = ferror(output.file) != 0;
    failed |= fclose(output.file) != 0;
    if (failed) {
        tell("written", strerror(errno != 0 ? errno : EIO));
    }
    FLASH_VERBOSE(1, "coll:flash: %llu spans of the trace in %s, %llu had no room",
                  (unsigned long long) flash_trace_count(output.trace), output.path,
                  (unsigned long long) flash_trace_missing(output.trace));
    flash_trace_destroy(output.trace);
    output.trace = NULL;
}
