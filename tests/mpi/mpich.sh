#!/usr/bin/env bash
# MPICH's own tests of collectives with flash below them: what MPICH's list of tests names, with as many ranks, blocking,
# non-blocking and persistent. Debian has no package of them: mpich-tests.sh builds them from Debian's sources, in a
# folder that MPICH_TESTS names here. tests/long.sh runs this script; it is not among the scripts of `make check`.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

if [[ -z ${MPICH_TESTS-} ]]; then
    skip "MPICH's tests" 'no folder MPICH_TESTS: tests/mpi/mpich-tests.sh builds one'
    plan
    exit 0
fi

options --mca coll_flash_blocking yes --mca coll_flash_summary 1
touch "$scratch"/served-{ring,recdbl,shm}

# Programs that fail with Open MPI 4.1 and without flash, too, and why.
declare -A fails_without_flash=(
    [oplxor]='Open MPI refuses MPI_LXOR of floating-point numbers'
    [coll_large]='Open MPI 4.1 has no MPI_Alltoallv_c'
)

# passes ALGORITHM NP PROGRAM [ARGUMENT]...: one rank says that there were no errors, and the job ends with 0. Notes the
# program if the summary says that all ranks made calls by that algorithm.
declare -A rows=([ring]='by the ring' [recdbl]='by recursive doubling' [shm]='by shared memory')
passes() {
    local own=()
    # Open MPI's sums of 8-bit integers by AVX stop at the type's limits; this test's go on from 0.
    [[ ${*:3} != 'allred -count=100' ]] || own=(--mca op ^avx)
    if ! run "$2" "${own[@]}" -- "$MPICH_TESTS/coll/$3" "${@:4}" >"$log" 2>&1 || ! holds 1 '^ No Errors$'; then
        cat "$log"
        return 1
    fi
    if holds + "^  calls ${rows[$1]}  *[1-9]"; then
        echo "$3" >>"$scratch/served-$1"
    fi
}

# collective NP PROGRAM [ARGUMENT]...
collective() {
    local name="np $1: ${*:2}" algorithm
    if [[ ${fails_without_flash[${*:2}]-} ]]; then
        skip "$name" "${fails_without_flash[${*:2}]}"
        return
    fi
    for algorithm in ring recdbl; do
        point "$name ($algorithm)" passes "$algorithm" "$@"
    done
    algorithm=auto shm=auto point "$name (shm)" passes shm "$@"
}

# at_least COUNT ALGORITHM: in so many programs the algorithm was used.
at_least() {
    local count
    count=$(sort -u "$scratch/served-$2" | wc -l)
    echo "note: $count programs"
    ((count >= $1))
}

while read -r program np arguments; do
    [[ $program && $program != '#'* ]] || continue
    words=()
    for word in $arguments; do
        [[ $word != arg=* ]] || words+=("${word#arg=}")
    done
    collective "$np" "$program" "${words[@]}"
done <"$MPICH_TESTS/coll/testlist"
point 'programs that used the ring' at_least 88 ring
point 'programs that used recursive doubling' at_least 60 recdbl
point 'programs that used shared memory' at_least 6 shm

plan
