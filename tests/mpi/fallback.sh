#!/usr/bin/env bash
# The calls of <mpix_flash.h> without flash's component.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

select_coll ^flash
everything() { # NP
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_allgather
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_extension
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_extension_ends
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_own
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_two_callbacks
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_two_callbacks_arguments
    mpi "$1" -x FLASH_TEST_ACTIVE=0 -- test_float16
}
everything 1
everything 3
# From four ranks on Open MPI reduces long vectors otherwise than in place.
mpi 4 -x FLASH_TEST_ACTIVE=0 -- test_two_callbacks_arguments no_buffer one_sided
long everything 2
long everything 8

plan
