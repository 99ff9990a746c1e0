#!/usr/bin/env bash
# Callbacks that take all blocks at once (MPIX_Flash_hints, merge).
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for np in 1 2 3 5; do
    mpi "$np" -- test_merge
done
for np in 4 6 7 8; do
    long mpi "$np" -- test_merge
done
other_settings() { # NP
    mpi "$1" --mca coll_flash_algorithm ring -- test_merge
    mpi "$1" --mca coll_flash_algorithm fallback -- test_merge
    mpi "$1" --mca coll_flash_costs "$costs_folder/small_rings" --mca coll_flash_progress off -- test_merge
    mpi "$1" -x FLASH_TEST_CALLBACK_THREAD=1 --mca coll_flash_callback_thread 1 -- test_merge
    # Small standard calls use other algorithms.
    mpi "$1" --mca coll_flash_costs "$costs_folder/pairwise" -- test_merge
}
long other_settings 2
other_settings 3
long other_settings 5
shm=auto
mpi 4 -- test_merge
shm=no

# Two with an info key, one of which merges, on three ranks.
reason_is_told() {
    run 3 --mca coll_flash_verbose 2 -- test_merge key >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 3 'Iallgather_compute of 24000 bytes .*: ring' &&
        holds 3 'Iallgather_compute of 24000 bytes .*: plain collective (merged)'
}
point 'which way is told' reason_is_told

select_coll ^flash
without() { # NP
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_merge
}
without 1
without 3
for np in 2 5 8; do
    long without "$np"
done

plan
