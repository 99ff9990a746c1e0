#!/usr/bin/env bash
# Failures of the driver of devices, and what is told of their memory.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/device.bash"

options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin "$plugin"
if [[ $FLASH_TEST_DRIVER != "$standin" ]]; then
    skip 'failures of the driver' 'a real one fails when it likes'
    plan
    exit
fi

FLASH_TEST_FAIL='copy 1' point 'a failure of the driver is told in its words' \
    says + CUDA_ERROR_UNKNOWN 2 -- test_device_errors driver_fails
FLASH_TEST_FAIL='copy 1' point 'a failure of the driver: cause and remedy' \
    explains device-failed 2 -- test_device_errors driver_fails

FLASH_TEST_FAIL='cuDevicePrimaryCtxRetain 1' point 'a device that another process has: why' \
    says + 'its compute mode is exclusive' 2 -- test_device_errors driver_fails

if [[ -e $top_builddir/cuda/.libs/libmpix_flash_cublas.so ]] && stands_in .libs/libcublasLt.so; then
    for name in cublasLtCreate cudaMallocAsync cublasLtMatmulAlgoGetHeuristic cublasLtMatmul; do
        FLASH_TEST_FAIL=$name mpi 3 -- test_device_gemm cublas_fails
    done
fi

mpi 3 -- test_device_errors stream_fails

# Each of the driver's functions that an operation needs, at its first calls and later.
while read -r name turns; do
    for turn in $turns; do
        alone=()
        # What is made once in a process may fail once.
        [[ $turn != 1 && $name != *Create* ]] || alone=(own_job)
        FLASH_TEST_FAIL="$name $turn" "${alone[@]}" mpi 3 -- test_device_errors driver_fails
    done
done <<'END'
cuCtxPushCurrent 1 2 5
cuDevicePrimaryCtxRetain 1
cuCtxGetId 1
cuStreamGetCtx 1
cuCtxGetDevice 1
cuCtxGetStreamPriorityRange 1
cuStreamCreateWithPriority 1 2
cuMemPoolCreate 1
cuMemAllocFromPoolAsync 1
cuEventCreate 1 2
cuEventRecord 1 2
cuStreamWaitEvent 1 2
cuMemHostAlloc 1
cuMemcpyAsync 1 2 5
cuEventQuery 1 2 5
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
broken=('cuMemcpyAsync 1' 'cuMemcpyAsync 5' 'copy 1' 'copy 5')
if [[ -e $top_builddir/cuda/flash_kernels.fatbin ]] && stands_in test_operators; then
    broken+=('cuLaunchKernel 1')
fi
for failure in "${broken[@]}"; do
    FLASH_TEST_FAIL=$failure mpi 3 -- test_device_errors driver_fails
done
point 'no memory for UCX on the device: staged, and told' says + 'staged through pinned memory' \
    3 --mca coll_flash_verbose 2 -- test_device_errors no_direct_memory
for direct in yes auto; do
    point "by UCX is told: $direct" says + "sent and received by UCX from the device's memory" \
        2 --mca coll_flash_verbose 2 --mca coll_flash_cuda_gpudirect "$direct" -- test_device many
done
point 'by UCX is refused' says 0 "sent and received by UCX from the device's memory" \
    2 --mca coll_flash_verbose 2 --mca coll_flash_cuda_gpudirect no -- test_device many
unset FLASH_TEST_UCX

# Pinned memory is next to the device.
export FLASH_TEST_TOPOLOGY=$top_srcdir/tests/mpi/two_nodes.xml
mpi 2 -- test_device pinned_near
FLASH_TEST_FAIL='cuMemHostRegister 1' point 'np 3: cuMemHostRegister fails, call 1' \
    run 3 -x HWLOC_XMLFILE="$FLASH_TEST_TOPOLOGY" -x HWLOC_THISSYSTEM=1 -- test_device_errors driver_fails

# The reader ends after the first line: the next one finds the pipe closed.
rates_at_once() {
    local status
    set +o pipefail
    env --default-signal=PIPE "FLASH_TEST_DRIVER=$standin" "$top_builddir/tests/gpu/rates" "$plugin" 64 | head -n 1 |
        grep '^GB/s'
    status=${PIPESTATUS[0]}
    set -o pipefail
    [[ $status == 141 ]]
}
point 'rates of the plugin: each line at once' rates_at_once
point 'rates of the plugin' env "FLASH_TEST_DRIVER=$standin" "$top_builddir/tests/gpu/rates" "$plugin" 2

options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/fallback"
while read -r name turns; do # the first before the call, later ones after it
    for turn in $turns; do
        alone=()
        [[ $name != *Create* ]] || alone=(own_job)
        FLASH_TEST_FAIL="$name $turn" "${alone[@]}" mpi 3 -- test_device_errors bounce_fails
    done
done <<'END'
cuStreamCreateWithPriority 1 2
cuMemcpyAsync 1 2
cuStreamSynchronize 1
cuEventQuery 1
copy 1 2
END
own_job mpi 2 -- test_device_errors no_pinned_memory

# Calls that flash may share with Open MPI's, of which none is long.
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/small_rings"
own_job mpi 3 -- test_device_pairs copies_fail
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/blocking" -x FLASH_TEST_BLOCKING=1
own_job mpi 3 -- test_device_pairs copies_fail

plan
