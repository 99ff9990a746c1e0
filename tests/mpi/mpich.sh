#!/usr/bin/env bash
# MPICH's own tests of collectives, unchanged, with flash below them: what MPICH's list of tests names, with as many
# ranks, blocking, non-blocking and persistent. They are not Debian's packages: mpich-tests.sh builds them from Debian's
# sources, in a folder that MPICH_TESTS names here. tests/long.sh runs this script; it is not among the scripts of
# `make check`.
#
# A test that fails without flash, too, is skipped.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

if [[ ! -d ${MPICH_TESTS-} ]]; then
    skip "MPICH's tests" 'no folder MPICH_TESTS: tests/mpi/mpich-tests.sh builds one'
    plan
    exit 0
fi

options --mca coll_flash_blocking yes --mca coll_flash_summary 1
: >"$scratch/served"

# has_no_errors NP PROGRAM [ARGUMENT]...: one rank says so, and the job ends with 0.
has_no_errors() {
    run "$1" -- "$MPICH_TESTS/coll/$2" "${@:3}" >"$log" 2>&1 && holds 1 '^ No Errors$' && return
    cat "$log"
    return 1
}

# passes ROW NP PROGRAM [ARGUMENT]...: counts the programs of which the summary has such calls.
passes() {
    has_no_errors "${@:2}" || return
    if holds + "^  calls $1  *[1-9]"; then
        echo "$3" >>"$scratch/served"
    fi
}

without_flash() {
    coll=^flash has_no_errors "$@"
}

# collective NP PROGRAM [ARGUMENT]...: by the ring, then as costs have it, with shared memory, too.
collective() {
    local name="np $1: ${*:2}"
    if ! wanted "$name"; then
        return
    elif [[ ! -x $MPICH_TESTS/coll/$2 ]]; then
        skip "$name" 'it calls what this Open MPI lacks'
    elif ! without_flash "$@" >"$output" 2>&1; then
        skip "$name" 'it fails without flash, too'
    else
        algorithm=ring point "$name (ring)" passes 'by the ring' "$@"
        shm=auto point "$name (by costs)" passes 'by shared memory' "$@"
    fi
}

# Nearly all of these programs make calls that flash serves.
many_served() {
    local count
    count=$(sort -u "$scratch/served" | wc -l)
    echo "note: flash served calls of $count programs"
    ((count >= 60))
}

while read -r program np arguments; do
    [[ $program && $program != '#'* ]] || continue
    words=()
    for word in $arguments; do
        [[ $word != arg=* ]] || words+=("${word#arg=}")
    done
    collective "$np" "$program" "${words[@]}"
done <"$MPICH_TESTS/coll/testlist"
point 'flash served calls of most programs' many_served

plan
