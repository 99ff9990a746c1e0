#!/usr/bin/env bash
# MPI_Igatherv and MPI_Iscatterv: roots, lengths, types that differ from rank to rank, in place; blocks that go
# by flash and blocks that fall back in one call; ranks that refuse.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# By flash for the smallest blocks, too.
options --mca coll_flash_algorithm ring
all=(roots types signatures big many handles_gone communicators)
for np in 1 2 3 5; do
    mpi "$np" -- test_gatherv "${all[@]}"
done
for np in 4 6 7 8; do
    long mpi "$np" -- test_gatherv "${all[@]}"
done
mpi 3 -- test_gatherv no_buffer
for np in 2 4 5; do
    long mpi "$np" -- test_gatherv no_buffer
done
# A block in many segments, and one at a time.
mpi 2 --mca coll_flash_segment_bytes 4096 -- test_gatherv big many
long mpi 5 --mca coll_flash_segment_bytes 4096 -- test_gatherv "${all[@]}"
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_gatherv roots many
mpi 4 --mca coll_flash_progress off -- test_gatherv signatures big
long mpi 3 -x UCX_FLASH_TLS=tcp -- test_gatherv signatures big
# By their cost, which falls back within a node; and the same by Open MPI alone.
options
mpi 4 -- test_gatherv roots many
# Long blocks by their cost, and short ones fall back.
options --mca coll_flash_costs "$costs_folder/small_rings"
for np in 3 5; do
    mpi "$np" -- test_gatherv "${all[@]}"
done
mpi 3 -- test_gatherv no_long_buffer
for call in Igatherv Iscatterv; do
    point "coll_flash_verbose 2: which blocks of MPI_$call fall back" \
        says + "$call of [0-9]* bytes on communicator 0: ring ([0-9]* bytes of short blocks fall back)" 3 \
        --mca coll_flash_verbose 2 -- test_gatherv paths
done
for np in 2 4 6 7 8; do
    long mpi "$np" -- test_gatherv "${all[@]}" paths
done
long mpi 4 --mca coll_flash_progress off -- test_gatherv "${all[@]}" paths
options
select_coll ^flash
long mpi 3 -- test_gatherv "${all[@]}"

plan
