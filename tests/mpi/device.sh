#!/usr/bin/env bash
# Buffers in the memory of devices, by what stands in for CUDA's driver; with FLASH_TEST_DRIVER=libcuda.so.1 in
# the environment by the real one, on a machine that has a GPU.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/device.bash"

all=(allgather reduce_scatter allreduce alltoall many users_operation two_devices)
streams=(allgather reduce_scatter default_stream many own)
options --mca coll_flash_algorithm ring --mca coll_flash_cuda_plugin "$plugin"
everything() { # NP
    mpi "$1" -- test_device "${all[@]}"
    mpi "$1" -- test_device_stream "${streams[@]}"
    mpi "$1" -- test_device_two_callbacks allreduce alltoall
    mpi "$1" -- test_device_chain
    mpi "$1" -- test_device_gather
    mpi "$1" -- test_device_gatherv
    mpi "$1" -- test_device_pairs apart in_place pieces pieces_in_place
    mpi "$1" -- test_device_errors gaps freed streams
}
everything 2
everything 3
long everything 4
long everything 5
for test in "test_device ${all[*]}" "test_device_stream ${streams[*]}" \
    'test_device_two_callbacks allreduce alltoall'; do
    read -ra words <<<"$test"
    long mpi 4 --mca coll_flash_progress off -- "${words[@]}"
    long mpi 2 --mca coll_flash_cuda_reduce 0 -- "${words[@]}"
    long mpi 3 --mca coll_flash_cuda_reduce 0 -- "${words[@]}"
done
mpi 2 --mca coll_flash_cuda_reduce 0 -- test_device reduce_scatter allreduce users_operation
small=(--mca coll_flash_segment_bytes 4096)
long mpi 3 "${small[@]}" -- test_device_chain
long mpi 3 "${small[@]}" -- test_device_gather
long mpi 3 "${small[@]}" -- test_device_gatherv
long mpi 3 "${small[@]}" -- test_device_pairs apart in_place pieces pieces_in_place
long mpi 4 --mca coll_flash_cuda_reduce 0 -- test_device_chain
mpi 3 "${small[@]}" -- test_device allgather reduce_scatter
long mpi 3 "${small[@]}" -- test_device "${all[@]}"
long mpi 3 "${small[@]}" -- test_device_stream "${streams[@]}"
long mpi 3 "${small[@]}" -- test_device_two_callbacks allreduce alltoall
multiple() { # TEST
    FLASH_TEST_LEVEL=multiple mpi 2 -- "$@"
}
multiple test_device_stream "${streams[@]}"
long multiple test_device "${all[@]}"
long multiple test_device_two_callbacks allreduce alltoall

# Callbacks in a thread of flash's, which has no device of its own.
by_a_thread() { # NP
    mpi "$1" --mca coll_flash_callback_thread 1 -x FLASH_TEST_CALLBACK_THREAD=1 -- test_device "${all[@]}"
    mpi "$1" --mca coll_flash_callback_thread 1 -x FLASH_TEST_CALLBACK_THREAD=1 -- \
        test_device_stream "${streams[@]}"
}
by_a_thread 2
long by_a_thread 3

# Reduce-scatters by the pairwise schedule, whose sums the host makes.
point 'the pairwise schedule is taken' says + 'pairwise, in place' 2 --mca coll_flash_verbose 2 \
    --mca coll_flash_algorithm pairwise -- test_device reduce_scatter
by_pairwise_schedule() { # NP
    mpi "$1" --mca coll_flash_algorithm pairwise -- test_device "${all[@]}"
    mpi "$1" --mca coll_flash_algorithm pairwise -- test_device_stream "${streams[@]}"
}
mpi 3 --mca coll_flash_algorithm pairwise -- test_device reduce_scatter allreduce users_operation
mpi 3 --mca coll_flash_algorithm pairwise -- test_device_stream reduce_scatter many
long by_pairwise_schedule 2
long by_pairwise_schedule 3
long by_pairwise_schedule 4
for ucx in cuda odd; do
    [[ $FLASH_TEST_DRIVER == "$standin" ]] || continue
    mpi 3 --mca coll_flash_algorithm pairwise -x FLASH_TEST_UCX=$ucx -- test_device many users_operation
done

# Sums made by the device, and by the host.
mpi 3 --mca coll_flash_cuda_reduce 0 -- test_device_reduce by_host
if [[ -e $top_builddir/cuda/flash_kernels.fatbin ]] && stands_in test_operators; then
    long mpi 2 -- test_device_reduce by_device
    mpi 3 -- test_device_two_callbacks float16
    mpi 3 -- test_device_reduce by_device
    point 'the device adds, and flash tells so' says + 'sums are made on the device' \
        2 --mca coll_flash_verbose 2 -- test_device many
else
    skip 'sums made on the device' 'built without nvcc, or without a C++ compiler'
fi

# Products by cuBLASLt, or by what stands in for it.
if [[ -e $top_builddir/cuda/.libs/libmpix_flash_cublas.so ]] && stands_in .libs/libcublasLt.so; then
    for np in 2 3; do
        mpi "$np" -- test_device_gemm allgather reduce_scatter used_again shared refused
    done
    long mpi 4 -- test_device_gemm allgather reduce_scatter used_again shared refused
else
    skip 'products by cuBLASLt' 'built without it, or without a C++ compiler'
fi

plan
