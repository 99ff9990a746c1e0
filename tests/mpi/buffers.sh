#!/usr/bin/env bash
# Buffers that are not there, or in a device's memory: no rank waits forever.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

export FLASH_TEST_DRIVER=$top_builddir/tests/gpu/.libs/libcuda.so.1

options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin none
for np in 2 3 4 5; do
    for name in no_buffer no_strided_buffer null_buffer many device_buffer managed_buffer; do
        mpi "$np" -- test_buffers "$name"
    done
done
for name in no_buffer device_buffer; do
    mpi 3 --mca coll_flash_segment_bytes 4096 -- test_buffers "$name"
    mpi 4 --mca coll_flash_progress off -- test_buffers "$name"
done
point 'a buffer in a device'"'"'s memory: said, with the remedy' explains device-memory \
    says + 'there is no plugin for it' 2 -- test_buffers device_buffer
options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin "$scratch/flash_cuda.so"
point 'a plugin that is not there: said' \
    says + 'cannot open shared object file' 2 -- test_buffers device_buffer

# A driver without one of the functions that the plugin needs. The name's place is found by its old hash.
if [[ -e $top_builddir/cuda/.libs/flash_cuda.so ]]; then
    LC_ALL=C sed 's/cuCtxGetId/cuCtxNoGet/g' "$FLASH_TEST_DRIVER" >"$scratch/libcuda.so.1"
    options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin "$top_builddir/cuda/.libs/flash_cuda.so"
    FLASH_TEST_DRIVER=$scratch/libcuda.so.1 point 'a driver that is too old: said' \
        says + 'is too old: it has no cuCtxGetId. flash needs that of CUDA 12.0 (525.60) or later' 2 -- test_buffers device_buffer
else
    skip 'a driver that is too old' 'built without CUDA'
fi

plan
