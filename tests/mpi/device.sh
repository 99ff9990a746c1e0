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

all=(allgather reduce_scatter many users_operation gaps)
options --mca coll_flash_min_bytes 0 --mca coll_flash_cuda_plugin "$plugin"
for np in 2 3 4 5; do
    mpi "$np" -- test_device "${all[@]}"
done
mpi 3 --mca coll_flash_segment_bytes 4096 -- test_device "${all[@]}"
mpi 4 --mca coll_flash_progress off -- test_device "${all[@]}"
FLASH_TEST_LEVEL=multiple mpi 2 -- test_device "${all[@]}"

# Calls that take no ring: of any size, and by their size.
on_node=no
options --mca coll_flash_cuda_plugin "$plugin"
for np in 2 3 5; do
    mpi "$np" -- test_device mirrored many users_operation
done
on_node=yes
mpi 4 -- test_device mirrored many
point 'persistent requests that are passed on: said' \
    says + 'persistent requests that take no ring' 2 -- test_device passed_on
options --mca coll_flash_min_bytes 0 --mca coll_flash_cuda_plugin "$plugin"
point 'the path is told' says + 'staged through pinned memory: input and output' \
    2 --mca coll_flash_verbose 2 -- test_device many

if [[ $FLASH_TEST_DRIVER != "$standin" ]]; then
    skip 'failures of the driver' 'a real one fails when it likes'
    plan
    exit
fi

FLASH_TEST_FAIL='copy 1' point 'a failure of the driver is told in its words' \
    says + CUDA_ERROR_UNKNOWN 2 -- test_device driver_fails

# Each of the driver's functions that an operation needs, at its first calls and later.
while read -r name turns; do
    for turn in $turns; do
        FLASH_TEST_FAIL="$name $turn" point "np 3: $name fails, call $turn" \
            run 3 -- test_device driver_fails </dev/null
    done
done <<'END'
cuCtxPushCurrent 1 2 5
cuDevicePrimaryCtxRetain 1 2
cuStreamCreate 1 2 5
cuEventCreate 1 2
cuEventRecord 1 2
cuStreamWaitEvent 1 2 5
cuMemHostAlloc 1
cuMemcpyAsync 1 2 5
cuStreamAddCallback 1 2 5
cuStreamSynchronize 1
copy 1 2 5
END

options --mca coll_flash_cuda_plugin "$plugin"
while read -r name turns; do # the first before the call, later ones after it
    for turn in $turns; do
        FLASH_TEST_FAIL="$name $turn" point "np 3, no ring: $name fails, call $turn" \
            run 3 -- test_device mirror_fails </dev/null
    done
done <<'END'
cuStreamCreate 1 5
cuMemcpyAsync 1 2 3
cuStreamSynchronize 1 2 3
END

plan
