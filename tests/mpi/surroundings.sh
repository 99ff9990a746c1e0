#!/usr/bin/env bash
# A program finds its process as it is without flash: signal handlers, environment, limits, the C library's code, and
# all else that a library may change.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# What a job of two ranks tells of the first, in FILE.
snapshot() {
    local file=$1
    shift
    if ! run 2 "$@" >"$file.all" 2>&1; then
        cat "$file.all"
        return 1
    fi
    command grep -a '^\(MPI_Init\|operation\|MPI_Finalize\): ' "$file.all" >"$file"
}

without() {
    local status=0
    select_coll ^flash
    snapshot "$scratch/without" -- test_surroundings "$@" || status=1
    select_coll flash
    return "$status"
}
# The same job, twice; of what comes and goes by itself nothing is in the lists.
unchanged() {
    without "$@" || return 1
    snapshot "$scratch/with" --mca coll_flash_algorithm ring --mca coll_flash_summary 1 -- test_surroundings "$@" || return 1
    if ! grep -q 'calls by the ring  *1 ' "$scratch/with.all"; then
        echo 'flash has not served the operation'
        return 1
    fi
    diff "$scratch/without" "$scratch/with"
}

point 'np 2: the job without flash' without
if grep -q '^UCX is loaded' "$scratch/without.all"; then
    skip 'the process is as without flash' 'this Open MPI loads UCX by itself'
else
    point 'np 2: the process is as without flash' unchanged
    point 'np 2: likewise, where the program has signal handlers' unchanged handlers
fi
plan
