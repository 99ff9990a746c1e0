#!/usr/bin/env bash
# Buffers in the memory of devices, by what stands in for CUDA's driver; with FLASH_TEST_DRIVER=libcuda.so.1 in
# the environment by the real one, on a machine that has a GPU.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

standin=$top_builddir/tests/gpu/.libs/libcuda.so.1
export FLASH_TEST_DRIVER=${FLASH_TEST_DRIVER:-$standin}
plugin=$top_builddir/cuda/.libs/flash_cuda.so

if [[ ! -e $plugin ]]; then
    skip 'buffers in the memory of devices' 'built without CUDA'
    plan
    exit
fi

# stands_in FILE: is what the stand-in needs for this built? A real driver needs nothing.
stands_in() {
    [[ $FLASH_TEST_DRIVER != "$standin" || -e $top_builddir/tests/gpu/$1 ]]
}

all=(allgather reduce_scatter many users_operation two_devices)
streams=(allgather reduce_scatter default_stream many own)
options --mca coll_flash_min_bytes 0 --mca coll_flash_cuda_plugin "$plugin"
everything() { # NP
    mpi "$1" -- test_device "${all[@]}"
    mpi "$1" -- test_device_stream "${streams[@]}"
    mpi "$1" -- test_device_both allreduce alltoall
    mpi "$1" -- test_device_errors gaps freed streams
}
everything 2
everything 3
long everything 4
long everything 5
for test in "test_device ${all[*]}" "test_device_stream ${streams[*]}" \
    'test_device_both allreduce alltoall'; do
    read -ra words <<<"$test"
    mpi 3 --mca coll_flash_segment_bytes 4096 -- "${words[@]}"
    long mpi 4 --mca coll_flash_progress off -- "${words[@]}"
    mpi 3 --mca coll_flash_cuda_reduce 0 -- "${words[@]}"
    FLASH_TEST_LEVEL=multiple mpi 2 -- "${words[@]}"
done

# UCX moves devices' memory itself: on all ranks, and on some.
for ucx in cuda odd; do
    export FLASH_TEST_UCX=$ucx
    by_ucx() { # NP
        [[ $FLASH_TEST_DRIVER == "$standin" ]] || return 0
        mpi "$1" -- test_device direct many users_operation two_devices
        mpi "$1" -- test_device_stream "${streams[@]}"
        mpi "$1" -- test_device_both allreduce alltoall
        mpi "$1" -- test_device_errors gaps freed streams
    }
    long by_ucx 2
    by_ucx 3
    long by_ucx 4
done
unset FLASH_TEST_UCX
if [[ $FLASH_TEST_DRIVER != "$standin" ]]; then # where a real UCX has done so in all of the above
    mpi 3 --mca coll_flash_cuda_direct no -- test_device "${all[@]}"
    mpi 3 --mca coll_flash_cuda_direct no -- test_device_stream "${streams[@]}"
fi

# Callbacks in a thread of flash's, which has no device of its own.
for np in 2 3; do
    mpi "$np" --mca coll_flash_callback_thread 1 -x FLASH_TEST_CALLER=1 -- test_device "${all[@]}"
    mpi "$np" --mca coll_flash_callback_thread 1 -x FLASH_TEST_CALLER=1 -- \
        test_device_stream "${streams[@]}"
done

# Reduce-scatters by the direct schedule, whose sums the host makes.
point 'the direct schedule is taken' says + 'by the direct schedule' 2 --mca coll_flash_verbose 2 \
    --mca coll_flash_schedule direct -- test_device reduce_scatter
by_direct_schedule() { # NP
    mpi "$1" --mca coll_flash_schedule direct -- test_device "${all[@]}"
    mpi "$1" --mca coll_flash_schedule direct -- test_device_stream "${streams[@]}"
}
long by_direct_schedule 2
by_direct_schedule 3
long by_direct_schedule 4
for ucx in cuda odd; do
    [[ $FLASH_TEST_DRIVER == "$standin" ]] || continue
    mpi 3 --mca coll_flash_schedule direct -x FLASH_TEST_UCX=$ucx -- test_device many users_operation
done

