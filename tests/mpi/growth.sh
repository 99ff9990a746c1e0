#!/usr/bin/env bash
# Thousands of communicators, datatypes and operations leave nothing behind; messages of operations that a receiver has
# not begun take bounded memory there.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
mpi 2 -- test_growth
long mpi 3 --mca coll_flash_progress off -- test_growth

# As between nodes, UCX sends at once what the receiver has no place for.
eager=(-x UCX_FLASH_RNDV_THRESH=inf -x UCX_FLASH_ZCOPY_THRESH=inf)
long mpi 2 "${eager[@]}" -- test_outstanding
mpi 3 "${eager[@]}" -- test_outstanding
# A window so short that a rank takes no more messages of a reduction whose callbacks wait.
mpi 3 --mca coll_flash_segment_window 1 -- test_outstanding callback_waits

# What the extension has without flash's component.
select_coll ^flash
options -x FLASH_TEST_ACTIVE=0
long mpi 2 -- test_growth

plan
