#!/usr/bin/env bash
# Open MPI's other components of collectives beside flash, with priorities above its own and below: HAN, adapt,
# sync and monitoring. HAN moves nothing on one node: tests/cluster/cluster.sh has it on several.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
has_component() {
    "$OMPI_INFO" --parsable 2>/dev/null | grep -c "^mca:coll:$1:version" >/dev/null
}

# programs NP MPIRUN-OPTION...: points that share a job. Not all cases of test_others: Open MPI 4.1's monitoring
# divides by zero in MPI_Neighbor_allgather of a graph, and crashes in inter-communicators, without flash, too.
programs() {
    local np=$1
    shift
    mpi "$np" "$@" -- test_beside
    mpi "$np" "$@" -- test_others blocking nonblocking alone own
    mpi "$np" "$@" -- test_persistent_ends
}
more_programs() {
    programs "$@"
    local np=$1
    shift
    mpi "$np" "$@" -- test_allgather
    mpi "$np" "$@" -- test_reduce_scatter
    mpi "$np" "$@" -- test_persistent
    mpi "$np" "$@" -- test_extension
    mpi "$np" "$@" -- test_threads
}

# With or without flash, Open MPI 4.1's HAN keeps references to the communicators that it makes, on one node too, so that
# their modules are not released. Points share jobs: no leak is looked for in any of them.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
above=() below=()
for component in han adapt sync; do
    if has_component $component; then
        above+=(--mca "coll_${component}_priority" 99)
        below+=(--mca "coll_${component}_priority" 40)
        if [[ $component == sync ]]; then
            above+=(--mca coll_sync_barrier_before 3)
            below+=(--mca coll_sync_barrier_after 2)
        fi
    else
        skip "$component" 'this Open MPI has no such component'
    fi
done
monitoring=()
if has_component monitoring; then
    monitoring=(--mca pml_monitoring_enable 2)
else
    skip monitoring 'this Open MPI has no such component'
fi
programs 3 "${above[@]}" "${monitoring[@]}"
programs 3 "${below[@]}"
# Blocking calls by flash, and by others that call flash on communicators of their own.
for others in above below; do
    declare -n options_of=$others
    own_job mpi 3 "${options_of[@]}" --mca coll_flash_blocking yes -- test_blocking among_others communicators window \
        between_groups
done
for np in 2 5; do
    long more_programs $np "${monitoring[@]}"
    for ((k = 0; k < ${#above[@]}; k += 3)); do
        long more_programs $np "${above[@]:k:3}" --mca coll_sync_barrier_before 3
        long more_programs $np "${below[@]:k:3}" --mca coll_sync_barrier_after 2
    done
done

plan
