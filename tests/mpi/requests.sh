#!/usr/bin/env bash
# Many requests, communicators and threads.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
cases=(one_communicator many_communicators free_active free_types free_communicators come_and_go
    reduce_meanwhile leak)
for name in "${cases[@]}"; do
    mpi 5 -- test_requests "$name"
    long mpi 2 -- test_requests "$name"
    more=()
    [[ $name == one_communicator || $name == free_* || $name == leak ]] || more=(long)
    "${more[@]}" mpi 4 --mca coll_flash_progress off -- test_requests "$name"
done
# Segments so short that both threads reduce all the time, on cores of their own.
long mpi 4 --bind-to none --mca coll_flash_progress on --mca coll_flash_segment_bytes 512 -- \
    test_requests reduce_meanwhile
# A long operation, of which a message is on its way at a time.
mpi 2 --mca coll_flash_segment_bytes 64 --mca coll_flash_max_sends 1 -- test_requests outlasted
for np in 2 3; do
    mpi "$np" -- test_requests many_pending
done
mpi 1 -- test_requests
long mpi 8 -- test_requests "${cases[@]}"

for np in 1 2 3; do
    mpi "$np" -- test_cancel
done

by_threads() { # NP [OPTION]...
    mpi "$@" -- test_threads
    mpi "$@" -- test_in_turn
}
by_threads 2
by_threads 4
by_threads 2 --mca coll_flash_progress off
long by_threads 4 --mca coll_flash_progress off
select_coll ^flash
mpi 1 -- test_cancel
mpi 2 -- test_cancel
if [[ ${FLASH_SANITIZER-} == thread ]]; then
    skip 'test_threads, test_in_turn (coll ^flash)' "ThreadSanitizer sees none of the order in Open MPI's own collectives"
else
    mpi 3 -- test_threads several other_waits persistent # bursts: libnbc's own matter
    mpi 3 -- test_in_turn
fi

plan
