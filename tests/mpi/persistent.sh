#!/usr/bin/env bash
# Persistent requests of the operations that flash serves; elements without data.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Rings for the smallest operations, too. A lone rank has none.
options --mca coll_flash_algorithm ring
both() { # NP [OPTION]...
    mpi "$@" -- test_persistent
    mpi "$@" -- test_persistent_ends
}
for np in 2 3; do
    both "$np"
done
mpi 5 -- test_persistent
long mpi 5 -- test_persistent_ends
long both 4
for np in 2 3; do
    mpi "$np" -- test_persistent_ids
done
long mpi 5 -- test_persistent_ids
mpi 1 -- test_persistent
for np in 1 2 3 5; do
    mpi "$np" -- test_empty_types
done
both 2 --mca coll_flash_progress off
long both 5 --mca coll_flash_progress off
mpi 3 --mca coll_flash_segment_bytes 512 -- test_persistent
mpi 3 -x UCX_FLASH_TLS=tcp -- test_persistent
# Some requests start rings, allgathers among them, and some are passed on.
options --mca coll_flash_costs "$costs_folder/small_rings"
long mpi 2 -- test_persistent
mpi 3 -- test_persistent
mpi 2 --mca coll_flash_progress off -- test_persistent

# The test itself, with Open MPI's own.
select_coll ^flash
mpi 3 -- test_persistent
for np in 1 2 5; do
    long mpi "$np" -- test_persistent
done
select_coll flash

# takes_path COUNT PATH MPIRUN-ARGUMENT...: each of the seven forms says so many times which path.
takes_path() {
    local count=$1 path=$2 name found
    shift 2
    run 2 --mca coll_flash_verbose 2 "$@" -- test_persistent inactive >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    for name in Allgather_init Allgatherv_init Reduce_scatter_init Reduce_scatter_block_init \
        Allreduce_init Alltoall_init Alltoallv_init; do
        found=$(grep -c "flash: $name of [0-9]* bytes on communicator [0-9]*: $path" \
            "$log" || :)
        if ((found != count)); then
            echo "\"$name ...: $path\" comes $found times instead of $count:"
            cat "$log"
            return 1
        fi
    done
}
options
# Two requests of each form on each rank.
point 'coll_flash_verbose 2: requests that start rings' \
    takes_path 4 ring --mca coll_flash_algorithm ring
point 'coll_flash_verbose 2: requests passed on, and why' \
    takes_path 4 'falls back (\(the ring costs more\|in place, where short blocks fall back\))'
point 'coll_flash_verbose 2: the first without an operation id passed on, and why' \
    says + 'Allgather_init of .*: falls back (the communicator has too many' 3 \
    --mca coll_flash_algorithm ring --mca coll_flash_verbose 2 -- test_persistent_ids beyond

plan
