/*
 * odd_driver.c: a driver for the tests of what is said of drivers. What it finds is in the
 * environment: ODD_INIT, what cuInit() returns; ODD_DEVICES; ODD_VERSION; ODD_MODE, the compute
 * mode; ODD_NAME, each device's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <stdlib.h>

static int number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);

    return text == NULL ? otherwise : atoi(text);
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    (void) flags;
    return number("ODD_INIT", 0);
}

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = number("ODD_VERSION", 99000);
    return 0;
}

int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    *count = number("ODD_DEVICES", 1);
    return 0;
}

int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
    const char *text = getenv("ODD_NAME");

    (void) device;
    snprintf(name, (size_t) size, "%s", text == NULL ? "an odd device" : text);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void) device;
    *value = attribute == 20 ? number("ODD_MODE", 0) : 1; /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void) context;
    (void) device;
    return 46; /* CUDA_ERROR_DEVICE_UNAVAILABLE */
}
