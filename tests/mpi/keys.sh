#!/usr/bin/env bash
# Info keys: that each decides which way calls take, and on its communicator alone. info.sh has the rest.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# By default all calls fall back; by their costs all use the ring.
algorithm=fallback
options --mca coll_flash_costs "$costs_folder/rings"
for np in 2 3; do
    mpi "$np" -- test_keys ways reads pairwise persistent
done

# What MPI_Init has prepared is less than the key asks for.
limits_hold() { # NP
    local shm=copy
    run "$1" -- test_keys limits
}
for np in 2 3; do
    point "np $np: a key does not go beyond what MPI_Init has prepared" limits_hold "$np"
done

plan
