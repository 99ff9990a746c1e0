#!/usr/bin/env bash
# MPI_Iallgather(v): sizes, types, places.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Rings for the smallest operations, too.
options --mca coll_flash_algorithm ring
# gather NP [MPIRUN OPTION]...: all cases; but ThreadSanitizer makes each of thousands of calls tens
# of times slower, the more so the more ranks there are.
gather() {
    local cases=()
    if [[ ${FLASH_SANITIZER-} == thread ]] && (($1 > 3)); then
        cases=(signatures)
    fi
    mpi "$@" -- test_allgather "${cases[@]}"
}
for np in 1 2 3 4 5 7 8; do
    gather "$np"
done
long gather 6
# A block in many segments.
for np in 2 3; do
    gather "$np" --mca coll_flash_segment_bytes 4096
done
for np in 5 8; do
    long gather "$np" --mca coll_flash_segment_bytes 4096
done
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_segment_window 1 -- test_allgather types
mpi 3 --mca coll_flash_segment_window 4294967295 -- test_allgather types big
long mpi 3 --mca coll_flash_segment_window 4294967295 -- test_allgather
mpi 4 --mca coll_flash_progress off -- test_allgather
mpi 3 -x UCX_FLASH_TLS=tcp -- test_allgather
# Some operations around the ring and some passed on, as by default.
options
mpi 4 -- test_allgather

plan
