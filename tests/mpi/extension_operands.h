/*
 * extension_operands.h: cases of test_extension, in a file of their own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef EXTENSION_OPERANDS_H
#define EXTENSION_OPERANDS_H

#include "extension.h"

/* Whether flash serves MPI_COMM_WORLD, as the test was told. */
bool extension_is_active(void);

void extension_order_of_sums(void);
void extension_user_operation(void);
void extension_user_type(void);
void extension_empty_type(void);
void extension_bottom(void);

#endif /* EXTENSION_OPERANDS_H */
