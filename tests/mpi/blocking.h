/*
 * blocking.h: the switch by which test programs make blocking calls in place of non-blocking ones.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BLOCKING_H
#define BLOCKING_H

#include <stdbool.h>

/*
 * Whether FLASH_TEST_BLOCKING is in the environment. Then a non-blocking collective whose
 * blocking form flash serves is that one, which returns the error; its request is MPI_REQUEST_NULL.
 */
bool calls_block(void);

#endif /* BLOCKING_H */
