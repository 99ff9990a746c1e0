/*
 * settings.h: what a point sets, NAME=VALUE for each, for points.c.
 *
 * A setting FLASH_TEST_* is a variable of the environment while the point runs. Any other one is a
 * parameter coll_flash_NAME that has an info key: the key is set on MPI_COMM_WORLD, and on each
 * communicator that the point makes by MPI_Comm_dup, MPI_Comm_dup_with_info or MPI_Comm_split, and
 * the parameter's variable of the environment, too, since the programs look there for what holds.
 * Each point begins with the keys that the job began with.
 *
 * Of what MPI has besides to make a communicator, this sees nothing: programs call
 * settings_inherit() behind it. In MPI_Comm_idup there is no moment for the keys: Open MPI 4.1 has
 * no MPI_Comm_idup_with_info, and the communicator is there only when the request is complete.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>

#include <mpi.h>

/* Once in a job: notes the keys of MPI_COMM_WORLD; and frees what it noted. */
void settings_begin(void);
void settings_end(void);

/* Around a point, on all ranks; `settings` ends with NULL. */
void settings_apply(char *const settings[]);
void settings_take_back(char *const settings[]);
/* Their part in the environment alone: puts it there, or takes it away. */
void settings_export(char *const settings[], bool on);

/*
 * Gives a communicator that the program has made the point's keys; none in a job of its own.
 * Collective.
 */
void settings_inherit(MPI_Comm comm);

#endif /* SETTINGS_H */
