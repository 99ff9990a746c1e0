#!/usr/bin/env bash
# The OSU micro-benchmarks, unchanged, with their own validation: every collective that flash serves, but for persistent
# requests, around the ring.
#
# Debian has no package of them: they are taken from the folder OSU, of OSU's sources as they were built, or from PATH.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
options --mca coll_flash_algorithm ring --mca coll_flash_blocking yes

find_program() {
    if [[ -n ${OSU:-} ]]; then
        find "$(realpath -e "$OSU")" -name "$1" -type f -perm /111 ! -path '*/.libs/*' -print -quit | grep .
    else
        command -v "$1"
    fi
}

# validates NP PROGRAM: 19 sizes, all right, and no such call is passed on. Not of MPI_CHAR, OSU's default,
# whose sums OSU calls wrong beyond 8 bytes, without flash as well.
validates() {
    local np=$1 program call=${2#osu_} table=$scratch/table
    call=${call^}
    program=$(find_program "$2") || return
    run "$np" --mca coll_flash_verbose 2 -- \
        "$program" -c -T mpi_int -i 5 -x 1 -m 4:1048576 >"$table" 2>"$log" &&
        (($(grep -c 'Pass *$' "$table") == 19)) && holds + "flash: $call of .*: ring\$" &&
        holds 0 "flash: $call of .*fall" &&
        return
    cat "$table"
    return 1
}

if [[ -z ${OSU:-} ]] && ! command -v osu_iallgather >/dev/null; then
    skip 'OSU micro-benchmarks' 'not in PATH, and no folder OSU given'
    plan
    exit 0
fi

for call in allgather allgatherv allreduce alltoall alltoallv bcast reduce_scatter reduce_scatter_block; do
    for np in 2 3 4; do
        point "np $np: osu_$call" validates "$np" "osu_$call"
        point "np $np: osu_i$call" validates "$np" "osu_i$call"
    done
done
for call in igather igatherv ireduce iscatter iscatterv; do
    for np in 2 3 4; do
        point "np $np: osu_$call" validates "$np" "osu_$call"
    done
done

plan
