#!/usr/bin/env bash
# Communicators that are set up by their first calls: UCX is opened then, and not by MPI_Init.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

algorithm=ring
program=$programs/test_setup
for np in 2 3 5; do
    mpi "$np" --mca coll_flash_blocking yes -- test_setup opens late communicators waiting threads
done
algorithm=pairwise mpi 3 -- test_setup opens late communicators

# UCX is not usable on one rank: its calls, and those of all others, fall back, also those that have waited.
refused() { # NP RANK
    says 1 'cannot use UCX' "$1" --mca coll_flash_blocking yes --mca coll_flash_verbose 1 -- "${on_rank[@]}" "$2" \
        UCX_FLASH_TLS=nonsense "$program" late communicators waiting threads &&
        holds + 'communicator .*: UCX is not usable on all ranks: calls by messages fall back' &&
        holds 0 'UCX is open on all ranks' && told ucx-not-usable
}
point 'np 2: UCX is not usable on one rank: said, and all calls fall back' refused 2 1
point 'np 3: likewise' refused 3 0

point 'a rank that is late: said, with cause and remedy, and all goes well' explains set-up-stalled \
    says + 'waits for all ranks to make their first such call' 3 --mca coll_flash_stall_seconds 1 -- test_setup slow
# Programs that are linked with flash: random calls of all kinds, the extension's among them.
mpi 3 --mca coll_flash_setup call -- random_ops
plan
