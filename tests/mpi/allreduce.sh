#!/usr/bin/env bash
# MPI_Iallreduce: operations, types, lengths, in place; and calls that Open MPI makes itself.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Rings for the smallest operations, too.
options --mca coll_flash_algorithm ring
results=(operations persistent big same_bits user_operations handles_gone)
for np in 1 2 3 5 8; do
    mpi "$np" -- test_allreduce "${results[@]}"
done
for np in 4 6 7; do
    long mpi "$np" -- test_allreduce "${results[@]}"
done
for np in 2 3; do
    mpi "$np" -- test_allreduce beside_idup uncounted
done
# A block in many segments, and one at a time.
for np in 2 5; do
    mpi "$np" --mca coll_flash_segment_bytes 4096 -- test_allreduce "${results[@]}"
done
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_allreduce same_bits
mpi 3 --mca coll_flash_segment_window 4294967295 -- test_allreduce big same_bits
mpi 4 --mca coll_flash_progress off -- test_allreduce "${results[@]}"
mpi 3 -x UCX_FLASH_TLS=tcp -- test_allreduce operations big same_bits
# By its cost, which falls back within a node; and the same by Open MPI alone.
options
mpi 4 -- test_allreduce operations persistent big user_operations uncounted
select_coll ^flash
mpi 3 -- test_allreduce operations persistent user_operations

plan
