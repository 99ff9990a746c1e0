/*
 * test_device_first.c: calls on the memory of devices that are the first ones of a communicator, and
 * may have to wait until it is set up: setup.sh.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"

static void first_calls(void)
{
    for (int kind = 0; kind < 6; kind++) {
        job_t job = {.form = kind % 2 == 0 ? PLAIN : IN_PLACE,
                     .count = 5000,
                     .unequal = kind < 4,
                     .gather = kind < 2,
                     .exchanges = kind >= 4,
                     .send_place = IN_DEVICE,
                     .recv_place = IN_DEVICE};

        MPI_Comm_dup(MPI_COMM_WORLD, &job.comm);
        job_run(&job);
        MPI_Comm_free(&job.comm);
    }
}

DEVICE_PROGRAM(test_device_first, {"first_calls", first_calls});