# Sums made by the device, and by the host.
mpi 3 --mca coll_flash_cuda_reduce 0 -- test_device_reduce by_host
if [[ -e $top_builddir/cuda/flash_kernels.fatbin ]] && stands_in test_operators; then
    mpi 2 -- test_device_reduce by_device
    mpi 3 -- test_device_both halves
    mpi 3 -- test_device_reduce by_device
    point 'who adds is told' says + 'sums are made on the device' \
        2 --mca coll_flash_verbose 2 -- test_device many
else
    skip 'sums made on the device' 'built without nvcc, or without a C++ compiler'
fi

# Products by cuBLASLt, or by what stands in for it.
if [[ -e $top_builddir/cuda/.libs/libmpix_flash_cublas.so ]] && stands_in .libs/libcublasLt.so; then
    if [[ $FLASH_TEST_DRIVER == "$standin" ]]; then
        export LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
    for np in 2 3 4; do
        mpi "$np" -- test_device_gemm allgather reduce_scatter used_again shared refused
    done
else
    skip 'products by cuBLASLt' 'built without it, or without a C++ compiler'
fi

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
    point "np $1 flash_$2 ${*:3} --compute=cublas" lays "$@"
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
    layers 2
    layer 3 mlp -m 33 -k 37 -n 53 --slices=2,3 --type=bf16
    layer 3 block -m 30 -k 36 -n 30 --heads=6 --layers=2 --slices=2,7 --causal --type=bf16
    for np in 1 3 4; do
        long layers "$np"
        long layers "$np" --type=bf16
    done
    long layers 2 --type=bf16
    layer 3 mlp -m 300 -k 200 -n 150 --pieces=7 # so much that the device is behind the host
    long layer 4 block -m 96 -k 48 --heads=4 --groups=4
    options --mca coll_flash_cuda_plugin "$plugin" # no ring for what is so small, but in the extension's calls
    long layers 3
    options --mca coll_flash_cuda_plugin "$plugin" -x UCX_FLASH_TLS=self # no ring at all
    layer 2 block -m 20 -k 24 -n 20 --heads=4 --layers=2 --slices=2,7 --causal
    long layers 2
    options --mca coll_flash_min_bytes 0 --mca coll_flash_cuda_plugin "$plugin"
    point "flash_mlp --compute=cublas: flash gets the device's memory" says + "in a device's memory: " \
        2 --mca coll_flash_verbose 2 -- "$top_builddir/mpi_bench/flash_mlp" -m 22 -k 37 -n 53 --compute=cublas
else
    skip 'layers on devices' 'built without OpenBLAS, nvcc or cuBLAS'
fi

# Calls that take no ring: of any size, and by their size.
on_node=no
options --mca coll_flash_cuda_plugin "$plugin"
for np in 2 3 5; do
    mpi "$np" -- test_device mirrored many users_operation two_devices
done
board=yes
for np in 2 3; do
    mpi "$np" -- test_device mirrored many users_operation two_devices
done
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_board_bytes 0
mpi 2 -- test_device mirrored many
board=no on_node=yes rounds=1048576
options --mca coll_flash_cuda_plugin "$plugin"
for np in 2 3; do
    mpi "$np" -- test_device mirrored many users_operation two_devices
done
rounds=0
mpi 4 -- test_device mirrored many
point 'persistent requests that are passed on: said' \
    says + 'persistent requests that take no ring' 2 -- test_device_errors passed_on
# The extension, where no ring serves it.
mpi 1 -- test_device_stream extension own
for np in 2 3; do
    mpi "$np" -x UCX_FLASH_TLS=self -- test_device_stream extension own
    mpi "$np" -x UCX_FLASH_TLS=self -- test_device_errors streams
    mpi "$np" -x UCX_FLASH_TLS=self -- test_device_both refused
done
options --mca coll_flash_min_bytes 0 --mca coll_flash_cuda_plugin "$plugin"
for text in "in a device's memory: input and output" 'staged through pinned memory'; do
    point "it is told: $text" says + "$text" 2 --mca coll_flash_verbose 2 --mca coll_flash_cuda_direct no -- test_device many
done

if [[ $FLASH_TEST_DRIVER != "$standin" ]]; then
    skip 'failures of the driver' 'a real one fails when it likes'
    plan
    exit
fi

