/*
 * standin.h: what the files of the stand-in for CUDA's driver share, and what it offers to tests.
 *
 * As much of the driver's interface as flash and its tests need, written from the documentation of
 * the CUDA Driver API; the numbers are its own. Where the documentation leaves the driver a choice,
 * the stand-in takes the one that a program is less prepared for:
 *   memory    "device" memory is mapped without access: a host that touches it dies. Every other
 *             allocation belongs to no context and takes no attribute, as those of pools do
 *   streams   one thread runs them in random turns. The legacy default stream waits for all
 *             blocking streams of its context, and these for it. From MOST_QUEUES streams of a
 *             context on they share queues, in which work stands behind work of other streams
 *   copies    from ordinary memory to a device's may end later, on the default stream; how much,
 *             a test may say
 *   callbacks one at a time; the driver's lock may be held meanwhile
 *   errors    one while the device works breaks its context: what is under way is dropped, all
 *             functions return the error, host functions are no longer called, callbacks may be
 *   capture   what the documentation forbids meanwhile is refused, and spoils the graph
 *   kernels   are flash's, compiled for the host; they refuse an address that is not aligned
 * There are two devices. What the documentation leaves undefined ends the process, as does work of
 * flash's in a stream that the application captures.
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
    DEVICE_UNAVAILABLE = 46,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    CONTEXT_IS_DESTROYED = 709,
    MISALIGNED_ADDRESS = 716,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    UNKNOWN = 999
};

typedef struct standin_context_state standin_context_t;

/*
 * For tests: the nth call of that function fails, or of `copy`, the nth copy, when it runs. With
 * NULL no function fails, and contexts that errors have broken are whole again, which no real one
 * becomes: so that one process can test several errors.
 */
void standin_fail(const char *name, unsigned long nth);
bool standin_broken(void); /* whether an error has broken a context */
/* But not of those that the calling thread makes while it is exempt, as the tests are. */
void standin_exempt(bool exempt);
/* Whether it is this call's turn to fail. Any thread. */
bool standin_fails(const char *name);
bool standin_is_exempt(void);
bool standin_chance(void); /* one of two */
void standin_forbidden(const char *what);

/* The calling thread's context; NULL: it has none. */
standin_context_t *standin_context(void);
standin_context_t *standin_primary(int device);
int standin_device_of(const standin_context_t *context); /* of NULL: the first */
/* For tests: as cuCtxCreate, which has another form in each release, and what ends contexts. */
void *standin_make_context(int device);
void standin_destroy_context(void *context);
void standin_reset(int device);
/* The error that has broken it; and breaks it. */
int standin_error(const standin_context_t *context);
void standin_break(standin_context_t *context, int error);
int standin_capture_mode(void); /* the calling thread's */

/*
 * The start of each of the driver's functions. Ends the process if the calling thread is in a
 * callback, where none may be called; waits for a callback that holds the driver's lock.
 */
void standin_not_in_callback(const char *name);
/* And then the error of the thread's context, or whether it is this call's turn to fail. */
int standin_enter(const char *name);
/* Calls it as a callback, at times with the driver's lock. */
void standin_call_back(void (*function)(void *arg), void *arg);

/* Until no stream holds anything: what makes and frees memory waits for callbacks, too. */
void standin_wait_for_all(void);
/* For tests: copies from ordinary memory to that of a device begin so much later than they return. */
void standin_lag(unsigned milliseconds);
/* Until no copy from ordinary memory to that of a device is left that begins there. */
void standin_wait_for_copies(uintptr_t begin, size_t size);
/* All streams of a context are gone, and what they held; and all its events. */
void standin_drop_streams(standin_context_t *context);
void standin_drop_events(const standin_context_t *context);
/* A call that may not be made in the calling thread while streams are captured: then its error. */
int standin_unsafe(void);
/* Whether memory's copies do not return before they are done. */
bool standin_is_synchronous(uintptr_t address);

/* There is one more of what standin_made() counts. */
void standin_count_made(void);

/* Where the driver itself reaches memory, of a device or not; NULL if it ends before `size`. */
void *standin_reach(uintptr_t address, size_t size);
/* Where a kernel does, which knows no memory but the driver's. */
bool standin_knows(uintptr_t address); /* else it is the host's, and not pinned */
void *standin_reach_by_kernel(uintptr_t address, size_t size);
/* The same of memory that the processor cannot reach. */
void *standin_reach_device(uintptr_t address, size_t size);
/*
 * Whether another process could map it: no other memory of a device is in the same blocks of 2 MiB.
 */
bool standin_is_alone(uintptr_t address);
/* Frees memory of a device. */
int standin_release(uintptr_t address);

/* Has a function run in a stream, as a kernel; `arg` is free()d after it. A result of the driver's.
 */
int standin_compute(void *stream, int (*function)(void *arg), void *arg);
/* A kernel that runs until it is told to end; others run beside it. NULL: refused. */
void *standin_begin_kernel(void *stream);
void standin_end_kernel(void *kernel);

/* What thread `first` of `stride` does in a kernel; false: an address is not aligned. */
typedef bool standin_kernel_fn(const void *in, const void *inout, void *out, size_t count,
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

/* For tests: loads and stores that this thread has made in kernels. */
unsigned long standin_accesses(void);
/* For tests: how many there are that nobody has freed, and contexts pushed by this thread. */
int standin_streams(void);
int standin_events(void);
int standin_pinned(void);
int standin_registered(void); /* of the host's own memory, now pinned */
/* Bytes of the largest piece of pinned memory that was made since it was asked for last. */
size_t standin_largest_pinned(void);
int standin_on_device(void);
int standin_retained(void);
unsigned long standin_launches(void); /* of kernels, ever */
unsigned long standin_made(void);     /* streams, events and pieces of pinned memory, ever */
int standin_pushed(void);

#ifdef __cplusplus
}
#endif

#endif /* STANDIN_H */
