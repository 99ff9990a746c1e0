#!/usr/bin/env bash
# MPI_Ialltoall: lengths, types that differ from rank to rank, in place.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# By flash for the smallest operations, too.
options --mca coll_flash_algorithm ring
for np in 1 2 3 5; do
    mpi "$np" -- test_alltoall
done
for np in 4 6 7 8; do
    long mpi "$np" -- test_alltoall
done
# A block in many segments, and one at a time.
mpi 2 --mca coll_flash_segment_bytes 4096 -- test_alltoall
long mpi 5 --mca coll_flash_segment_bytes 4096 -- test_alltoall
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_alltoall counts
mpi 4 --mca coll_flash_progress off -- test_alltoall signatures big
mpi 3 -x UCX_FLASH_TLS=tcp -- test_alltoall signatures big
# By its cost, which falls back within a node; and the same by Open MPI alone.
options
mpi 4 -- test_alltoall counts
select_coll ^flash
mpi 3 -- test_alltoall counts

plan
