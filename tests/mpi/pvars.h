/*
 * pvars.h: flash's performance variables, as a tool reads them (MPI 3.1, section 14.3).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PVARS_H
#define PVARS_H

#include <mpi.h>

/*
 * Calls `run` with the tool interface open; the functions below are for it. Within MPI: Open MPI
 * 4.1 does not survive an MPI_T_finalize() that comes after MPI_Finalize().
 */
void pvars_with(void (*run)(void));

/* Of the variable of that name, which is read-only, continuous, and of that class and type. */
MPI_T_pvar_handle pvar_of(const char *name, int class, MPI_Datatype type);
void pvar_free(MPI_T_pvar_handle *handle);

/* A counter's, since its handle was made. */
unsigned long long pvar_count(MPI_T_pvar_handle handle);
double pvar_seconds(MPI_T_pvar_handle handle);

#endif /* PVARS_H */
