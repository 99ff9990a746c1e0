/*
 * fault_endpoints.h: what becomes of flash's endpoints: see FLASH_TEST_ENDPOINTS in faults.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FAULT_ENDPOINTS_H
#define FAULT_ENDPOINTS_H

#include <stdbool.h>

/* Of flash's, which one thread at a time makes. */
extern int fault_endpoints_made;

/* Whether that is in flash's library or plugin. Open MPI and UCX call the same functions. */
bool fault_is_flash(const void *caller);

#endif /* FAULT_ENDPOINTS_H */
