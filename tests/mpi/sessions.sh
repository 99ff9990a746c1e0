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
options --mca coll_flash_algorithm ring
# opens_again NP: three tries, since one may end with 75, see test_sessions.c.
opens_again() {
    local status
    for _ in 1 2 3; do
        status=0
        run "$1" -- test_sessions again $((FLASH_TEST_TIMEOUT / 4)) || status=$?
        ((status == 75)) || break
        echo '# a second session was not to be had' >&3
    done
    return $status
}
exec 3>&1 # past the point's output
for np in 1 2 3 5; do
    for how in alone empty world around; do
        mpi "$np" -- test_sessions "$how"
    done
    point "np $np test_sessions again" opens_again "$np"
done
point 'coll_flash_verbose 1: why they are not served' \
    says + 'does not serve communicator .*: of a session, or by MPI_Comm_create_from_group' 2 \
    --mca coll_flash_verbose 1 -- test_sessions world

plan
