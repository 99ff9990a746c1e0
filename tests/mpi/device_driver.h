/*
 * device_driver.h: the driver of devices and its contexts, for device.c and device_standin.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef DEVICE_DRIVER_H
#define DEVICE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long address_t; /* a CUdeviceptr */

/*
 * As much of the CUDA Driver API as the tests need. What only the stand-in has is NULL with any
 * other driver.
 */
struct device_driver {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*allocate)(address_t *address, size_t size);
    int (*allocate_managed)(address_t *address, size_t size, unsigned flags);
    int (*allocate_pinned)(void **memory, size_t size, unsigned flags);
    int (*release)(address_t address);
    int (*release_pinned)(void *memory);
    int (*to_device)(address_t to, const void *from, size_t size);
    int (*from_device)(void *to, address_t from, size_t size);
    int (*device_count)(int *count);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*graph_destroy)(void *graph);
    int (*copy)(address_t to, address_t from, size_t size, void *stream);
    int (*streams)(void);
    int (*pinned)(void);
    size_t (*largest_pinned)(void);
    int (*retained)(void);
    int (*pushed)(void);
    int (*registered)(void);
    int (*on_device)(void);
    void *(*reach)(uintptr_t address, size_t size);
    bool (*is_alone)(uintptr_t address);
    void *(*current)(void);
    void (*wait_for_all)(void);
    void (*lag)(unsigned milliseconds);
    unsigned long (*launches)(void);
    void (*fail)(const char *name, unsigned long nth);
    void (*exempt)(bool exempt);
    bool (*broken)(void);
    int (*events)(void);
    unsigned long (*made)(void);
};
extern struct device_driver device_driver; /* from device_open() on */

/* What an error of the device has broken refuses all that comes, until device_fail(NULL). */
void device_must(int result, const char *what);

/* From now on the stand-in lets none of this thread's calls fail, or it does again. */
void device_exempt(bool from_now_on);
/* The thread has a context here, and none in MPI: flash is to bring its own. */
void device_enter_exempt(void);
void device_leave_exempt(void);
/* Makes the last device's context the current one, until device_leave(). */
void device_enter_other(void);

#endif /* DEVICE_DRIVER_H */
