#!/usr/bin/env bash
# The calls of <mpix_flash.h> with a thread of flash's for the callbacks.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring --mca coll_flash_callback_thread 1 -x FLASH_TEST_CALLBACK_THREAD=1
multiple=(-x FLASH_TEST_LEVEL=multiple)
inside=() # all cases: also those whose callbacks call MPI themselves, and wait in it
if [[ ${FLASH_SANITIZER-} == thread ]]; then
    skip 'callbacks that call MPI' "ThreadSanitizer sees none of the order in Open MPI's own calls"
    inside=(small medium big blocking two_in_flight user_operation user_type)
fi
mpi 1 -- test_extension
extension_of() { # NP
    mpi "$1" "${multiple[@]}" -- test_extension "${inside[@]}"
    mpi "$1" "${multiple[@]}" -- test_extension_ends free_communicators
}
extension_of 2
extension_of 3
for np in 4 5 8; do
    long extension_of "$np"
done
tests=(test_own test_two_callbacks test_float16 "test_pending any_order blocking several_in_flight fails"
    test_threads test_failures)
# One case of each, for its messages alone.
declare -A told_by=([test_own]=types [test_two_callbacks]=blocking [test_float16]=sums [test_pending]=blocking
    [test_threads]=several [test_failures]=consume)
for test in "${tests[@]}"; do
    read -ra words <<<"$test"
    long mpi 2 -- "${words[@]}"
    mpi 3 -- "${words[@]}"
    long mpi 5 -- "${words[@]}"
    point "the thread is there: ${words[0]}" \
        says + "flash's thread makes the callbacks" 3 --mca coll_flash_verbose 2 -- "${words[0]}" \
        "${told_by[${words[0]}]}"
done
other_settings() { # TEST
    mpi 3 --mca coll_flash_segment_bytes 4096 -- "$1"
    mpi 3 --mca coll_flash_algorithm pairwise -- "$1"
    mpi 3 --mca coll_flash_progress off -- "$1"
}
other_settings test_two_callbacks
long other_settings test_own
mpi 3 "${multiple[@]}" --mca coll_flash_progress off -- test_extension "${inside[@]}"

# The key has the last word.
mpi 3 -x FLASH_TEST_CALLBACK_THREAD=0 -- test_info callback_thread

select_coll ^flash
mpi 3 -x FLASH_TEST_ACTIVE=0 -- test_extension

plan
