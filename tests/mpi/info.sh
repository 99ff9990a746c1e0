#!/usr/bin/env bash
# Info keys: what a program fixes for one communicator.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for np in 2 3 5; do
    mpi "$np" --mca coll_flash_algorithm ring -- test_info
done

# Of four small allgathers two take the ring, and two are left to their costs.
choice_is_heard() {
    run 3 --mca coll_flash_verbose 2 -- test_info path >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 6 'Iallgather of 12 bytes .*: ring' &&
        holds 6 'Iallgather of 12 bytes .*: falls back (the ring costs more'
}
point 'mpix_flash_algorithm' choice_is_heard

point 'a number of pieces that cannot be is told, with cause and remedy' explains info-ignored \
    says 2 'Value:  many$' 2 -- test_info ignored
point 'segments that cannot be are told' says 2 'Value:  63$' 2 -- test_info too_short
no_answer() {
    says 2 'Value:  perhaps$' 2 -- test_info no_answer && holds 2 'give false or true'
}
point 'an answer that is none is told, and what can be' no_answer

# Nothing comes of them where flash does not serve.
mpi 1 -- test_info path segments persistent callback_thread
select_coll ^flash
mpi 3 -- test_info path callback_thread

plan
