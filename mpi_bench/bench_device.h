/*
 * bench_device.h: memory of a CUDA device, by the driver that is on the machine, if it is.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * How many devices `ranks` of this host's processes can share. 0: they cannot, and `text` says why,
 * and what the remedy is. Ranks take devices in turn.
 */
int bench_device_usable(int ranks, char *text, size_t size);
/* The newest CUDA that the driver is for, as 1000 * major + 10 * minor; 0: it does not tell. */
int bench_device_driver(void);
bool bench_device_name(int ordinal, char *text, int size);

/* Takes one of the host's devices, in turn by `rank`. False: there is none, which it says. */
bool bench_device_open(const char *program, int rank);

/* NULL: there is none left. */
void *bench_device_allocate(size_t bytes);
void bench_device_free(void *memory);

/* Between it and the host, at once. Ends the program if the driver fails. */
void bench_device_write(void *to, const void *from, size_t bytes);
void bench_device_read(void *to, const void *from, size_t bytes);
/* For what the default stream holds. */
void bench_device_wait(void);

#endif /* BENCH_DEVICE_H */
