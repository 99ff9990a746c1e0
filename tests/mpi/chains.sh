#!/usr/bin/env bash
# Calls with a root, MPI_Ibcast, MPI_Ireduce, MPI_Igather and MPI_Iscatter: roots, lengths, types, operations, in
# place; ranks that refuse.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Chains and exchanges for the smallest calls, too.
options --mca coll_flash_algorithm ring
bcasts=(roots types signatures big many handles_gone nothing)
reduces=(roots operations persistent big user_operations same_bits)
gathers=(roots types signatures big many handles_gone)
all() {
    mpi "$@" -- test_bcast "${bcasts[@]}"
    mpi "$@" -- test_reduce "${reduces[@]}"
    mpi "$@" -- test_gather "${gathers[@]}"
}
refuse() {
    mpi "$@" -- test_bcast no_buffer
    mpi "$@" -- test_reduce no_buffer
    mpi "$@" -- test_gather no_buffer
}
all 2
all 3
mpi 5 -- test_bcast roots signatures many
mpi 5 -- test_reduce roots big
for np in 1 4 5 6 7 8; do
    long all "$np"
done
refuse 3
for np in 2 4 5; do
    long refuse "$np"
done
# The local groups of inter-communicators have two ranks.
mpi 4 -- test_bcast uncounted
# A block in many segments, and one at a time.
small=(--mca coll_flash_segment_bytes 4096)
mpi 3 "${small[@]}" -- test_bcast "${bcasts[@]}"
mpi 3 "${small[@]}" -- test_reduce big same_bits
mpi 3 "${small[@]}" -- test_gather big many
long all 5 "${small[@]}"
long refuse 3 "${small[@]}"
one=(--mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1)
mpi 3 "${one[@]}" -- test_bcast roots many
mpi 3 "${one[@]}" -- test_reduce roots
long mpi 4 "${one[@]}" -- test_gather roots many
long all 4 --mca coll_flash_progress off
long all 3 -x UCX_FLASH_TLS=tcp
# By their cost, which falls back within a node; and the same by Open MPI alone.
options
mpi 4 -- test_bcast roots nothing uncounted
mpi 4 -- test_reduce roots
mpi 4 -- test_gather roots
select_coll ^flash
long mpi 3 -- test_bcast roots
long mpi 3 -- test_reduce roots
long mpi 3 -- test_gather roots types

plan