FLASH_TEST_FAIL='copy 1' point 'a failure of the driver is told in its words' \
    says + CUDA_ERROR_UNKNOWN 2 -- test_device_errors driver_fails
FLASH_TEST_FAIL='copy 1' point 'a failure of the driver: cause and remedy' \
    explains device-failed 2 -- test_device_errors driver_fails

if [[ -e $top_builddir/cuda/.libs/libmpix_flash_cublas.so ]] && stands_in .libs/libcublasLt.so; then
    for name in cublasLtCreate cudaMallocAsync cublasLtMatmulAlgoGetHeuristic cublasLtMatmul; do
        FLASH_TEST_FAIL=$name mpi 3 -- test_device_gemm cublas_fails
    done
fi

mpi 3 -- test_device_errors stream_fails

# Each of the driver's functions that an operation needs, at its first calls and later.
while read -r name turns; do
    for turn in $turns; do
        FLASH_TEST_FAIL="$name $turn" mpi 3 -- test_device_errors driver_fails
    done
done <<'END'
cuCtxPushCurrent 1 2 5
cuDevicePrimaryCtxRetain 1 2
cuStreamGetCtx 1 2
cuCtxGetDevice 1 2
cuCtxGetStreamPriorityRange 1 2
cuStreamCreateWithPriority 1 2 5
cuMemPoolCreate 1
cuMemAllocFromPoolAsync 1
cuEventCreate 1 2
cuEventRecord 1 2
cuStreamWaitEvent 1 2 5
cuMemHostAlloc 1
cuMemcpyAsync 1 2 5
cuStreamAddCallback 1 2 5
cuStreamSynchronize 1
copy 1 2 5
END

if [[ -e $top_builddir/cuda/flash_kernels.fatbin ]] && stands_in test_operators; then
    for failure in 'cuLaunchKernel 1' 'cuLaunchKernel 2' 'kernel 1' 'kernel 2'; do
        FLASH_TEST_FAIL=$failure mpi 3 -- test_device_errors driver_fails
    done
fi

# The same where UCX reaches devices' memory.
export FLASH_TEST_UCX=cuda
failures=('cuMemcpyAsync 1' 'cuMemcpyAsync 5' 'copy 1' 'copy 5')
if [[ -e $top_builddir/cuda/flash_kernels.fatbin ]] && stands_in test_operators; then
    failures+=('cuLaunchKernel 1')
fi
for failure in "${failures[@]}"; do
    FLASH_TEST_FAIL=$failure mpi 3 -- test_device_errors driver_fails
done
point 'no memory for UCX on the device: staged, and told' says + 'staged through pinned memory' \
    3 --mca coll_flash_verbose 2 -- test_device_errors no_direct_memory
for direct in yes auto; do
    point "by UCX is told: $direct" says + "sent and received by UCX from the device's memory" \
        2 --mca coll_flash_verbose 2 --mca coll_flash_cuda_direct "$direct" -- test_device many
done
point 'by UCX is refused' says 0 "sent and received by UCX from the device's memory" \
    2 --mca coll_flash_verbose 2 --mca coll_flash_cuda_direct no -- test_device many
unset FLASH_TEST_UCX

# Pinned memory is next to the device.
export FLASH_TEST_TOPOLOGY=$srcdir/two_nodes.xml
mpi 2 -- test_device pinned_near
FLASH_TEST_FAIL='cuMemHostRegister 1' point 'np 3: cuMemHostRegister fails, call 1' \
    run 3 -x HWLOC_XMLFILE="$FLASH_TEST_TOPOLOGY" -x HWLOC_THISSYSTEM=1 -- test_device_errors driver_fails

point 'rates of the plugin' env "FLASH_TEST_DRIVER=$standin" "$top_builddir/tests/gpu/rates" "$plugin" 2

options --mca coll_flash_cuda_plugin "$plugin"
while read -r name turns; do # the first before the call, later ones after it
    for turn in $turns; do
        FLASH_TEST_FAIL="$name $turn" mpi 3 -- test_device_errors mirror_fails
    done
done <<'END'
cuStreamCreateWithPriority 1 5
cuMemcpyAsync 1 2 3
cuStreamSynchronize 1 2 3
END

plan
