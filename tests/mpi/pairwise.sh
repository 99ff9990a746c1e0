#!/usr/bin/env bash
# Reduce-scatters by the pairwise schedule: chosen by an info key, and by the parameter. pairwise_small.sh is about
# those that are too small for a ring.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
for np in 2 3 5; do
    mpi "$np" -- test_pairwise
done
for np in 4 6 7 8; do
    long mpi "$np" -- test_pairwise
done
mpi 3 -x UCX_FLASH_TLS=tcp -- test_pairwise
mpi 4 --mca coll_flash_progress off -- test_pairwise
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_pairwise same_bits
point 'the schedule is told' says 6 'pairwise (see algorithm' 3 --mca coll_flash_verbose 2 -- test_pairwise told
no_schedule() {
    says 2 'Value:  straight$' 2 -- test_pairwise told && holds 2 'give fallback or ring or shm or recdbl or pairwise or auto, the same'
}
point 'a schedule that cannot be is told, and what can be' no_schedule

options --mca coll_flash_algorithm pairwise --mca coll_flash_costs "$costs_folder/rings"
for test in 'test_reduce_scatter same_bits' 'test_persistent inactive' 'test_extension'; do
    read -ra words <<<"$test"
    point "the parameter is heard: ${words[0]}" \
        says + 'pairwise' 3 --mca coll_flash_verbose 2 -- "${words[@]}"
done
mpi_on_many -- test_reduce_scatter
further() { # NP
    mpi "$1" -- test_extension
    mpi "$1" -- test_float16
    mpi "$1" --mca coll_flash_segment_bytes 4096 -- test_reduce_scatter
    mpi "$1" --mca coll_flash_progress off -- test_reduce_scatter
    long mpi "$1" -- test_extension_ends
    long mpi "$1" -- test_own
    long mpi "$1" -- test_persistent
    long mpi "$1" -- test_persistent_ends
    long mpi "$1" -- test_requests
    mpi "$1" -- test_failures produce big
}
further 2
long further 5
long mpi 3 -x UCX_FLASH_TLS=tcp -- test_reduce_scatter
long mpi 5 --mca coll_flash_ring_order rank -- test_reduce_scatter
mpi 3 -- test_users_code
mpi 4 -- test_life

options
# Not where nobody serves.
select_coll ^flash
mpi 3 -- test_pairwise

plan
