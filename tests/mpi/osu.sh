#!/usr/bin/env bash
# The OSU micro-benchmarks, unchanged, with their own validation, and around the ring.
#
# They are not Debian's: they are taken from PATH, or from the directory OSU.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
options --mca coll_flash_min_bytes 0

PATH=${OSU:+$OSU:}$PATH

# validates NP PROGRAM: 19 sizes, all right, and none is passed on. Not of MPI_CHAR, OSU's default:
# its sums are not what OSU expects of them from some bytes on, without flash either.
validates() {
    local np=$1 program=$2 table=$scratch/table
    run "$np" --mca coll_flash_verbose 2 -- \
        "$program" -c -T mpi_int -i 5 -x 1 -m 4:1048576 >"$table" 2>"$log" &&
        (($(grep -c 'Pass *$' "$table") == 19)) && holds + ': ring$' && holds 0 ': passed on' &&
        return
    cat "$table"
    return 1
}

if ! command -v osu_iallgather >/dev/null; then
    skip 'OSU micro-benchmarks' 'not in PATH, nor in the directory OSU'
    plan
    exit 0
fi

for program in osu_iallgather osu_iallgatherv osu_ireduce_scatter osu_ireduce_scatter_block; do
    for np in 2 3 4; do
        point "np $np: $program" validates "$np" "$(command -v "$program")"
    done
done

plan
