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

# ends_outside WHEN TEXT CALL: the call does not return, and says why, by its name.
ends_outside() {
    local status=0
    run 1 -- test_outside "$1" "$3" >"$log" 2>&1 || status=$?
    if ((status == 0 || status >= 124)); then # no end, or that of a fault
        echo "mpirun ends with $status:"
        cat "$log"
        return 1
    fi
    holds + "The $3() function was called $2" && holds 0 'came back' && holds 0 'ignal'
}
select_coll flash
# mpirun takes some seconds over a job that ends so.
for call in Flash_active {A,Ia}ll{gather,gatherv,reduce,toall,toallv}_compute \
    {R,Ir}educe_scatter{,_block}_compute; do
    beside point "MPIX_$call before MPI_Init" ends_outside before 'before MPI_INIT was invoked' "MPIX_$call"
    beside point "MPIX_$call after MPI_Finalize" \
        ends_outside after 'after MPI_FINALIZE was invoked' "MPIX_$call"
done

plan
