#!/usr/bin/env bash
# Threads older than MPI, children, MPI_Finalize at once, sudden ends.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for progress in on off; do
    options --mca coll_flash_progress "$progress"
    mpi 2 -- test_life
    long mpi 4 -- test_life
    mpi 3 -- test_life finalize
    for np in 2 5; do
        long mpi "$np" -- test_life finalize
    done
    long mpi 3 -x UCX_FLASH_TLS=tcp -- test_life
    mpi 3 -x UCX_FLASH_TLS=tcp -- test_life finalize
done
options
mpi 1 -- test_life

# A name of its own, to find its processes by: the folder is this run's alone.
life=$scratch/life
ln -s "$programs/test_life" "$life"

# ends KIND NP ...: the job ends with an error, soon, and leaves nothing behind. Not always with the
# rank's own status: what UCX makes of a neighbour that is gone may be the first that mpirun sees.
ends() {
    local kind=$1 status=0
    shift
    run "$@" -- "$life" "$kind" || status=$?
    if ((status == 0 || status == 124 || status == 137)); then
        echo "mpirun ends with $status"
        return 1
    fi
    for _ in {1..100}; do
        pgrep --full -- "^$life" >/dev/null || return 0
        sleep 0.1
    done
    echo "still running:"
    pgrep --full --list-full -- "^$life"
    return 1
}

for progress in on off; do
    for np in 2 4; do
        point "np $np, progress $progress: MPI_Abort in a callback" \
            ends abort "$np" --mca coll_flash_progress "$progress"
        point "np $np, progress $progress: exit() in the middle of an operation" \
            ends exit "$np" --mca coll_flash_progress "$progress"
    done
done

plan
