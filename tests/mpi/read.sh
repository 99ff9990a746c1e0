#!/usr/bin/env bash
# read.sh: allgathers within a node that read each other's memory: what goes through shared memory must come of
# them as well.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/plain.bash"

# shellcheck disable=SC2034 # the runner's
shm=auto on_node=no

# ------------------------------------------------------------------ which calls

plain='Iallgather.* of [0-9]* bytes on communicator 0'
goes() { # NP TEXT OTHER [MPIRUN OPTION]... -- PROGRAM...: plain calls take the way of that text, and none the other
    says + "$plain: $2" "$1" --mca coll_flash_verbose 2 "${@:4}" && holds 0 "$plain: \($3\)"
}
point 'two ranks, long blocks, which are read' goes 2 shm 'falls back' -- test_others own
may_not() {
    goes 2 'falls back' shm -- "${on_rank[@]}" 1 FLASH_TEST_FAULT=process_vm_readv \
        "$programs/test_faults" gathers && holds 1 'shared memory without reading: ' &&
        holds 2 'shm auto without reading'
}
point 'one rank may not read: said, and long blocks fall back on all' may_not
shm=copy
point 'copies are asked for: long blocks, too' goes 2 shm 'falls back' -- test_others own
point 'more ranks need not read' goes 3 shm 'falls back' -- test_allgather counts

# ---------------------------------------------------------------------- results

shm=read
mpi_on_many -- test_allgather
mpi 4 --mca coll_flash_progress off -- test_allgather
mpi 3 -- test_arguments
mpi 4 -- test_buffers no_buffer no_strided_buffer null_buffer many

# --------------------------------------------------------------------- requests

plain_requests
plain_random

# --------------------------------------------------------------------- failures

rights_are_lost() { # NP
    mpi "$1" -- test_faults unreadable_at_first unreadable
    mpi "$1" -- test_rights each all
    own_job mpi "$1" -- test_rights filter
}
long rights_are_lost 2
rights_are_lost 3
long rights_are_lost 4
point 'a right that is lost: said once by each rank' says 2 'cannot be read: such blocks are copied' 2 \
    --mca coll_flash_verbose 1 -- test_rights each all
shm=auto
mpi 2 -- test_rights each all

plan
