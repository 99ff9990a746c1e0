#!/usr/bin/env bash
# Data moves without MPI calls, by a thread that sleeps when there is nothing to do, and that counts.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for np in 1 2 3 5; do
    mpi "$np" --mca coll_flash_progress on -- test_async
done
mpi 2 -- test_async
mpi 2 --mca coll_flash_progress on -x UCX_FLASH_TLS=tcp -- test_async
mpi 3 --mca coll_flash_progress off -x FLASH_TEST_THREAD=0 -- test_async
# What is too small for a ring, too, though the thread is not woken for it.
for np in 2 3; do
    mpi "$np" --mca coll_flash_costs "$costs_folder/pairwise" -- test_async reduce_scatter idle
done
# Segments as short as what need not be acknowledged.
for tls in all tcp; do
    mpi 3 --mca coll_flash_segment_bytes 4096 -x UCX_FLASH_TLS=$tls -- test_async late
done
# No operation, no thread.
own_job mpi 2 --mca coll_flash_progress on -x FLASH_TEST_THREAD=0 -- test_async idle

# What it did, as tools see it.
for np in 1 2 5; do
    mpi "$np" -- test_counters
done
mpi 2 --mca coll_flash_progress off -- test_counters

plan
