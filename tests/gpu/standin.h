/*
 * standin.h: what the two files of the stand-in for CUDA's driver share.
 *
 * As much of the driver's interface as flash and its tests need, written from the documentation of
 * the CUDA Driver API; the numbers are its own. "Device" memory is mapped without access: the host
 * that touches it dies, and only copies reach what it holds. Every other allocation belongs to no
 * context, as those of pools do. Streams run in a thread of their own, in random turns. A copy to a
 * device from ordinary memory may end later, on the default stream. What the documentation forbids
 * ends the process.
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

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    ILLEGAL_ADDRESS = 700,
    UNKNOWN = 999
};

/* For tests: the nth call of that function fails, or of `copy`, the nth copy, when it runs. */
void standin_fail(const char *name, unsigned long nth);
/* But not of those that the calling thread makes while it is exempt, as the tests are. */
void standin_exempt(bool exempt);
/* Whether it is this call's turn to fail. Any thread. */
bool standin_fails(const char *name);
/* Whether the calling thread has a context. */
bool standin_has_context(void);
/* Ends the process if the calling thread is in a callback: none of the functions may be called. */
void standin_not_in_callback(const char *name);
/* Until no stream holds anything: what makes and frees memory waits for callbacks, too. */
void standin_wait_for_all(void);
/* Where the driver itself reaches memory, of a device or not; NULL if it ends before `size`. */
void *standin_reach(uintptr_t address, size_t size);

/* For tests: how many there are that nobody has freed, and contexts pushed by this thread. */
int standin_streams(void);
int standin_pinned(void);
int standin_retained(void);
int standin_pushed(void);

#endif /* STANDIN_H */
