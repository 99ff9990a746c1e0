#!/usr/bin/env bash
# Sessions of MPI 4: communicators without MPI_COMM_WORLD, and beside it.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

if ((ompi_major < 5)); then
    skip sessions 'this Open MPI has none (5.0 and later)'
    plan
    exit
fi
options --mca coll_flash_min_bytes 0
for np in 1 2 3 5; do
    mpi "$np" -- test_sessions
    mpi "$np" -- test_sessions world
done
point 'coll_flash_verbose 1: why one made of a group is not served' \
    says + 'made from a group: each rank has a number of its own' 2 \
    --mca coll_flash_verbose 1 -- test_sessions world

plan
