#!/usr/bin/env bash
# Memory fails flash: what it says, and how operations and jobs end.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
program=$programs/test_faults

# ends_explaining TOPIC NP ...: the job ends with an error, not by a time limit, and the message is told.
ends_explaining() {
    local topic=$1 status=0
    shift
    run "$@" >"$log" 2>&1 || status=$?
    if ((status == 0 || status == 124 || status == 137)) || grep -q 'hangs in case' "$log"; then
        echo "mpirun ends with $status"
        cat "$log"
        return 1
    fi
    told "$topic"
}

# The nth allocation that flash makes on one rank fails, in MPI_Init at first: no flash, or no
# communicator, but no crash. Each of the first, then every third, in the short tier every eleventh, until
# there are no more.
ends_cleanly() {
    local nth status step=3
    [[ ${FLASH_TEST_TIER:-short} != short ]] || step=11
    for ((nth = 1; ; nth += nth < 10 ? 1 : step)); do
        status=0
        run 2 -- "${on_rank[@]}" 1 FLASH_TEST_FAULT=malloc \
            /usr/bin/env "FLASH_TEST_FAULT_CALL=$nth" "$program" works >"$log" 2>&1 || status=$?
        if ((status == 124 || status == 137)) || grep -e 'exited on signal' -e 'hangs in' "$log"; then
            echo "allocation $nth"
            cat "$log"
            return 1
        fi
        grep -q 'FLASH_TEST_FAULT: malloc fails' "$log" || break
    done
    ((nth > 40)) || { # far more than that are in MPI_Init alone
        echo "no allocation $nth"
        return 1
    }
}

if sanitized; then
    skip 'memory that cannot be had' 'sanitizers have allocators of their own'
else
    cases=(on_all on_one segments fallback scratch rooted)
    for np in 2 3; do
        mpi "$np" -- test_no_memory "${cases[@]}"
    done
    mpi 4 --mca coll_flash_progress off -- test_no_memory on_one
    mpi 3 -x UCX_FLASH_TLS=tcp -- test_no_memory on_one
    mpi 3 --mca coll_flash_segment_bytes 512 -- test_no_memory segments
    options --mca coll_flash_costs "$costs_folder/small_rings"
    mpi 3 -- test_no_memory shared
    options --mca coll_flash_algorithm ring
    select_coll ^flash
    mpi 3 -- test_no_memory fallback
    select_coll flash
    if [[ -n ${FLASH_COVERAGE-} ]]; then
        skip 'no memory in MPI_Init' "gcov's own memory, in flash's library, would fail as well"
    else
        point 'no memory in MPI_Init: no crash' ends_cleanly
    fi
    point 'no memory while a communicator is made: said, and the job ends' \
        ends_explaining no-memory-for-communicator 3 -- test_faults comm_memory
fi

plan
