/*
 * device_standin.c: what the stand-in for the driver is told, and what it tells: see device.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device.h"
#include "device_driver.h"

int device_events(void)
{
    return device_driver.events == NULL ? 0 : device_driver.events();
}

unsigned long device_made(void)
{
    return device_driver.made == NULL ? 0 : device_driver.made();
}

void device_fail(const char *name, unsigned long nth)
{
    device_must(device_driver.fail == NULL, "standin_fail");
    device_driver.fail(name, nth);
}

int device_streams(void)
{
    return device_driver.streams == NULL ? 0 : device_driver.streams();
}

int device_pinned(void)
{
    return device_driver.pinned == NULL ? 0 : device_driver.pinned();
}

size_t device_largest_pinned(void)
{
    return device_driver.largest_pinned == NULL ? 0 : device_driver.largest_pinned();
}

bool device_is_broken(void)
{
    return device_driver.broken != NULL && device_driver.broken();
}

bool device_is_standin(void)
{
    return device_driver.launches != NULL;
}

int device_registered(void)
{
    return device_driver.registered == NULL ? 0 : device_driver.registered();
}

int device_on_device(void)
{
    return device_driver.on_device == NULL ? 0 : device_driver.on_device();
}

void device_drain(void)
{
    if (device_driver.wait_for_all != NULL) {
        device_driver.wait_for_all();
    }
}

void device_lag(unsigned milliseconds)
{
    if (device_driver.lag != NULL) {
        device_driver.lag(milliseconds);
    }
}

void device_skip_kind(void)
{
    buffer_t skipped = buffer_make(IN_DEVICE, 1);

    buffer_free(&skipped);
}

void *device_reach(const void *address, size_t size)
{
    return device_driver.reach == NULL ? NULL : device_driver.reach((uintptr_t) address, size);
}

bool device_is_alone(const void *address)
{
    return device_driver.is_alone != NULL && device_driver.is_alone((uintptr_t) address);
}

bool device_has_context(void)
{
    return device_driver.current != NULL && device_driver.current() != NULL;
}

unsigned long device_launches(void)
{
    return device_driver.launches == NULL ? 0 : device_driver.launches();
}

int device_retained(void)
{
    return device_driver.retained == NULL ? 0 : device_driver.retained();
}

int device_pushed(void)
{
    return device_driver.pushed == NULL ? 0 : device_driver.pushed();
}
