#!/usr/bin/env bash
# The benchmarks run, on the paths they name, and check what they measure. No figure is judged.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

benchmarks=$top_builddir/mpi_bench
short=(-i 2 -x 1)

# measures COUNT TEXT NP PROGRAM [ARGUMENT]...: its results are right, and TEXT is on so many lines.
measures() {
    run "$3" -- "$benchmarks/$4" "${@:5}" >"$log" 2>&1 &&
        holds 1 'results: all right, checked on all ranks' && holds "$1" "$2"
}

# A row for each size, by the path that coll_flash_min_bytes says.
for name in iallgather iallgatherv ireduce_scatter ireduce_scatter_block; do
    beside point "np 2 flash_$name: large sizes by the ring" \
        measures 2 '  ring$' 2 "flash_$name" -m 1M:2M "${short[@]}"
    beside long point "np 3 flash_$name: large sizes by the ring" \
        measures 2 '  ring$' 3 "flash_$name" -m 1M:2M "${short[@]}"
    path=below
    [[ $name != ireduce* ]] || path=direct
    beside point "np 2 flash_$name: small sizes by no ring" \
        measures 3 "  $path\$" 2 "flash_$name" -m 64K:256K "${short[@]}" -t 3 -f --compute=sleep
    rounds=65536 long point "np 2 flash_$name: smaller ones in rounds" \
        measures 3 '  rounds$' 2 "flash_$name" -m 64:256 "${short[@]}"
    beside point "np 1 flash_$name" measures 1 '^1024 .*  -$' 1 "flash_$name" -m 1K:1K "${short[@]}"
done
rounds=65536 point 'np 2 flash_ireduce_scatter: in rounds' \
    measures 3 '  rounds$' 2 flash_ireduce_scatter -m 64:256 "${short[@]}"
# What does not divide: rows for sizes with an element at least.
beside point 'np 3 flash_ireduce_scatter: sizes that leave ranks without elements' \
    measures 5 '  below$' 3 flash_ireduce_scatter -m 4:64 "${short[@]}"
beside point 'np 3 flash_ireduce_scatter_block: sizes without a block are left out' \
    measures 3 '  below$' 3 flash_ireduce_scatter_block -m 4:64 "${short[@]}"

mpi 1 -- test_coll_data

# A ring is as far off as one that adds in 16 bits, the direct schedule no farther than one must be.
rounds() {
    run 4 -- "$benchmarks/flash_halves" 500 >"$log" 2>&1 || return 1
    holds 12 '^| [bf]p*f*16 | -*[01] to 1 | [234] |' &&
        awk -F ' *[|] *' '/^. [bf]p?f?16/ && ($9 <= 0 || $7 > 1.01 * $9 || $7 < $9 || $5 < $9 ||
                $6 < $9 || ($4 > 2 && $6 < 1.05 * $9)) { print "not so:", $0; exit 1 }' "$log"
}
point 'flash_halves: the direct schedule rounds once' rounds

# Buffers of a device, by what stands in for its driver.
on_device() {
    LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} measures "$@" &&
        holds 1 'on CUDA devices'
}
if [[ -e $top_builddir/cuda/.libs/flash_cuda.so ]]; then
    options --mca coll_flash_cuda_plugin "$top_builddir/cuda/.libs/flash_cuda.so"
    for name in iallgather iallgatherv ireduce_scatter ireduce_scatter_block; do
        long point "np 3 flash_$name -d cuda" on_device 2 '  ring$' 3 "flash_$name" -m 1M:2M "${short[@]}" -d cuda
        rounds=65536 point "np 2 flash_$name -d cuda: small sizes" \
            on_device 2 '  rounds$' 2 "flash_$name" -m 64:128 "${short[@]}" -d cuda
    done
    point 'np 2 flash_iallgather -d cuda' on_device 2 '  ring$' 2 flash_iallgather -m 1M:2M "${short[@]}" -d cuda
    options --mca coll_flash_min_bytes 0 --mca coll_flash_cuda_plugin "$top_builddir/cuda/.libs/flash_cuda.so"
    # products TYPE PIECES: of both collectives, the same with the extension and without.
    products() {
        LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
            run 3 -- "$benchmarks/flash_cublas" -m 96 -n 48 -k 32 -i 2 -x 1 -t "$1" -p "$2" >"$log" 2>&1 &&
            holds 2 'results agree'
    }
    if [[ -e $benchmarks/flash_cublas && -e $top_builddir/tests/gpu/.libs/libcublasLt.so ]]; then
        point 'np 3 flash_cublas, fp32' products fp32 1
        point 'np 3 flash_cublas, bf16, in pieces' products bf16 4
    fi
    options
