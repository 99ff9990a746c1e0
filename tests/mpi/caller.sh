#!/usr/bin/env bash
# The calls of <mpix_flash.h> with a thread of flash's for the callbacks.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

export FLASH_TEST_CALLER=1
options --mca coll_flash_min_bytes 0 --mca coll_flash_callback_thread 1
mpi 1 -- test_extension
for np in 2 3 4 5 8; do
    # Callbacks that call MPI themselves, and wait in it.
    FLASH_TEST_LEVEL=multiple mpi "$np" -- test_extension
    FLASH_TEST_LEVEL=multiple mpi "$np" -- test_extension_ends
done
for np in 2 3 5; do
    for test in test_own test_both test_halves test_pending; do
        mpi "$np" -- "$test"
    done
    mpi "$np" -- test_threads
done
for test in test_own test_both test_pending; do
    mpi 3 --mca coll_flash_segment_bytes 4096 -- "$test"
    mpi 3 --mca coll_flash_schedule direct -- "$test"
done
mpi 3 --mca coll_flash_progress off -- test_both
FLASH_TEST_LEVEL=multiple mpi 3 --mca coll_flash_progress off -- test_extension
mpi 3 --mca coll_flash_progress off -x FLASH_TEST_THREAD=0 -- test_pending

select_coll ^flash
mpi 3 -x FLASH_TEST_ACTIVE=0 -- test_extension

plan
