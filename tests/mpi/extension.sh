#!/usr/bin/env bash
# The calls of <mpix_flash.h>: order of callbacks, pieces, results.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Plain calls inside of callbacks go around the ring, too.
options --mca coll_flash_min_bytes 0
for np in 1 2 3 4 5 8; do
    mpi "$np" -- test_extension
    mpi "$np" -- test_extension_ends
    mpi "$np" -- test_own
done
for np in 1 2 3 4 5 6 7 8; do
    mpi "$np" -- test_both
    mpi "$np" -- test_both_arguments
    mpi "$np" -- test_halves
done
for np in 2 5; do
    mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_both
    mpi "$np" --mca coll_flash_progress off -- test_both
    mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_own
    mpi "$np" --mca coll_flash_progress off -- test_own
    mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_extension
    mpi "$np" --mca coll_flash_progress off -- test_extension
    mpi "$np" --mca coll_flash_progress off -- test_extension_ends
done
mpi 3 -x UCX_FLASH_TLS=tcp -- test_extension
mpi 5 --mca coll_flash_ring_order rank -- test_extension
mpi 3 -x UCX_FLASH_TLS=tcp -- test_both
mpi 5 --mca coll_flash_ring_order rank -- test_both
FLASH_TEST_LEVEL=multiple mpi 3 -- test_both
for level in funneled multiple; do
    mpi 3 -x "FLASH_TEST_LEVEL=$level" -- test_extension small tests_inside
done

# The same without flash's component.
select_coll ^flash
for np in 1 2 3 8; do
    mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_allgather
    mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_extension
    mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_extension_ends
    mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_own
    mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_both
    mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_both_arguments
    mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_halves
done

plan
