#!/usr/bin/env bash
# recdbl_requests.sh: requests of calls by recursive doubling, of all kinds, random calls, and a rank without memory.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/plain.bash"

# shellcheck disable=SC2034 # the runner's
algorithm=recdbl

plain_requests
plain_random

if sanitized; then
    skip 'a rank without memory' 'sanitizers have allocators of their own'
else
    for np in 2 3 4 5; do
        mpi "$np" -- test_faults no_memory_for_recdbl
    done
fi

plan
