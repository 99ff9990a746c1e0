#!/usr/bin/env bash
# Callbacks that leave a piece pending.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for np in 1 2 3 5; do
    mpi "$np" -- test_pending
done
long mpi 4 -- test_pending
long mpi 8 -- test_pending
for np in 2 5; do
    mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_pending
    mpi "$np" --mca coll_flash_progress off -x FLASH_TEST_THREAD=0 -- test_pending
done
# One thread calls MPI while others compute, at each level that allows it.
for level in funneled serialized multiple; do
    mpi 3 -x FLASH_TEST_LEVEL="$level" -- test_pending
done

# The same without flash's component.
select_coll ^flash
mpi 3 -x FLASH_TEST_ACTIVE=0 -- test_pending
for np in 1 2 8; do
    long mpi "$np" -x FLASH_TEST_ACTIVE=0 -- test_pending
done
mpi 3 -x FLASH_TEST_ACTIVE=0 -x FLASH_TEST_LEVEL=funneled -- test_pending

plan
