#!/usr/bin/env bash
# Buffers in the memory of devices, of calls that take no ring, and of the extension where no ring serves it. By what
# stands in for CUDA's driver, or the real one: see device.sh.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # the runner's
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/device.bash"

# Calls that take no ring: of any size, and by their size.
on_node=no
options --mca coll_flash_cuda_plugin "$plugin"
without_ring() { # NP
    mpi "$1" -- test_device bounced many users_operation two_devices
    mpi "$1" -- test_device_chain
    mpi "$1" -- test_device_gather
    mpi "$1" -- test_device_gatherv gather scatter adjoin one_address
    mpi "$1" -- test_device_pairs apart
}
without_ring 2
long without_ring 3
long without_ring 5
shm=auto
long without_ring 2
without_ring 3
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_shm read
mpi 2 -- test_device bounced many
shm=no on_node=yes algorithm=recdbl
options --mca coll_flash_cuda_plugin "$plugin"
long without_ring 2
without_ring 3
algorithm=auto
long mpi 4 -- test_device bounced many
point 'gaps in a persistent request that is passed on: said' \
    says + 'packs types with gaps by the processor' 2 -- test_device_errors passed_on
# Persistent requests that are passed on, and some that are not.
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/fallback"
persistent() { # NP OPTION...
    mpi "$@" -- test_device_persistent rounds at_a_time inactive handles_gone users_operation
}
long persistent 2
persistent 3
long persistent 5
FLASH_TEST_LEVEL=multiple persistent 2
# Calls whose long blocks go by flash, and whose short ones fall back.
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/small_rings"
mpi 3 -- test_device_pairs apart pieces pieces_in_place
mpi 3 -- test_device_gatherv
mpi 3 --mca coll_flash_setup call -- test_device_pairs first apart pieces pieces_in_place
mpi 3 --mca coll_flash_setup call -- test_device_gatherv
for np in 2 4 5; do
    long mpi "$np" -- test_device_pairs apart pieces pieces_in_place
    long mpi "$np" -- test_device_gatherv
done
# Blocking ones, likewise.
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/blocking" -x FLASH_TEST_BLOCKING=1
blocking_pairs() { # NP [CASE]...
    mpi "$1" -- test_device_pairs apart pieces "${@:2}"
    mpi "$1" --mca coll_flash_setup call -- test_device_pairs apart pieces "${@:2}"
}
blocking_pairs 3 pieces_in_place
long blocking_pairs 2 pieces_in_place
long blocking_pairs 5 # in place, Open MPI's persistent call mixes up some of the blocks
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/fallback"
# Host bounces that are longer than what is kept are not pinned.
mpi 2 --mca coll_flash_cuda_cache_bytes 4096 -- test_device bounced
persistent 2 --mca coll_flash_cuda_cache_bytes 4096
if [[ $FLASH_TEST_DRIVER == "$standin" ]]; then
    mpi 3 -- test_device_persistent never_waits
    own_job mpi 3 -- test_device_persistent pinned
fi
options --mca coll_flash_cuda_plugin "$plugin" --mca coll_flash_costs "$costs_folder/small_rings"
persistent 3
options --mca coll_flash_cuda_plugin "$plugin"
# The extension, where no ring serves it.
mpi 1 -- test_device_stream extension own
extension_of() { # NP
    mpi "$1" -x UCX_FLASH_TLS=self -- test_device_stream extension own
    mpi "$1" -x UCX_FLASH_TLS=self -- test_device_errors streams
    mpi "$1" -x UCX_FLASH_TLS=self -- test_device_two_callbacks refused
}
extension_of 2
long extension_of 3

plan
