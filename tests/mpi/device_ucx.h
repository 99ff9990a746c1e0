/*
 * device_ucx.h: see device_ucx.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef DEVICE_UCX_H
#define DEVICE_UCX_H

#include <stdbool.h>

/* Whether it is so on this rank. */
bool device_ucx_is_for_cuda(void);
/* Messages of devices' memory so far. */
unsigned long device_ucx_carried(void);

#endif /* DEVICE_UCX_H */
