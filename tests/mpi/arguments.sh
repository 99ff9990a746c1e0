#!/usr/bin/env bash
# Bad arguments to the calls of <mpix_flash.h>, and calls where MPI is not there.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for selection in flash ^flash; do
    select_coll "$selection"
    for np in 1 2 3; do
        mpi "$np" -- test_arguments
    done
done

# ends_outside WHEN TEXT CALL NAME: the call does not return, and says why, by its name.
ends_outside() {
    ! run 1 -- test_outside "$1" "$3" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds + "The $4() function was called $2" && holds 0 'came back' && holds 0 'Segmentation'
}
select_coll flash
for call in active:MPIX_Flash_active allgather:MPIX_Iallgather_compute \
    iallgatherv:MPIX_Iallgatherv_compute ireduce_scatter:MPIX_Ireduce_scatter_compute \
    ireduce_scatter_block:MPIX_Ireduce_scatter_block_compute iallreduce:MPIX_Iallreduce_compute \
    ialltoall:MPIX_Ialltoall_compute ialltoallv:MPIX_Ialltoallv_compute; do
    point "${call#*:} before MPI_Init" \
        ends_outside before 'before MPI_INIT was invoked' "${call%:*}" "${call#*:}"
    point "${call#*:} after MPI_Finalize" \
        ends_outside after 'after MPI_FINALIZE was invoked' "${call%:*}" "${call#*:}"
done

plan
