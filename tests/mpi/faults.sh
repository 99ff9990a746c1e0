#!/usr/bin/env bash
# UCX, the system or memory fail flash: what it says, and how operations end.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_min_bytes 0
program=$programs/test_faults

point 'no connection: said' says 1 'cannot connect to another process' 3 -- test_faults connection
point 'failed transfers: said' says 1 'failed in UCX: the operation ends' 2 -- \
    test_faults transfers
for np in 2 3 4; do
    mpi "$np" -- test_faults transfers one_transfer memory_later
done
mpi 3 --mca coll_flash_progress off -- test_faults transfers one_transfer memory_later
mpi 3 -- test_faults connection_here

# ends_saying TEXT NP ...: the job ends with an error, not by a time limit, and TEXT is told once.
ends_saying_once() {
    local text=$1 status=0
    shift
    run "$@" >"$log" 2>&1 || status=$?
    if ((status == 0 || status == 124 || status == 137)) || grep -q 'hangs in case' "$log"; then
        echo "mpirun ends with $status"
        cat "$log"
        return 1
    fi
    tells 1 "$text"
}
ends_saying() {
    tried ends_saying_once "$@"
}

if sanitized; then
    skip 'memory that cannot be had' 'sanitizers have allocators of their own'
else
    mpi 2 -- test_faults memory
    mpi 2 -- test_faults memory_here
    mpi 3 -- test_faults memory_here
    mpi 4 --mca coll_flash_progress off -- test_faults memory_here
    mpi 3 -x UCX_FLASH_TLS=tcp -- test_faults memory_here
    point 'no memory while a communicator is made: said, and the job ends' \
        ends_saying 'no memory while a communicator was made' 3 -- test_faults comm_memory
fi

for progress in on auto; do
    said=$([[ $progress == on ]] && echo 1 || echo 0)
    point "no thread, progress $progress: said $said times" \
        says "$said" 'the system refused to start a thread' 2 \
        --mca coll_flash_progress "$progress" -x FLASH_TEST_FAULT=pthread_create -- \
        test_faults works
    point "no descriptor to sleep on, progress $progress: said $said times" \
        says "$said" 'UCX was built without support for threads' 2 \
        --mca coll_flash_progress "$progress" -x FLASH_TEST_FAULT=ucp_worker_get_efd -- \
        test_faults works
done

# In MPI_Init, on one rank: none uses flash.
for function in ucp_config_read ucp_init_version ucp_worker_create ucp_worker_get_address \
    ucp_ep_create; do
    point "$function fails on one rank: said once" says 1 'cannot use UCX' 3 -- \
        "${on_rank[@]}" 1 "FLASH_TEST_FAULT=$function" "$program" works
done

plan
