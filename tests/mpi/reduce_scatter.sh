#!/usr/bin/env bash
# MPI_Ireduce_scatter(_block): operations, types, sizes.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Rings for the smallest operations, too.
options --mca coll_flash_algorithm ring
for np in 1 2 3 4 5 7 8; do
    mpi "$np" -- test_reduce_scatter
done
long mpi 6 -- test_reduce_scatter
# A block in many segments.
for np in 2 3; do
    mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_reduce_scatter
done
for np in 5 8; do
    long mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_reduce_scatter
done
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_reduce_scatter same_bits
mpi 4 --mca coll_flash_progress off -- test_reduce_scatter
mpi 3 -x UCX_FLASH_TLS=tcp -- test_reduce_scatter
# The user's operations, where a thread of flash's would have all the time to run them.
for np in 2 3; do
    mpi "$np" --mca coll_flash_progress on -- test_users_code
done
mpi 2 --mca coll_flash_progress off -- test_users_code
# Some operations around the ring and some passed on, as by default.
options
mpi 4 -- test_reduce_scatter

plan
