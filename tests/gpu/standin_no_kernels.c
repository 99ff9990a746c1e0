/*
 * standin_no_kernels.c: instead of standin_kernels.cc, where the toolkit's headers are not there.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

const standin_kernel_t *standin_find_kernel(const char *name)
{
    (void) name;
    return NULL;
}
