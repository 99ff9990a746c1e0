#!/usr/bin/env bash
# Reduce-scatters by the direct schedule because they are too small for a ring: which take it, and what comes of them.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # the runner's
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_direct_bytes 1
path_is() { # TEXT OTHER NP ...: calls take the way of that text, and none the other
    local call='Ireduce_scatter_block of [0-9]* bytes on communicator 0'
    says + "$call: $1" "${@:3}" --mca coll_flash_verbose 2 -- test_reduce_scatter same_bits &&
        holds 0 "$call: \\($2\\)"
}
point 'direct below min_bytes' path_is 'direct (below min_bytes' 'ring\|passed on' 3
point 'not with more than direct_ranks' path_is 'passed on (below min_bytes' 'ring\|direct' 3 \
    --mca coll_flash_direct_ranks 2
point 'direct_ranks 0: never' path_is 'passed on (below min_bytes' 'ring\|direct' 2 \
    --mca coll_flash_direct_ranks 0
point 'min_bytes 0: a ring' path_is ring 'direct\|passed on' 3 --mca coll_flash_min_bytes 0
on_node=no point 'on one node without rings: passed on' path_is 'passed on (below min_bytes' \
    'ring\|direct' 3
board=yes point 'on one node: over a board' path_is 'board (below min_bytes' 'ring\|direct' 3
# Blocks of 40004 bytes.
options --mca coll_flash_direct_bytes 150000
point 'not below direct_bytes' path_is 'passed on (below min_bytes' 'ring\|direct' 3
options
rounds=120012 point 'what goes in rounds is not direct' path_is 'doubling (below min_bytes' 'ring\|direct' 3 \
    --mca coll_flash_direct_bytes 1
rounds=120011 point 'but what is too large for them' path_is 'direct (below min_bytes' 'ring\|doubling' 3 \
    --mca coll_flash_direct_bytes 1

options --mca coll_flash_direct_bytes 1
for np in 2 3 5; do
    mpi "$np" -- test_reduce_scatter
done
for np in 1 4 6 7 8; do
    long mpi "$np" -- test_reduce_scatter
done
mpi 4 -x UCX_FLASH_TLS=tcp -- test_reduce_scatter
mpi 4 --mca coll_flash_progress off -- test_reduce_scatter
mpi 3 --mca coll_flash_segment_bytes 64 --mca coll_flash_depth 1 -- test_reduce_scatter
further_requests() { # NP
    mpi "$1" -- test_requests one_communicator many_communicators come_and_go reduce_meanwhile leak
    mpi "$1" -- test_in_turn
    mpi "$1" -- test_life
}
further_requests 2
long further_requests 5
mpi 2 -- test_threads several other_waits # bursts of allgathers would be libnbc's own matter
[[ ${FLASH_SANITIZER-} == thread ]] || mpi 2 -- test_threads persistent
mpi 3 -- test_users_code
mpi 3 -- test_arguments
mpi 3 -- test_cancel

plan
