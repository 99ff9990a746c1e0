#!/usr/bin/env bash
# Buffers in the memory of devices: where their segments lie meanwhile: in pinned memory, in little of it, or, by a UCX
# that knows CUDA, in the device's. By what stands in for CUDA's driver, or the real one: see device.sh.
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

mpi 3 -- test_device steady

# Blocks that are longer than the pinned memory that there may be; and each kind of call with the least of it.
bounded() { # NP
    own_job mpi "$1" -- test_device bounded
    long own_job mpi "$1" --mca coll_flash_cuda_reduce 0 -- test_device bounded
}
little() { # NP [OPTION]...
    local np=$1 least=(--mca coll_flash_segment_bytes 4096 --mca coll_flash_pinned_bytes 12288)
    shift
    mpi "$np" "${least[@]}" "$@" -- test_device many users_operation two_devices
    mpi "$np" "${least[@]}" "$@" -- test_device_stream "${streams[@]}"
    mpi "$np" "${least[@]}" "$@" -- test_device_two_callbacks allreduce alltoall
    mpi "$np" "${least[@]}" "$@" -- test_device_chain
    mpi "$np" "${least[@]}" "$@" -- test_device_gather
    mpi "$np" "${least[@]}" "$@" -- test_device_gatherv
    mpi "$np" "${least[@]}" "$@" -- test_device_pairs apart in_place pieces pieces_in_place
}
bounded 3
long own_job mpi 3 --mca coll_flash_algorithm pairwise --mca coll_flash_costs "$costs_folder/rings" -- test_device bounded
if [[ $FLASH_TEST_DRIVER == "$standin" ]]; then
    own_job mpi 3 -- test_device without_store # whose memory is refused
fi
point 'a pairwise reduce-scatter of more than may be pinned: said' says + 'staged through ordinary memory' 3 \
    --mca coll_flash_verbose 2 --mca coll_flash_algorithm pairwise --mca coll_flash_costs "$costs_folder/rings" --mca coll_flash_cuda_gpudirect no -- test_device bounded
mpi 3 --mca coll_flash_segment_bytes 4096 --mca coll_flash_pinned_bytes 12288 -- test_device many users_operation two_devices
long little 3
for np in 2 4 5; do
    long bounded "$np"
    long own_job mpi "$np" --mca coll_flash_algorithm pairwise --mca coll_flash_costs "$costs_folder/rings" -- test_device bounded
    long little "$np"
    long little "$np" --mca coll_flash_cuda_reduce 0
    long mpi "$np" --mca coll_flash_segment_bytes 4096 --mca coll_flash_pinned_bytes 12288 -- \
        test_device "${all[@]}"
done

# UCX moves devices' memory itself.
by_ucx() { # NP
    mpi "$1" -- test_device direct many users_operation two_devices
    mpi "$1" -- test_device_stream "${streams[@]}"
    mpi "$1" -- test_device_two_callbacks allreduce alltoall
    mpi "$1" -- test_device_chain
    mpi "$1" -- test_device_gather
    mpi "$1" -- test_device_gatherv
    mpi "$1" -- test_device_pairs apart in_place pieces pieces_in_place
    mpi "$1" -- test_device_errors gaps freed streams
}
if [[ $FLASH_TEST_DRIVER == "$standin" ]]; then
    export FLASH_TEST_UCX=cuda # on all ranks
    long by_ucx 2
    by_ucx 3
    long by_ucx 4
    export FLASH_TEST_UCX=odd # on some
    long by_ucx 2
    long by_ucx 3
    mpi 3 -- test_device many users_operation two_devices
    long little 3 # beside ranks whose scratch is the device's, and not bounded
    long by_ucx 4
    unset FLASH_TEST_UCX
else
    # What stands in for a UCX that knows CUDA reaches no real memory of a device.
    mpi 3 --mca coll_flash_cuda_gpudirect no -- test_device "${all[@]}"
    mpi 3 --mca coll_flash_cuda_gpudirect no -- test_device_stream "${streams[@]}"
fi

point 'pinned memory that is not kept is told of' says + 'more than coll_flash_cuda_cache_bytes (4096)' \
    2 --mca coll_flash_verbose 1 --mca coll_flash_cuda_cache_bytes 4096 --mca coll_flash_cuda_gpudirect no -- test_device many
point 'what is kept is not' says 0 'more than coll_flash_cuda_cache_bytes' \
    2 --mca coll_flash_verbose 1 --mca coll_flash_cuda_gpudirect no -- test_device many
for text in "in a device's memory: input and output" 'staged through pinned memory'; do
    point "it is told: $text" says + "$text" 2 --mca coll_flash_verbose 2 --mca coll_flash_cuda_gpudirect no -- test_device many
done

plan
