#!/usr/bin/env bash
# MPI_Ialltoall and MPI_Ialltoallv: lengths, types that differ from rank to rank, in place; blocks that go
# by flash and blocks that fall back in one call.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# By flash for the smallest operations, too.
options --mca coll_flash_algorithm ring
unequal=(counts types signatures big many handles_gone communicators)
for np in 1 2 3 5; do
    mpi "$np" -- test_alltoall
    mpi "$np" -- test_alltoallv "${unequal[@]}"
done
for np in 4 6 7 8; do
    long mpi "$np" -- test_alltoall
    long mpi "$np" -- test_alltoallv "${unequal[@]}"
done
mpi 3 -- test_alltoallv no_buffer
for np in 2 4 5; do
    long mpi "$np" -- test_alltoallv no_buffer
done
# A block in many segments, and one at a time.
mpi 2 --mca coll_flash_segment_bytes 4096 -- test_alltoall
long mpi 5 --mca coll_flash_segment_bytes 4096 -- test_alltoall
mpi 2 --mca coll_flash_segment_bytes 4096 -- test_alltoallv big many
long mpi 5 --mca coll_flash_segment_bytes 4096 -- test_alltoallv "${unequal[@]}"
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_alltoall counts
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_alltoallv counts
mpi 4 --mca coll_flash_progress off -- test_alltoall signatures big
mpi 4 --mca coll_flash_progress off -- test_alltoallv signatures big
mpi 3 -x UCX_FLASH_TLS=tcp -- test_alltoall signatures big
# By its cost, which falls back within a node; and the same by Open MPI alone.
options
mpi 4 -- test_alltoall counts
mpi 4 -- test_alltoallv counts many
# Long blocks by their cost, and short ones fall back.
options --mca coll_flash_costs "$costs_folder/small_rings"
for np in 3 5; do
    mpi "$np" -- test_alltoallv "${unequal[@]}"
done
point 'coll_flash_verbose 2: which blocks fall back' \
    says + 'Ialltoallv of [0-9]* bytes on communicator 0: ring ([0-9]* bytes of short blocks fall back)' 3 \
    --mca coll_flash_verbose 2 -- test_alltoallv paths
for np in 2 4 6 7 8; do
    long mpi "$np" -- test_alltoallv "${unequal[@]}" paths
done
long mpi 4 --mca coll_flash_progress off -- test_alltoallv "${unequal[@]}" paths
options
select_coll ^flash
mpi 3 -- test_alltoall counts
long mpi 3 -- test_alltoallv "${unequal[@]}"

plan
