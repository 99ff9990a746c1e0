#!/usr/bin/env bash
# Callbacks that fail: no rank waits forever.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
for np in 2 3 4 5; do
    for name in consume produce big; do
        mpi "$np" -- test_failures "$name"
    done
done
for name in consume produce big; do
    mpi 3 --mca coll_flash_segment_bytes 4096 -- test_failures "$name"
    mpi 4 --mca coll_flash_progress off -- test_failures "$name"
done
mpi 3 -- test_failures freed_communicators

# Of what fails on the other rank time and again, each of two communicators is told once.
told_once() {
    local found
    run 2 -- test_failures produce >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    found=$(grep -A 7 'could not complete its part' "$log" | grep 'PID:' | sort | uniq -c |
        sort -rn | awk 'NR == 1 { print $1 }')
    ((${found:-0} > 2)) && echo "told $found times" && return 1
    ((${found:-0} > 0)) || holds + 'could not complete its part'
}
point 'np 2: what fails elsewhere is told once' told_once

# Without flash's component, callbacks may fail as well.
select_coll ^flash
for np in 1 3; do
    mpi "$np" -- test_failures consume produce big
done

plan
