#!/usr/bin/env bash
# Rounded sums have the same bits in each run, whoever is late and however the data moves.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring

# sums FILE NP [MPIRUN OPTION]...: the checksums of a run; some, or it fails.
sums() {
    local file=$1
    shift
    run "$@" -- test_same_bits >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    grep '^sums of way' "$log" >"$file"
}

# same NP [MPIRUN OPTION]...: they are those of the run before.
same() {
    sums "$scratch/others" "$@" && diff "$scratch/sums" "$scratch/others"
}

for np in 3 5; do
    point "np $np: a run" sums "$scratch/sums" "$np"
    point "np $np: again" same "$np"
    point "np $np: the first rank late, progress on" \
        same "$np" --mca coll_flash_progress on -x FLASH_TEST_LATE=0
    point "np $np: the last rank late, progress off" \
        same "$np" --mca coll_flash_progress off -x FLASH_TEST_LATE=$((np - 1))
    point "np $np: other segments" same "$np" --mca coll_flash_segment_bytes 1000
done

# Persistent requests, way 2, are passed on then.
same_but_persistent() {
    sums "$scratch/sums" "$@" &&
        shm=auto on_node=no sums "$scratch/others" "$@" &&
        diff <(grep -v 'way 2' "$scratch/sums") <(grep -v 'way 2' "$scratch/others")
}
for np in 2 3 5; do
    point "np $np: through shared memory as by rings" same_but_persistent "$np"
done

plan
