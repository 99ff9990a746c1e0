# benchmarks.bash: sourced behind runner.bash by the scripts that run programs of mpi_bench. No figure is judged.
#
#   measures COUNT TEXT NP PROGRAM [ARGUMENT]...   its results are right, and TEXT is on so many lines
#   works TEXT NP PROGRAM ARGUMENT...              ends well, with a line that begins so
#   refuses TEXT PROGRAM [ARGUMENT]...             ends with an error and a message
#   no_driver                                      prints a folder whose driver of CUDA's is none
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash

benchmarks=$top_builddir/mpi_bench

measures() {
    run "$3" -- "$benchmarks/$4" "${@:5}" >"$log" 2>&1 &&
        holds 1 'results: all right, checked on all ranks' && holds "$1" "$2"
}

works() {
    run "$2" -- "$benchmarks/$3" "${@:4}" >"$log" 2>&1 && holds 1 "^$1"
}

refuses() {
    local status=0
    run 2 -- "$benchmarks/$2" "${@:3}" >"$log" 2>&1 || status=$?
    ((status != 0 && status < 124)) && holds 1 "$1"
}

no_driver() {
    mkdir -p "$scratch/empty" && : >"$scratch/empty/libcuda.so.1"
    echo "$scratch/empty"
}
