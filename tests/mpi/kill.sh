#!/usr/bin/env bash
# A rank, or mpirun, is killed in the middle of flash's operations: nothing is left running.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_min_bytes 0 --mca coll_flash_verbose 2

# A name of its own, to find its processes by: the folder is this run's alone.
victim=$scratch/victim
ln -s "$programs/victim" "$victim"

running() {
    local status=0
    pgrep --full -- "^$victim" || status=$?
    ((status <= 1)) || echo "pgrep fails with status $status" # 1: there is none
}

# Processes of the program are gone within 30 s; what is left is killed.
nothing_is_left() {
    local left pid
    for _ in {1..300}; do
        left=$(running)
        [[ -n $left ]] || return 0
        sleep 0.1
    done
    echo "still running: $left"
    for pid in $left; do
        ps -o pid,stat,time,args -p "$pid" || :
        kill -KILL "$pid" || :
    done
    return 1
}

# Exit statuses tell nothing here. It was flash's operations that went on.
no_report() {
    ! grep -Eh 'Sanitizer|runtime error:|: passed on' "$1" && grep -q ': ring$' "$1"
}

rank_dies() {
    # mpirun's exit status is the rank's, which is that of a `timeout` that had to kill mpirun, too.
    FLASH_TEST_TIMEOUT=60 run "$@" -- "$victim" rank >"$scratch/said" 2>&1 || :
    grep -v ': ring$' "$scratch/said"
    # If mpirun does not say so, others were quicker to find that out, and ended the job.
    nothing_is_left && grep -Eq 'signal 9 \(Killed\)|Gone:  rank' "$scratch/said" &&
        no_report "$scratch/said"
}

mpirun_dies() {
    local mpirun
    : >"$scratch/started" # here, before it is read below
    run "$@" -- "$victim" >"$scratch/started" 2>&1 &
    for _ in {1..300}; do
        grep -q running "$scratch/started" && break
        sleep 0.1
    done
    # The mpirun whose argument the program is: not `timeout`, which has the same arguments. That of
    # Open MPI 5 becomes prterun.
    mpirun=$(pgrep --full -- "^([^ ]*/)?(mpirun|prterun)[^ ]* .* $victim") || {
        cat "$scratch/started"
        kill %% || : # the `timeout` of run
        wait || :
        nothing_is_left
        return 1
    }
    kill -KILL "$mpirun"
    wait || :
    nothing_is_left && no_report "$scratch/started"
}

for np in 2 4; do
    for progress in on off; do
        point "np $np, progress $progress: a rank is killed" \
            rank_dies "$np" --mca coll_flash_progress "$progress"
        point "np $np, progress $progress: mpirun is killed" \
            mpirun_dies "$np" --mca coll_flash_progress "$progress"
    done
done
point 'np 3, tcp: a rank is killed' rank_dies 3 -x UCX_FLASH_TLS=tcp

plan