else
    skip 'benchmarks with buffers of a device' 'built without CUDA'
fi

# Into a file: mpirun may mix the lines of the standard output and the standard error output.
csv_is_complete() {
    measures 2 '  below$' 2 flash_iallgather -m 1K:2K "${short[@]}" --csv="$scratch/rows" &&
        awk -F, '/^Call,/ { columns = NF }
            /^MPI_Iallgather,2,1,/ { rows += NF == columns } END { exit rows != 2 }' "$scratch/rows"
}
point 'np 2 flash_iallgather --csv' csv_is_complete
sizes_multiply() {
    measures 3 '  below$' 2 flash_iallgather -m 4:64 --times=4 "${short[@]}" --csv="$scratch/rows" &&
        awk -F, '/^MPI_Iallgather,/ { sizes = sizes " " $4 } END { print sizes; exit sizes != " 4 16 64" }' \
            "$scratch/rows"
}
point 'np 2 flash_iallgather --times' sizes_multiply

# refuses TEXT PROGRAM [ARGUMENT]...: it ends with an error and a message.
refuses() {
    local status=0
    run 2 -- "$benchmarks/$2" "${@:3}" >"$log" 2>&1 || status=$?
    ((status != 0 && status < 124)) && holds 1 "$1"
}
beside point 'flash_iallgather: sizes that are none' refuses 'MAX not less than MIN' flash_iallgather -m 4:2
beside point 'flash_iallgather: sizes that do not grow' refuses 'from 2 to' flash_iallgather --times=1
beside point 'flash_halves: no elements' refuses 'usage: flash_halves' flash_halves 0
beside point 'flash_iallgather: no such device' refuses 'give host or cuda' flash_iallgather -d opencl
without_driver() {
    mkdir -p "$scratch/empty" && : >"$scratch/empty/libcuda.so.1"
    ! LD_LIBRARY_PATH=$scratch/empty run 1 -- "$benchmarks/flash_iallgather" -d cuda >"$log" 2>&1 &&
        holds 1 'there is no CUDA driver'
}
point 'flash_iallgather: no driver' without_driver
if [[ -e $benchmarks/flash_cublas ]]; then
    beside point 'flash_cublas: rows that do not divide' refuses 'a multiple of' flash_cublas -m 7
    beside point 'flash_cublas: no such type' refuses 'give fp32' flash_cublas -t fp7
fi
beside point 'np 2 flash_iallgather --offset=16' measures 1 '^65536 ' 2 flash_iallgather -m 64K:64K "${short[@]}" \
    --offset=16
beside point 'flash_iallgather: an offset that no element has' refuses 'give a multiple of 8' flash_iallgather --offset=12
beside point 'flash_iallgather: no such option' refuses 'no option of this program' flash_iallgather -z
beside point 'flash_iallgather: no such folder' refuses 'cannot write' flash_iallgather --csv=/nowhere/a.csv

