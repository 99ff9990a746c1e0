#!/usr/bin/env bash
# Info keys: what a program fixes for one communicator.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for np in 2 3 5; do
    mpi "$np" --mca coll_flash_min_bytes 0 -- test_info
done

# The first of two small allgathers takes the ring, the second does not.
min_bytes_are_heard() {
    run 3 --mca coll_flash_verbose 2 -- test_info path >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 3 'Iallgather of 12 bytes .*: ring' && holds 3 'Iallgather of 12 bytes .*: passed on (below'
}
point 'mpix_flash_min_bytes' min_bytes_are_heard

point 'a value that cannot be is told' says 1 'Value:  many$' 2 -- test_info ignored

plan
