#!/usr/bin/env bash
# The programs that multiply: GEMM with a reduce-scatter, the layers, products by cuBLASLt. Results are checked.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/benchmarks.bash"

if [[ ! -e $benchmarks/flash_cublas ]]; then
    skip 'flash_cublas' 'built without cuBLASLt'
else
    options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin "$top_builddir/cuda/.libs/flash_cuda.so"
    # products TYPE PIECES: of both collectives, the same with the extension and without.
    products() {
        LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
            run 3 -- "$benchmarks/flash_cublas" -m 96 -n 48 -k 32 -i 2 -x 1 -t "$1" -p "$2" >"$log" 2>&1 &&
            holds 2 'results agree'
    }
    # Of the one collective, in so many pieces and in others.
    one_product() {
        LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
            run 2 -- "$benchmarks/flash_cublas" -m 64 -n 48 -k 32 -i 2 -x 1 -c "$1" -p 1,2,8 >"$log" 2>&1 &&
            holds 3 "^$2 fp32 .*results agree" && holds 3 'results agree'
    }
    behind_kernels() {
        LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
            run 2 -- "$benchmarks/flash_behind" 65536 5 >"$log" 2>&1 &&
            holds 3 '^behind a kernel of 5 ms in .* ms, ends '
    }
    # broken WHAT PROGRAM [ARGUMENT]...: fails, since that is broken (stale.c). Not by libtool's script, into whose
    # shell the library would be loaded, too.
    broken() {
        local folders=$top_builddir/tests/gpu/.libs:$top_builddir/cuda/.libs:$top_builddir/ompi_coll_flash/.libs
        ! LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} run 2 -x "FLASH_TEST_STALE=$1" -- /usr/bin/env \
            "LD_PRELOAD=$programs/.libs/libstale.so" "$benchmarks/.libs/$2" "${@:3}" >"$log" 2>&1
    }
    # notices WHAT CALL: a block that is missing, or late, is no right result; without, it is one.
    notices() {
        broken "$1" flash_cublas -m 64 -n 48 -k 32 -i 2 -x 1 -c "$2" && holds 1 'WRONG RESULTS' &&
            ! broken nothing flash_cublas -m 64 -n 48 -k 32 -i 2 -x 1 -c "$2" && holds 1 'results agree'
    }
    without_memory() {
        broken memory flash_behind 65536 5 &&
            holds + "^flash_behind: rank .'s device has no memory for blocks of 65536 bytes"
    }
    if [[ -e $top_builddir/cuda/.libs/flash_cuda.so && -e $top_builddir/tests/gpu/.libs/libcublasLt.so ]]; then
        long point 'np 3 flash_cublas, fp32' products fp32 1
        point 'np 3 flash_cublas, bf16, in pieces' products bf16 4
        point 'np 2 flash_cublas: an allgather alone' one_product allgather AG
        long point 'np 2 flash_cublas: a reduce-scatter alone' one_product reduce_scatter RS
        point 'np 2 flash_cublas: the call brings nothing' notices call allgather
        point 'np 2 flash_cublas: a product before its rows are there' notices consumer allgather
        point 'np 2 flash_cublas: sums before their products are there' notices producer reduce_scatter
        point 'np 2 flash_behind' behind_kernels
        point 'np 2 flash_behind: no memory' without_memory
    fi
    options
    beside point 'flash_cublas: rows that do not divide' refuses 'a multiple of' flash_cublas -m 7
    beside point 'flash_cublas: no such type' refuses 'give fp32' flash_cublas -t fp7
    beside point 'flash_cublas: no such call' refuses 'give allgather, reduce_scatter or both' flash_cublas -c alltoall
    beside point 'flash_cublas: no pieces' refuses 'give up to 8 numbers' flash_cublas -p 4,0
fi