# simulates FIGURES [OPTION]...: operation, ranks, milliseconds alone, with callbacks, that as a
# multiple of the ideal, % exposed, messages. Blocks of 1 MiB that take a second each, a latency of
# 1 ms, sums that take a second, callbacks that take two for a block.
simulates() {
    "$benchmarks/flash_simulate" --bytes=1M --rate=1048576 --latency=1000 --combine=1048576 \
        --compute-ratio=2 --csv=- "${@:2}" >"$scratch/simulated" 2>"$log" || return 1
    [[ $(awk -F, 'NR > 1 {
            printf "%s %d %.1f %.1f %.4f %.2f %d\n", $1, $2, $3, $5, $6, $7, $8
        }' "$scratch/simulated") == "$1" ]] || {
        cat "$scratch/simulated"
        return 1
    }
}
no_operation() {
    ! "$benchmarks/flash_simulate" --op=a2a >"$log" 2>&1 && holds 1 'give ag, rs or both'
}
point 'flash_simulate: no such operation' no_operation
# A block travels on each second, and the last sender hears of it a latency later.
point 'flash_simulate: allgather' simulates 'allgather 3 2003.0 6000.0 1.0000 0.00 2
allgather 5 4005.0 10000.0 1.0000 0.00 4
allgather 1000 1000000.0 2000000.0 1.0000 0.00 999' --op=ag --ranks=3,5,1000 --segment=1M
# A sum is sent on when it is done; with callbacks, the last waits for the one before it.
point 'flash_simulate: reduce-scatter' simulates 'reduce-scatter 2 2001.0 5000.0 1.0000 100.00 1
reduce-scatter 5 8004.0 11003.0 1.0003 25.07 4' --op=rs --ranks=2,5 --segment=1M
# Four segments to a block: the first has arrived long before the link is free for it.
point 'flash_simulate: segments' simulates 'allgather 3 2002.0 6000.0 1.0000 0.00 8' \
    --op=ag --ranks=3 --segment=256K
point 'flash_simulate: 100,000 ranks' simulates \
    'allgather 100000 100099000.0 200000000.0 1.0000 0.00 99999' \
    --op=ag --ranks=100000 --segment=1M
delayed() {
    "$benchmarks/flash_simulate" --ranks=64 --op=ag --jitter=1000 --seed="$1" --csv=- 2>/dev/null
}
differs() {
    delayed 1 >"$scratch/first" && delayed 1 >"$scratch/again" && delayed 2 >"$scratch/other" &&
        cmp "$scratch/first" "$scratch/again" && ! cmp -s "$scratch/first" "$scratch/other"
}
point 'flash_simulate: the seed decides about random delays' differs

# The comparison of a size, and pictures of it, from a prefix that the build's folders make up.
mkdir -p "$scratch/prefix/lib"
ln -s "$benchmarks" "$scratch/prefix/bin"
ln -s "${FLASH_COMPONENT_PATH%%:*}" "$scratch/prefix/lib/openmpi"
compares() {
    local variants='flash,.*,ring, flash-apart,.*,ring, own, blocking,' variant own_ucx=true
    if [[ ${FLASH_SANITIZER-} == thread ]]; then
        own_ucx=false
    else
        variants+=' own-ucx,'
    fi
    if [[ -x $benchmarks/mpich_iallgather ]]; then
        variants+=' mpich, mpich-async,'
    fi
    OMPI_MCA_coll_flash_on_node=yes timeout "$FLASH_TEST_TIMEOUT" python3 \
        "$top_srcdir/mpi_bench/flash_compare" --here 2 -m 1M:1M --rounds 1 --seconds 0.1 \
        --calls iallgather --prefix "$scratch/prefix" --peers "$benchmarks" \
        --csv "$scratch/compared" --json "$scratch/compared.json" >"$log" 2>&1 || ! $own_ucx || {
        cat "$log"
        return 1
    }
    for variant in $variants; do
        grep -q "^iallgather,here,2,1,1048576,$variant" "$scratch/compared" || {
            cat "$scratch/compared"
            return 1
        }
    done
}
not_served() {
    ! OMPI_MCA_coll_flash_priority=-1 timeout "$FLASH_TEST_TIMEOUT" python3 \
        "$top_srcdir/mpi_bench/flash_compare" --here 2 -m 1M:1M --rounds 1 --seconds 0.1 \
        --calls iallgather --prefix "$scratch/prefix" --peers "$scratch" --csv "$scratch/not" \
        >"$log" 2>&1 && holds 2 'FAILED: # NOTE: flash does not serve'
}
if command -v python3 >/dev/null; then
    point 'flash_compare' compares
    if [[ ${FLASH_SANITIZER-} == thread ]]; then
        skip 'flash_compare: own-ucx' "Open MPI's pml ucx crashes with ThreadSanitizer, without flash"
    fi
    point 'flash_compare: a job that flash does not serve is none of its figures' not_served
else
    skip 'flash_compare' 'no python3'
fi
draws() {
    "$1" "$top_srcdir/mpi_bench/flash_plots" --out "$scratch/plot" "$scratch/compared" &&
        grep -q '</svg>' "$scratch/plot-iallgather-1x2-overlap.svg" &&
        grep -q '</svg>' "$scratch/plot-iallgather-1x2-time.svg"
}
if find_matplotlib; then
    point 'flash_plots' draws "$python"
else
    skip 'flash_plots' "$reason"
fi

if [[ -x $benchmarks/flash_gemm ]]; then
    small=(-m 96 -n 64 -k 80 --iterations=2 --warmup=1 --slices=2)
    for np in 1 2 3; do
        beside point "np $np flash_gemm" measures 1 'GEMM + ReduceScatter: ' "$np" flash_gemm "${small[@]}"
    done
    beside point 'np 3 flash_gemm --compute=offload --pieces=2,3 --type=float' \
        measures 1 'GEMM + ReduceScatter: ' 3 flash_gemm "${small[@]}" --compute=offload \
        --block-time=1 --pieces=2,3 --type=float
    # works TEXT NP PROGRAM ARGUMENT...: ends well, with a line that begins so.
    works() {
        run "$2" -- "$benchmarks/$3" "${@:4}" >"$log" 2>&1 && holds 1 "^$1"
    }
    misfits() {
        ! run 2 -- "$benchmarks/$1" "${@:2}" >"$log" 2>&1 && holds 1 'give multiples of the 2 ranks'
    }
    for np in 2 3; do
        beside point "np $np flash_tcp" works "MPI_Ireduce_scatter_block$(printf '  *[-0-9.]*%.0s' 1 2 3 4)\$" \
            "$np" flash_tcp -m 1 -i 2
        beside point "np $np flash_tcp -a -f" works 'a plain socket,1,'"$np,$(((np - 1) << 20)),[0-9.]*\$" \
            "$np" flash_tcp -m 1 -i 2 -a -f
    done
    beside point 'flash_tcp: no block: said' refuses 'usage: mpirun' flash_tcp -m 0
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
            mkdir -p "$scratch/empty" && : >"$scratch/empty/libcuda.so.1"
            ! LD_LIBRARY_PATH=$scratch/empty run 1 -- "$benchmarks/flash_mlp" --compute=cublas >"$log" 2>&1 &&
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

# What a site sends in: of a job that flash serves, and of one that it does not.
informs() {
    FLASH_PROGRAMS=$benchmarks FLASH_COMPONENT_PATH=$FLASH_COMPONENT_PATH \
        "$top_srcdir/mpi_bench/flash_info" -np 2 --oversubscribe --mca mpi_yield_when_idle 1 "$@" \
        >"$log" 2>&1
}
told_of_served() {
    informs && holds 1 'Open MPI *Open MPI v[45]' && holds 1 '2 serves this job' &&
        holds 4 'flash_.*: right' && holds 1 'self-test passed'
}
told_of_not_served() {
    ! informs --mca coll_flash_priority -1 && holds 1 'flash does not serve this job' &&
        holds 0 'self-test'
}
point 'flash_info' told_of_served
point 'flash_info: a job that flash does not serve' told_of_not_served

plan
