#!/usr/bin/env bash
# A rank, or mpirun, is killed in the middle of flash's operations: nothing is left running.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring --mca coll_flash_verbose 2

# A name of its own, to find its processes by: the folder is this run's alone.
victim=$scratch/victim
ln -s "$programs/victim" "$victim"

running() {
    local status=0
    pgrep --full -- "^$victim" || status=$?
    ((status <= 1)) || echo "pgrep fails with status $status" # 1: there is none
}

# Processes of the program end. One that has computed for so long since has not been told to, nor has one that
# sleeps for ten times as long: they are killed.
patience=60 # seconds of processor time
nothing_is_left() {
    local left pid seconds begin=$SECONDS
    while left=$(running) && [[ -n $left ]]; do
        for pid in $left; do
            seconds=$(ps -o cputimes= -p "$pid" || echo 0)
            if ((seconds > patience || SECONDS - begin > 10 * patience)); then
                echo "still running: $left"
                ps -o pid,stat,time,args -p "$pid" || :
                # shellcheck disable=SC2086 # a list of words
                kill -KILL $left || :
                return 1
            fi
        done
        sleep 0.1
    done
}

# Exit statuses tell nothing here. It was flash's operations that went on.
no_report() {
    ! grep -Eh 'Sanitizer|runtime error:|: falls back' "$1" && grep -q ': ring$' "$1"
}

# The victim leaves a file as it kills itself: who says so in the job differs.
rank_dies() {
    rm -f "$scratch/killed"
    run "$@" -- "$victim" "$scratch/killed" >"$scratch/said" 2>&1 || :
    grep -v ': ring$' "$scratch/said"
    nothing_is_left && [[ -e $scratch/killed ]] && no_report "$scratch/said"
}

mpirun_dies() {
    local mpirun job ranks_folder=$scratch/started
    rm -rf "$ranks_folder"
    mkdir "$ranks_folder"
    run "$@" -- "$victim" >"$scratch/said" 2>&1 &
    job=$!
    until grep -qs running "$ranks_folder/0.out"; do
        kill -0 "$job" 2>/dev/null || break
        sleep 0.1
    done
    # The mpirun whose argument the program is: not `timeout`, which has the same arguments. That of
    # Open MPI 5 becomes prterun.
    mpirun=$(pgrep --full -- "^([^ ]*/)?(mpirun|prterun)[^ ]* .* $victim") || {
        cat "$scratch/said"
        kill "$job" || : # the `timeout` of run
        wait "$job" || :
        nothing_is_left
        return 1
    }
    # shellcheck disable=SC2086 # a list of words
    kill -KILL $mpirun
    wait "$job" || :
    nothing_is_left && no_report "$scratch/said"
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
