/*
 * standin.h: what the two files of the stand-in for CUDA's driver share.
 *
 * As much of the driver's interface as flash and its tests need, written from the documentation of
 * the CUDA Driver API; the numbers are its own. "Device" memory is mapped without access: the host
 * that touches it dies, and only copies reach what it holds. Every other allocation belongs to no
 * context, as those of pools do. Streams run in a thread of their own, in random turns. A copy to a
 * device from ordinary memory may end later, on the default stream. Kernels are flash's, compiled
 * for the host. There are two devices. What the documentation forbids ends the process.
 *
 * Written for flash's tests: what they need no driver would offer, and they call by these names.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    CAPTURE_UNSUPPORTED = 900,
    UNKNOWN = 999
};

/* For tests: the nth call of that function fails, or of `copy`, the nth copy, when it runs. */
void standin_fail(const char *name, unsigned long nth);
/* But not of those that the calling thread makes while it is exempt, as the tests are. */
void standin_exempt(bool exempt);
/* Whether it is this call's turn to fail. Any thread. */
bool standin_fails(const char *name);
bool standin_is_exempt(void);
/* The calling thread's context; NULL: it has none. */
void *standin_context(void);
/* Ends the process if the calling thread is in a callback: none of the functions may be called. */
void standin_not_in_callback(const char *name);
/* Until no stream holds anything: what makes and frees memory waits for callbacks, too. */
void standin_wait_for_all(void);
/* Where the driver itself reaches memory, of a device or not; NULL if it ends before `size`. */
void *standin_reach(uintptr_t address, size_t size);
/* Where a kernel does, which knows no memory but the driver's. */
void *standin_reach_far(uintptr_t address, size_t size);
/* The same of memory that the processor cannot reach. */
void *standin_reach_device(uintptr_t address, size_t size);
/* Frees memory of a device. */
int standin_release(uintptr_t address);

/* Has a function run in a stream, as a kernel; `arg` is free()d after it. A result of the driver's.
 */
int standin_compute(void *stream, int (*function)(void *arg), void *arg);

/* What thread `first` of `stride` does in a kernel. */
typedef void standin_kernel_fn(const void *in, const void *inout, void *out, size_t count,
                               size_t first, size_t stride);
typedef struct standin_kernel {
    const char *name;
    standin_kernel_fn *run;
    size_t element;
    /* Of those with other arguments: instead of all this. A result of the driver's. */
    int (*launch)(const char *name, void *stream, void **arguments);
} standin_kernel_t;
/* By its name; NULL: there is none. */
const standin_kernel_t *standin_find_kernel(const char *name);
const standin_kernel_t *standin_find_layer_kernel(const char *name); /* of the benchmarks' */

/* For tests: how many there are that nobody has freed, and contexts pushed by this thread. */
int standin_streams(void);
int standin_pinned(void);
int standin_registered(void); /* of the host's own memory, now pinned */
/* Bytes of the largest piece of pinned memory that was made since it was asked for last. */
size_t standin_largest_pinned(void);
int standin_on_device(void);
int standin_retained(void);
unsigned long standin_launches(void); /* of kernels, ever */
int standin_pushed(void);

#ifdef __cplusplus
}
#endif

#endif /* STANDIN_H */
