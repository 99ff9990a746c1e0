/*
 * flash_tests.c: the executable of the test programs that want nothing of a job but its ranks: see
 * points.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

extern const test_program_t test_affinity, test_allgather, test_allreduce, test_alltoall,
    test_arguments, test_async, test_bcast, test_beside, test_blocking, test_blocks, test_buffers,
    test_cancel, test_empty_types, test_exposed, test_extension, test_extension_ends, test_failures,
    test_float16, test_gather, test_growth, test_in_turn, test_info, test_keys, test_merge,
    test_outstanding, test_own, test_pairwise, test_pending, test_persistent, test_persistent_ends,
    test_persistent_ids, test_points, test_recdbl_calls, test_reduce, test_reduce_scatter,
    test_requests, test_rights, test_same_bits, test_sizes, test_threads, test_two_callbacks,
    test_two_callbacks_arguments, test_users_code;

const test_program_t *const test_programs[] = {&test_affinity,       &test_allgather,
                                               &test_allreduce,      &test_alltoall,
                                               &test_arguments,      &test_async,
                                               &test_bcast,          &test_beside,
                                               &test_blocking,       &test_blocks,
                                               &test_buffers,        &test_cancel,
                                               &test_empty_types,    &test_exposed,
                                               &test_extension,      &test_extension_ends,
                                               &test_failures,       &test_float16,
                                               &test_gather,         &test_growth,
                                               &test_in_turn,        &test_info,
                                               &test_keys,           &test_merge,
                                               &test_outstanding,    &test_own,
                                               &test_pairwise,       &test_pending,
                                               &test_persistent,     &test_persistent_ends,
                                               &test_persistent_ids, &test_points,
                                               &test_recdbl_calls,   &test_reduce,
                                               &test_reduce_scatter, &test_requests,
                                               &test_rights,         &test_same_bits,
                                               &test_sizes,          &test_threads,
                                               &test_two_callbacks,  &test_two_callbacks_arguments,
                                               &test_users_code,     NULL};
