#!/usr/bin/env bash
# Thousands of communicators, datatypes and operations leave nothing behind.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

options --mca coll_flash_algorithm ring
mpi 2 -- test_growth
long mpi 3 --mca coll_flash_progress off -- test_growth

# What the extension has without flash's component.
select_coll ^flash
options -x FLASH_TEST_ACTIVE=0
mpi 2 -- test_growth

plan
