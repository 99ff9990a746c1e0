/*
 * flash_device_tests.c: the executable of the test programs with buffers in a device's memory: see
 * points.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

extern const test_program_t test_device, test_device_chain, test_device_first, test_device_gather,
    test_device_gatherv, test_device_pairs, test_device_two_callbacks, test_device_errors,
    test_device_persistent, test_device_reduce, test_device_stream;

const test_program_t *const test_programs[] = {&test_device,
                                               &test_device_chain,
                                               &test_device_first,
                                               &test_device_gather,
                                               &test_device_gatherv,
                                               &test_device_pairs,
                                               &test_device_two_callbacks,
                                               &test_device_errors,
                                               &test_device_persistent,
                                               &test_device_reduce,
                                               &test_device_stream,
                                               NULL};
