#!/usr/bin/env bash
# UCX or the system fail flash: what it says, and how operations end. no_memory.sh is about memory.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
program=$programs/test_faults

point 'no connection: said, with cause and remedy' explains no-connection \
    says 3 'cannot connect to another process' 3 -- test_faults connection
point 'failed transfers: said, with cause and remedy' explains transport-failed \
    says + 'failed in UCX: the operation ends' 2 -- test_faults transfers
for np in 2 3; do
    mpi "$np" -- test_faults transfers one_transfer one_receive memory_later
done
long mpi 4 -- test_faults transfers one_transfer one_receive memory_later
mpi 3 --mca coll_flash_progress off -- test_faults transfers one_transfer one_receive memory_later
mpi 3 -- test_faults connection_here

# UCX fails one rank for good: said by that one, after some seconds, and the others learn of it.
options --mca coll_flash_algorithm ring --mca coll_flash_ring_order rank
for np in 2 3 5; do
    more=()
    ((np == 3)) || more=(long)
    "${more[@]}" beside mpi "$np" -- test_faults no_sends
done
refuses=(says 1 'took a message of a coll/flash operation neither' 3 -- test_faults)
beside point 'no_receives: said, with cause and remedy' explains refused "${refuses[@]}" no_receives
for fault in no_memory_for_receives no_memory_for_sends; do
    beside point "$fault: said" "${refuses[@]}" "$fault"
done
beside mpi 5 --mca coll_flash_progress off -- test_faults no_receives
beside mpi 3 -- test_faults told_later
beside mpi 3 -- test_faults poor_receive
for np in 2 3 5; do
    more=()
    ((np == 3)) || more=(long)
    "${more[@]}" beside mpi "$np" -- test_faults no_receives_small
done
beside mpi 5 -- test_faults not_connected
long beside mpi 3 -x UCX_FLASH_TLS=tcp -- test_faults no_sends
beside mpi 3 -x UCX_FLASH_TLS=tcp -- test_faults no_receives
options --mca coll_flash_algorithm ring

for progress in on auto; do
    said=$([[ $progress == on ]] && echo 2 || echo 0) # by each rank
    whole=() # the one that is said
    [[ $progress == auto ]] || whole=(explains no-progress-thread)
    point "no thread, progress $progress: said $said times${whole:+, with cause and remedy}" \
        "${whole[@]}" says "$said" 'the system refused to start a thread' 2 \
        --mca coll_flash_progress "$progress" -x FLASH_TEST_FAULT=pthread_create -- \
        test_faults works
    point "no descriptor to sleep on, progress $progress: said $said times" \
        says "$said" 'UCX was built without support for threads' 2 \
        --mca coll_flash_progress "$progress" -x FLASH_TEST_FAULT=ucp_worker_get_efd -- \
        test_faults works
done
# By default a line that is asked for says so: of each rank, and of the job.
no_thread_is_told() {
    says 2 'no progress thread, data moves only inside MPI calls: UCX was built without' 2 --mca coll_flash_verbose 1 \
        -x FLASH_TEST_FAULT=ucp_worker_get_efd -- test_faults works &&
        holds 2 'serves this job (.*, without a progress thread on some rank)'
}
point 'no descriptor to sleep on, coll_flash_verbose 1: said' no_thread_is_told
no_thread_is_told_later() {
    says 2 'communicator 0: UCX is open on all ranks, without a progress thread on some rank' 2 --mca coll_flash_verbose 1 \
        --mca coll_flash_setup call -x FLASH_TEST_FAULT=ucp_worker_get_efd -- test_faults works
}
point 'likewise, where a call opens UCX' no_thread_is_told_later
thread_is_not_wanted() {
    says 0 'no progress thread' 2 --mca coll_flash_verbose 1 --mca coll_flash_progress off \
        -x FLASH_TEST_FAULT=ucp_worker_get_efd -- test_faults works && holds 0 'without a progress thread'
}
point 'likewise, and coll_flash_progress off: nothing is said' thread_is_not_wanted

point 'no thread for callbacks: said, with cause and remedy' explains no-callback-thread \
    says 1 'cannot start the thread that was to run' 3 -- test_faults callback_thread
mpi 2 --mca coll_flash_progress off -- test_faults callback_thread
mpi 3 --mca coll_flash_callback_thread 1 -x FLASH_TEST_CALLBACK_THREAD=1 \
    -x FLASH_TEST_FAULT=ucp_worker_get_efd -- test_faults works # UCX for one thread

# To both neighbours; a process that uses no ring has one to the next rank, by which nothing has gone.
point 'the endpoints are closed before their worker is destroyed' \
    says 3 'endpoints: 2 made, 2 closed before their worker' 3 -x FLASH_TEST_ENDPOINTS=1 -- test_faults works
point 'no progress thread: the endpoints are closed likewise' \
    says 3 'endpoints: 2 made, 2 closed before their worker' 3 --mca coll_flash_progress off \
    -x FLASH_TEST_ENDPOINTS=1 -- test_faults works

# In MPI_Init, on one rank: none uses flash.
for function in ucp_config_read ucp_init_version ucp_worker_create ucp_worker_get_address \
    ucp_ep_create; do
    point "$function fails on one rank: said once" says 1 'cannot use UCX' 3 -- \
        "${on_rank[@]}" 1 "FLASH_TEST_FAULT=$function" "$program" works
done

plan
