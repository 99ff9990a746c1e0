#!/usr/bin/env bash
# For `make check-valgrind`: the programs under valgrind, as ranks of small jobs.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

: "${FLASH_VALGRIND:?is set by make check-valgrind}"
# shellcheck disable=SC2206 # a list of words
tool=($FLASH_VALGRIND)

options --mca coll_flash_algorithm ring
for np in 2 3; do
    mpi "$np" -- test_allgather
    mpi "$np" -- test_reduce_scatter
    mpi "$np" -- test_users_code
    mpi "$np" -- test_extension
    mpi "$np" -- test_extension_ends
    mpi "$np" -- test_pending
    mpi "$np" -- test_arguments
    mpi "$np" -- test_others
    mpi "$np" -- test_threads
    # Neither what measures time nor what only repeats itself.
    mpi "$np" -- test_async allgather reduce_scatter
    mpi "$np" -- test_failures consume produce
    mpi "$np" -- test_sizes plain own_block
    mpi "$np" -- test_requests one_communicator many_communicators free_active free_types \
        free_communicators
    mpi "$np" -- test_cancel
    mpi "$np" --mca coll_flash_blocking yes -- test_setup late communicators freed freed_held waiting
    mpi "$np" --mca coll_flash_progress off -- test_requests one_communicator
done
mpi 3 --mca coll_flash_segment_bytes 64 -- test_reduce_scatter same_bits
mpi 2 -x UCX_FLASH_TLS=tcp -- test_allgather
mpi 3 -- test_faults connection
mpi 2 -- test_faults transfers
mpi 2 --mca coll_flash_progress on -x FLASH_TEST_FAULT=pthread_create -- test_faults works
for function in ucp_config_read ucp_init_version ucp_worker_create ucp_worker_get_address; do
    mpi 2 -x "FLASH_TEST_FAULT=$function" -- test_faults works
done

# What takes no ring: small reduce-scatters, and whatever goes through shared memory.
options --mca coll_flash_costs "$costs_folder/pairwise"
point 'reduce-scatters are pairwise' \
    says + 'Ireduce_scatter.*: pairwise (' 2 --mca coll_flash_verbose 2 -- test_reduce_scatter same_bits
for np in 2 3; do
    mpi "$np" -- test_reduce_scatter
    mpi "$np" -- test_requests one_communicator many_communicators come_and_go reduce_meanwhile
done
algorithm=recdbl
point 'calls go by recursive doubling' \
    says + 'Iallgather.*: recdbl (' 2 --mca coll_flash_verbose 2 -- test_allgather counts
for np in 2 3; do
    mpi "$np" -- test_allgather
    mpi "$np" -- test_reduce_scatter
    mpi "$np" -- test_requests one_communicator many_communicators free_active free_types \
        free_communicators come_and_go
done
algorithm=auto shm=auto on_node=no
options --mca coll_flash_shm read
for np in 2 3; do
    mpi "$np" -- test_allgather
    mpi "$np" -- test_requests one_communicator many_communicators come_and_go
    mpi "$np" -- test_faults unreadable_at_first unreadable
done
options --mca coll_flash_shm copy
point 'calls go through shared memory' \
    says + 'Iallgather.*: shm (' 2 --mca coll_flash_verbose 2 -- test_allgather counts
for np in 2 3; do
    mpi "$np" -- test_allgather
    mpi "$np" -- test_reduce_scatter
    mpi "$np" -- test_users_code
    mpi "$np" -- test_requests one_communicator many_communicators free_active free_types \
        free_communicators come_and_go
done

plan
