#!/usr/bin/env bash
# The calls of <mpix_flash.h>: order of callbacks, pieces, results.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Plain calls inside of callbacks go around the ring, too.
options --mca coll_flash_algorithm ring
one_kind() { # NP: a producer or a consumer
    mpi "$1" -- test_extension
    mpi "$1" -- test_extension_ends
    mpi "$1" -- test_own
}
two_callbacks() { # NP
    mpi "$1" -- test_two_callbacks
    mpi "$1" -- test_two_callbacks_arguments
    mpi "$1" -- test_float16
}
for np in 1 2 3 5; do
    one_kind "$np"
done
for np in 1 3 5; do
    two_callbacks "$np"
done
long two_callbacks 2
for np in 4 6 7 8; do
    long one_kind "$np"
    long two_callbacks "$np"
done
other_settings() { # NP
    mpi "$1" --mca coll_flash_segment_bytes 4096 -- test_two_callbacks
    mpi "$1" --mca coll_flash_progress off -- test_two_callbacks
    long mpi "$1" --mca coll_flash_segment_bytes 4096 -- test_own
    long mpi "$1" --mca coll_flash_progress off -- test_own
    mpi "$1" --mca coll_flash_segment_bytes 4096 -- test_extension
    mpi "$1" --mca coll_flash_progress off -- test_extension
    long mpi "$1" --mca coll_flash_progress off -- test_extension_ends
}
long other_settings 2
other_settings 3
long other_settings 5
mpi 3 -x UCX_FLASH_TLS=tcp -- test_extension
long mpi 5 --mca coll_flash_ring_order rank -- test_extension
mpi 3 -x UCX_FLASH_TLS=tcp -- test_two_callbacks
mpi 5 --mca coll_flash_ring_order rank -- test_two_callbacks
FLASH_TEST_LEVEL=multiple mpi 3 -- test_two_callbacks
for level in funneled multiple; do
    mpi 3 -x "FLASH_TEST_LEVEL=$level" -- test_extension small tests_inside
done

plan
