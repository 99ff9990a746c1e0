#!/usr/bin/env bash
# Programs that their user may execute and not read: no process may read the memory of theirs.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of runner.bash
# shellcheck disable=SC2054 # commas are of a list of capabilities
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

cp "$programs/flash_tests" "$scratch/program"
chmod 0111 "$scratch/program"
# shellcheck disable=SC2034 # the runner's
if ((EUID == 0)); then
    # Root may read all files and all processes, but for these capabilities, which env no longer has.
    tool=(setpriv --bounding-set -dac_override,-dac_read_search,-sys_ptrace env)
fi

cd "$scratch"
if ! reason=$("${tool[@]}" ./program 2>&1) && [[ $reason != usage:* ]]; then
    echo "1..0 # SKIP such a program does not run here: ${reason##*$'\n'}"
    exit 0
fi
for np in 2 3 4; do
    for on_node in yes no; do
        mpi "$np" -- ./program test_rights unreadable_program
    done
    on_node=yes
    for transports in all ^xpmem posix,self,cma sm,self,tcp; do
        long mpi "$np" -x UCX_FLASH_TLS="$transports" -- ./program test_rights unreadable_program
    done
    mpi "$np" --mca coll_flash_algorithm ring -x UCX_TLS=shm,self -- ./program test_rights unreadable_program
done
plan
