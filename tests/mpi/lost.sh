#!/usr/bin/env bash
# A rank dies in a job that goes on without it, or is late: the others are told who.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Every survivor ends with an error, then and at the next operation, and the dead rank is named:
# as gone by its neighbours, as at fault by those who hear of it. mpirun's status is that of the
# dead rank.
rank_dies() {
    local np=$1
    shift
    FLASH_TEST_TIMEOUT=60 run "$np" --enable-recovery --mca coll_flash_probe_seconds 1 "$@" \
        >"$log" 2>&1 || :
    holds $((np - 1)) 'at last: MPI_ERR_OTHER' && holds $((np - 1)) 'once more: MPI_ERR_OTHER' &&
        holds 0 'called right' && tells + 'Gone:  rank 1 of MPI_COMM_WORLD' || return
    ((np <= 3)) || tells + 'At fault:  rank 1 of MPI_COMM_WORLD'
}

for call in gather reduce; do
    for np in 2 3 4; do
        point "np $np, $call: a rank dies" tried rank_dies "$np" -- test_lost dies "$call"
    done
    point "np 3, $call, tcp: a rank dies" \
        tried rank_dies 3 -x UCX_FLASH_TLS=tcp -- test_lost dies "$call"
    point "np 4, $call, no progress thread: a rank dies" \
        tried rank_dies 4 --mca coll_flash_progress off -- test_lost dies "$call"
done

# A rank that is late: a warning that tells what is waited for, and all is well in the end.
rank_is_late() {
    run 3 --mca coll_flash_stuck_seconds 2 --mca orte_base_help_aggregate 0 "$@" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 3 'at last: success' && holds 0 'called right' &&
        tells 2 'has done so for 2 seconds' &&
        tells + 'Waits for: *rank 1 of MPI_COMM_WORLD to take a message' &&
        tells + 'In the ring: *step . of 3, block of rank . of the communicator' &&
        tells 2 "Operation: *$operation, number 3 of communicator MPI_COMM_WORLD" &&
        tells 2 'The operation waits on'
}
# Given up: each rank ends with an error, the late one included.
late_rank_is_given_up() {
    FLASH_TEST_TIMEOUT=60 run 3 --enable-recovery --mca coll_flash_stuck_seconds 2 \
        --mca coll_flash_stuck_error 1 "$@" >"$log" 2>&1 || :
    holds 3 'at last: MPI_ERR_OTHER' && holds 3 'once more: MPI_ERR_OTHER' &&
        holds 0 'called right' && tells + 'That rank is given up'
}
for operation in allgather reduce-scatter; do
    call=gather
    [[ $operation == allgather ]] || call=reduce
    point "$operation: a rank is late" tried rank_is_late -- test_lost late "$call"
    point "$operation: a late rank is given up" tried late_rank_is_given_up -- test_lost late "$call"
done

plan