if [[ -x $benchmarks/flash_gemm ]]; then
    small=(-m 96 -n 64 -k 80 --iterations=2 --warmup=1 --slices=2)
    for np in 1 2 3; do
        beside point "np $np flash_gemm" measures 1 'GEMM + ReduceScatter: ' "$np" flash_gemm "${small[@]}"
    done
    beside point 'np 3 flash_gemm --compute=offload --pieces=2,3 --type=float' \
        measures 1 'GEMM + ReduceScatter: ' 3 flash_gemm "${small[@]}" --compute=offload \
        --block-time=1 --pieces=2,3 --type=float
    misfits() {
        ! run 2 -- "$benchmarks/$1" "${@:2}" >"$log" 2>&1 && holds 1 'give multiples of the 2 ranks'
    }
    beside point 'np 3 flash_gemm --no-others' works 'results: all right' 3 flash_gemm "${small[@]}" --no-others
    layers() { # NP, of odd sizes
        beside point "np $1 flash_mlp" works 'results: right' "$1" flash_mlp -m $((11 * $1)) -k 37 -n 53 \
            -i 1 -x 1 --slices=2,3,16
        beside point "np $1 flash_dp" works 'results: right' "$1" flash_dp -m $((5 * $1)) -k $((13 * $1)) \
            --layers=3 -i 1 -x 1 --slices=2,3,16
        beside point "np $1 flash_attention" works 'results: right' "$1" flash_attention -m $((9 * $1)) \
            -k $((12 * $1)) --heads=$((2 * $1)) -i 1 -x 1 --slices=2,7
        beside point "np $1 flash_ulysses --causal" works 'results: right' "$1" flash_ulysses \
            -m $((9 * $1)) -k $((12 * $1)) --heads=$((2 * $1)) --causal -i 1 -x 1 --slices=2,7
    }
    blocks() { # NP
        beside point "np $1 flash_block" works 'results: right' "$1" flash_block -m $((10 * $1)) \
            -k $((12 * $1)) -n $((10 * $1)) --heads=$((2 * $1)) --layers=2 -i 1 -x 1 --slices=2,7
    }
    layers 3
    blocks 4
    for np in 1 2 5; do
        long layers "$np"
    done
    for np in 1 2 3 6; do
        long blocks "$np"
    done
    beside point 'np 6 flash_block --groups=3 --causal' works 'results: right' 6 flash_block -m 66 -k 36 -n 37 \
        --heads=6 --layers=3 --groups=3 --causal -i 1 -x 0
    beside point 'np 4 flash_block --groups=4 --compute=offload' works 'results: none' 4 flash_block -m 64 -k 32 \
        --heads=4 --groups=4 -i 2 -x 0 --compute=offload --rate=1G --pieces=3
    # The results of each variant are right, but no better than what has travelled in 16 bits.
    rounds_rows() {
        works 'results: right' "$@" --type=bf16 --csv="$scratch/rounded.csv" &&
            awk -F, 'NR > 1 && $3 != "computation" && $7 < 1e-4 { print "too good:", $0; bad = 1 }
                NR > 1 { rows++ } END { exit bad || rows < 2 }' "$scratch/rounded.csv"
    }
    rounded_layers() { # NP
        local layer
        beside point "np $1 flash_mlp --type=bf16" rounds_rows "$1" flash_mlp -m $((11 * $1)) -k 37 -n 53 \
            -i 1 -x 1 --slices=2,3,16
        beside point "np $1 flash_dp --type=bf16" rounds_rows "$1" flash_dp -m $((5 * $1)) -k $((13 * $1)) \
            --layers=3 -i 1 -x 1 --slices=2,3,16
        for layer in attention ulysses block; do
            beside point "np $1 flash_$layer --type=bf16" rounds_rows "$1" "flash_$layer" -m $((9 * $1)) \
                -k $((12 * $1)) --heads=$((2 * $1)) -i 1 -x 1 --slices=2,7
        done
    }
    rounded_layers 3
    long rounded_layers 1
    beside point 'np 4 flash_mlp --type=bf16 --compute=offload' works 'results: none' 4 flash_mlp -m 96 -k 64 \
        -i 2 -x 0 --compute=offload --rate=1G --pieces=3 --type=bf16
    beside point 'flash_block: groups that do not divide: said' misfits flash_block --groups=3
    beside point 'np 3 flash_attention --causal' works 'results: right' 3 flash_attention -m 51 -k 36 \
        --heads=6 --causal -i 1 -x 0
    beside point 'np 3 flash_ulysses' works 'results: right' 3 flash_ulysses -m 51 -k 36 --heads=6 -i 1 -x 0
    beside point 'np 3 flash_ulysses --compute=offload' works 'results: none' 3 flash_ulysses -m 96 -k 72 \
        --heads=6 -i 2 -x 0 --compute=offload --rate=1G --pieces=3
    beside point 'np 3 flash_mlp --compute=offload' works 'results: none' 3 flash_mlp -m 96 -k 64 -i 2 -x 0 \
        --compute=offload --rate=1G --pieces=3
    # Where a CUDA device is wanted: no toolkit when it was built, no driver, no cuBLAS.
    if [[ -e $top_builddir/mpi_bench/layer_kernels.fatbin ]]; then
        layer_without_driver() {
            ! LD_LIBRARY_PATH=$(no_driver) run 1 -- "$benchmarks/flash_mlp" --compute=cublas >"$log" 2>&1 &&
                holds 1 'there is no CUDA driver'
        }
        point 'flash_mlp --compute=cublas: no driver' layer_without_driver
    else
        beside point 'flash_mlp --compute=cublas: built without CUDA' refuses 'built without the CUDA Toolkit' flash_mlp \
            --compute=cublas
    fi
    if [[ -e $top_builddir/mpi_bench/layer_kernels.fatbin && -e $top_builddir/tests/gpu/.libs/libcublas.so ]]; then
        layer_without_cublas() {
            local library
            library=$(readlink "$top_builddir/tests/gpu/.libs/libcublas.so")
            mkdir -p "$scratch/without" && : >"$scratch/without/${library%.*.*}"
            ! LD_LIBRARY_PATH=$scratch/without:$top_builddir/tests/gpu/.libs \
                run 1 -- "$benchmarks/flash_mlp" --compute=cublas >"$log" 2>&1 &&
                holds 1 'name its folder in LD_LIBRARY_PATH'
        }
        point 'flash_mlp --compute=cublas: no cuBLAS' layer_without_cublas
    fi
    beside point 'np 2 flash_mlp --compute=offload --rate=a100' works ".*an accelerator's time, 312000 Gflop/s$" 2 \
        flash_mlp -m 64 -k 64 -i 2 -x 0 --compute=offload --rate=a100 --slices=2
    beside point 'flash_mlp: no such accelerator' refuses 'or v100, a100, h100 or h200' flash_mlp --rate=abacus
    beside point 'flash_mlp: no such way to compute' refuses 'give blas, offload or cublas' flash_mlp --compute=opencl
    beside point 'flash_mlp: tokens that do not divide: said' misfits flash_mlp -m 3
    beside point 'flash_ulysses: heads that do not divide: said' misfits flash_ulysses --heads=3
else
    skip 'flash_gemm and the layers' 'built without OpenBLAS'
fi

plan
