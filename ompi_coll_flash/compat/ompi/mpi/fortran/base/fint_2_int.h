/*
 * Open MPI's ompi/op/op.h includes a header of this name and does not install it. Searched last
 * (-idirafter), so that an installed one is used instead of this.
 *
 * op.h needs of it the conversions between Fortran INTEGER and C int. Only inline functions that
 * flash never calls for Fortran operations use them, and for numbers that fit an int.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef OMPI_FORTRAN_BASE_FINT_2_INT_H
#define OMPI_FORTRAN_BASE_FINT_2_INT_H

#include "ompi_config.h"

#define OMPI_INT_2_FINT(value) ((MPI_Fint) (value))
#define OMPI_FINT_2_INT(value) ((int) (value))

#endif /* OMPI_FORTRAN_BASE_FINT_2_INT_H */
