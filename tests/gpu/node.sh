#!/usr/bin/env bash
# What is said of a node whose driver, devices or shared memory do not serve several ranks: cause and remedy.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
: "${top_srcdir:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${top_builddir:=$(cd ../.. && pwd)}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2034 # tap.bash's
output=$scratch/output
# shellcheck source=/dev/null
source "$top_srcdir/tests/tap.bash"

cp "$top_builddir/tests/gpu/.libs/libodd.so" "$scratch/libcuda.so.1"
mkdir "$scratch/empty"
: >"$scratch/empty/libcuda.so.1"
unset CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY
export LD_LIBRARY_PATH=$scratch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# tells STATUS TEXT RANKS [FOLDER]: that is told of the node, and the remedy if the status is not 0.
tells() {
    local status=0
    "$top_builddir/tests/gpu/node" "${@:3}" >"$scratch/said" || status=$?
    cat "$scratch/said"
    [[ $status == "$1" ]] && grep -e "$2" "$scratch/said" && { (($1 == 0)) || grep ' Remedy: ' "$scratch/said"; }
}

# A little memory, where that may be mounted.
# shellcheck disable=SC2016 # expanded by the inner shell
with_little_memory() {
    unshare --mount bash -euc 'mount -t tmpfs -o size=16m tmpfs "$1" && "$2" 1 "$1"' - "$scratch/empty" \
        "$top_builddir/tests/gpu/node" >"$scratch/said" && return 1
    cat "$scratch/said"
    grep 'has less than 256 MiB free.*Remedy: mount -o remount' "$scratch/said"
}

mkdir -p "$scratch/pipes"
: >"$scratch/pipes/control"

ODD_NAME='an odd device' point 'a device that serves' tells 0 'device 0: an odd device' 2 "$scratch"
point 'no driver' env LD_LIBRARY_PATH="$scratch/empty" bash -c "
    $(declare -f tells); scratch=$scratch top_builddir=$top_builddir; tells 2 'there is no CUDA driver' 1 $scratch"
ODD_INIT=100 point 'no device' tells 2 'finds no device' 1 "$scratch"
ODD_DEVICES=0 point 'no device in MIG mode' tells 2 'nvidia-smi mig -cgi' 1 "$scratch"
ODD_INIT=100 CUDA_VISIBLE_DEVICES='' point 'CUDA_VISIBLE_DEVICES is empty' \
    tells 2 'CUDA_VISIBLE_DEVICES is "" and names none' 1 "$scratch"
ODD_INIT=803 point "another version of the kernel's module" tells 2 'are of different versions' 1 "$scratch"
ODD_INIT=999 point 'cuInit fails' tells 2 'cuInit returns 999' 1 "$scratch"
ODD_MODE=2 point 'prohibited' tells 2 'is in compute mode PROHIBITED' 1 "$scratch"
ODD_MODE=3 point 'exclusive mode, several ranks' tells 2 'is in compute mode EXCLUSIVE_PROCESS' 2 "$scratch"
ODD_MODE=3 point 'exclusive mode, a rank' tells 0 'devices: 1' 1 "$scratch"
ODD_MODE=3 ODD_DEVICES=2 point 'exclusive mode, a device for each rank' tells 0 'devices: 2' 2 "$scratch"
ODD_MODE=3 CUDA_MPS_PIPE_DIRECTORY=$scratch/pipes point 'exclusive mode, with MPS' tells 0 'devices: 1' 2 "$scratch"
ODD_NAME='an odd device MIG 1g.10gb' point 'a MIG instance' \
    tells 0 'MIG instance.*Remedy, for figures of a whole GPU' 1 "$scratch"
if grep -q '^CUDA_MAJOR = [1-9]' "$top_builddir/tests/gpu/Makefile"; then
    ODD_VERSION=11040 point 'a driver that is older than the toolkit' \
        tells 2 'is one for CUDA 11.4, older than CUDA' 1 "$scratch"
else
    skip 'a driver that is older than the toolkit' 'built without cuBLAS'
fi
point 'no such folder for shared memory' tells 1 "there is no $scratch/none" 1 "$scratch/none"
if unshare --mount true 2>/dev/null; then
    point 'little shared memory' with_little_memory
else
    skip 'little shared memory' 'nothing may be mounted here'
fi
plan
