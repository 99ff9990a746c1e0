#!/usr/bin/env bash
# Ranks that disagree about sizes: no rank waits forever, and none takes wrong data for right.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Sizes for which different algorithms cost least are in lost.sh: see lost.sh.
options --mca coll_flash_algorithm ring
for np in 2 3; do
    mpi "$np" -- test_sizes
done
mpi 5 -- test_sizes plain own_block roots_own_block
long mpi 5 -- test_sizes
mpi 3 --mca coll_flash_segment_bytes 4096 -- test_sizes plain own_block roots_own_block
long mpi 3 --mca coll_flash_segment_bytes 4096 -- test_sizes
mpi 3 -x UCX_FLASH_TLS=tcp -- test_sizes plain persistent
mpi 4 --mca coll_flash_progress off -- test_sizes

plan
