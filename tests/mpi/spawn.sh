#!/usr/bin/env bash
# Jobs that meet, and communicators made by some ranks alone.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Between all ranks of a job rings, between some of them not all calls.
options --mca coll_flash_costs "$costs_folder/small_rings"
both() { # NP
    mpi "$1" -- test_spawn spawned
    mpi "$1" -- test_spawn connected
}
for np in 1 2; do
    long both "$np"
done
both 3
for np in 2 5; do
    mpi "$np" -- test_spawn halves create_group
done
long mpi 3 -- test_spawn halves create_group
options
mpi 2 --mca coll_flash_progress on --mca coll_flash_algorithm ring -- test_spawn spawned
mpi 4 --mca coll_flash_progress on --mca coll_flash_algorithm ring -- test_spawn halves create_group
mpi 2 --mca coll_flash_progress off --mca coll_flash_algorithm ring -- test_spawn spawned
long mpi 4 --mca coll_flash_progress off --mca coll_flash_algorithm ring -- test_spawn halves create_group

# The test itself, with Open MPI's own.
select_coll ^flash
export FLASH_TEST_ACTIVE=0 # Open MPI 5 hands on to spawned jobs what mpirun itself has got alone
options -x FLASH_TEST_ACTIVE
mpi 2 -- test_spawn spawned
mpi 2 -- test_spawn connected
mpi 4 -- test_spawn halves create_group

plan
