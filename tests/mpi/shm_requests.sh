#!/bin/bash
# shm_requests.sh: requests of calls through the slots of shared memory, of all kinds, and random calls.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/plain.bash"

# shellcheck disable=SC2034 # the runner's
shm=auto on_node=no
# None is read from where it is.
shm=copy

plain_requests
plain_random --mca coll_flash_algorithm ring

plan
