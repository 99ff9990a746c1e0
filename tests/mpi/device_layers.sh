#!/usr/bin/env bash
# The layers of mpi_bench on devices.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/device.bash"

options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin "$plugin"
# The layers by cuBLAS and kernels, or by what stands in for them. lays NP LAYER [ARGUMENT]...: the results are right;
# those of what has travelled in 16 bits are no better than that.
lays() {
    local error
    run "$1" -- "$top_builddir/mpi_bench/flash_$2" "${@:3}" -i 2 -x 1 --compute=cublas >"$log" 2>&1 &&
        holds 1 ', cuBLAS$' && holds 1 '^results: right' || return 1
    error=$(awk '/^results: right/ { print $7 }' "$log")
    [[ " $* " != *' --type=bf16 '* ]] || awk "BEGIN { exit !($error > 1e-4) }"
}
# layer NP LAYER [ARGUMENT]...
layer() {
    point "np $1 flash_$2 ${*:3} --compute=cublas${label:+, $label}" lays "$@"
}
layers() {
    layer "$1" mlp -m $((11 * $1)) -k 37 -n 53 --slices=2,3 "${@:2}"
    layer "$1" dp -m $((5 * $1)) -k $((13 * $1)) --layers=3 --slices=2,3 "${@:2}"
    layer "$1" attention -m $((9 * $1)) -k $((12 * $1)) --heads=$((2 * $1)) --slices=2,7 "${@:2}"
    layer "$1" ulysses -m $((9 * $1)) -k $((12 * $1)) --heads=$((2 * $1)) --slices=2,7 --causal "${@:2}"
    layer "$1" block -m $((10 * $1)) -k $((12 * $1)) -n $((10 * $1)) --heads=$((2 * $1)) --layers=2 --slices=2,7 \
        --causal "${@:2}"
}
if [[ -e $top_builddir/mpi_bench/layer_kernels.fatbin ]] && stands_in .libs/libcublas.so; then
    long layers 2
    layer 3 mlp -m 33 -k 37 -n 53 --slices=2,3 --type=bf16
    layer 3 block -m 30 -k 36 -n 30 --heads=6 --layers=2 --slices=2,7 --causal --type=bf16
    for np in 1 3 4; do
        long layers "$np"
        long layers "$np" --type=bf16
    done
    long layers 2 --type=bf16
    layer 3 mlp -m 150 -k 200 -n 150 --pieces=7 # so much that the device is behind the host
    long layer 4 block -m 96 -k 48 --heads=4 --groups=4
    options --mca coll_flash_cuda_plugin "$plugin" # no ring for what is so small, but in the extension's calls
    label='few rings'
    long layers 3
    options --mca coll_flash_cuda_plugin "$plugin" -x UCX_FLASH_TLS=self
    label='no ring at all'
    layer 2 block -m 20 -k 24 -n 20 --heads=4 --layers=2 --slices=2,7 --causal
    long layers 2
    label=''
    options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin "$plugin"
    point "flash_mlp --compute=cublas: flash gets the device's memory" says + "in a device's memory: " \
        2 --mca coll_flash_verbose 2 -- "$top_builddir/mpi_bench/flash_mlp" -m 22 -k 37 -n 53 --compute=cublas
else
    skip 'layers on devices' 'built without OpenBLAS, nvcc or cuBLAS'
fi

plan
