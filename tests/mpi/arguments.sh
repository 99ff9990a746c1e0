#!/usr/bin/env bash
# Bad arguments to the calls of <mpix_flash.h>.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

for selection in flash ^flash; do
    select_coll "$selection"
    for np in 1 2 3; do
        mpi "$np" -- test_arguments
    done
done

plan
