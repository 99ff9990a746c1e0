/*
 * old_driver.c: a driver that has some functions of flash's, and not all.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = 11080;
    return SUCCESS;
}

int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    *device = 0;
    return SUCCESS;
}
