#!/usr/bin/env bash
# flash_info: what a site sends in, and its verdict on jobs of all kinds.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/benchmarks.bash"

# What a site sends in, and its verdict, the last line: of a job that flash serves, and of some that it does not.
informs() {
    local status=0
    FLASH_PROGRAMS=$benchmarks FLASH_COMPONENT_PATH=$FLASH_COMPONENT_PATH \
        OMPI_MCA_coll_flash_help_dir=$top_srcdir/ompi_coll_flash \
        "$top_srcdir/mpi_bench/flash_info" "$@" >"$log" 2>&1 || status=$?
    return $status
}
by_mpirun=(-np 2 --oversubscribe --mca mpi_yield_when_idle 1)
ends_with() {
    tail -n 1 "$log" | grep -q -x -e "$1" || {
        cat "$log"
        return 1
    }
}
told_of_served() {
    informs "${by_mpirun[@]}" && holds 1 'Open MPI *Open MPI v[45]' && holds 1 '2 serves this job' &&
        holds 8 'flash_.*: right' && ends_with 'go: 2 ranks on one node'
}
# A launcher that is no mpirun to flash_info, and one that keeps the parameters from the ranks.
told_by_launcher() {
    printf '%s\n' '#!/bin/sh' 'exec mpirun "$@"' >"$scratch/launcher" && chmod +x "$scratch/launcher" &&
        informs --launcher "$scratch/launcher" "${by_mpirun[@]}" --mca coll_flash_progress off &&
        ends_with 'go: 2 ranks on one node, without a progress thread: .*'
}
told_of_silence() {
    printf '%s\n' '#!/bin/sh' 'unset OMPI_MCA_coll OMPI_MCA_coll_flash_verbose' \
        'unset OMPI_MCA_opal_mca_base_component_path' 'exec mpirun "$@"' >"$scratch/silent" &&
        chmod +x "$scratch/silent" &&
        no_go 'no rank has loaded flash' --launcher "$scratch/silent" "${by_mpirun[@]}"
}
# no_go REASON [OPTION]...
no_go() {
    local status=0
    informs "${@:2}" || status=$?
    ((status == 1)) && ends_with "no: $1\. Remedy: .*" && holds 0 'flash_.*: right'
}
explains_calls() {
    FLASH_PROGRAMS=$benchmarks FLASH_COMPONENT_PATH=$FLASH_COMPONENT_PATH \
        "$top_srcdir/mpi_bench/flash_info" --explain allgather 4M 16 >"$log" 2>&1 &&
        holds 1 'allgather of 4194304 bytes in all, 16 ranks on several nodes' && holds 1 '^ring .*<- chosen$'
}
point 'flash_info --explain: what a call costs, and the choice' explains_calls
# documents.sh shows the verdict of such a job; here are the lines before it.
long point 'flash_info: go' told_of_served
long point 'flash_info: go, by another launcher and without a progress thread' told_by_launcher
point 'flash_info: no, the launcher passes no parameters on' told_of_silence
point 'flash_info: no, flash is switched off' no_go 'flash does not serve this job' "${by_mpirun[@]}" \
    --mca coll_flash_priority -1
# By messages.c, since Open MPI 4.1 loses messages now and then.
point 'flash_info: no, UCX does not work' no_go 'UCX does not work on host .*: .*' "${by_mpirun[@]}" \
    -x UCX_FLASH_TLS=nonsense -x LD_PRELOAD="$programs/.libs/libmessages.so"
point 'flash_info: no, of one rank' no_go 'the job has one rank' -np 1
point 'flash_info: no, it does not end' no_go 'a job .* has not ended in 3 seconds' --seconds 3 "${by_mpirun[@]}" \
    /bin/sh -c 'sleep 600'
point 'flash_info: no, there is no launcher' no_go 'there is no command nothing-of-this-name' \
    --launcher nothing-of-this-name

plan
