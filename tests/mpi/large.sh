#!/usr/bin/env bash
# Blocks and offsets beyond 2^31 bytes.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# needs GIB NP CASE: what all ranks touch, and as much again that stays free. ThreadSanitizer notes
# four times as much as there is.
needs() {
    local free factor=2
    free=$(awk '/^MemAvailable:/ {print int($2 / 1024 / 1024)}' /proc/meminfo)
    if [[ ${FLASH_SANITIZER-} == thread ]]; then
        factor=6
    fi
    if ((free < factor * $1)); then
        skip "np $2 test_large $3" "takes $1 GiB of memory, of $free that are available"
    else
        mpi "$2" -- test_large "$3"
    fi
}

long needs 5 2 allgather
long needs 9 2 packed
long needs 5 2 consumed
long needs 7 2 reduce_scatter
long needs 11 2 produced
options --mca coll_flash_algorithm ring
needs 1 3 offsets

plan
