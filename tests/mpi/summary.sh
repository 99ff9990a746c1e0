#!/usr/bin/env bash
# The table that MPI_Finalize prints on request: what was served, what was not and why, once a job.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# What is told as exposed, and as hidden.
for np in 1 2 3 5; do
    mpi "$np" -- test_exposed
done
mpi 3 --mca coll_flash_progress off -- test_exposed
mpi 3 --mca coll_flash_callback_thread 1 -- test_exposed

summary=(--mca coll_flash_summary 1)

# row TITLE VALUE: the table says so of each rank, by a least and a most.
row() {
    holds 1 "^  $1  *$2  *[0-9.]*  *$2\$"
}

# rows COUNT [TITLE VALUE]... NP ...: the table comes once, and its rows say so.
rows() {
    local titles=() values=()
    while [[ ! $1 =~ ^[1-9]$ ]]; do
        titles+=("$1")
        values+=("$2")
        shift 2
    done
    says 1 "^coll/flash, $1 ranks in MPI_COMM_WORLD" "$@" || return 1
    for k in "${!titles[@]}"; do
        row "${titles[k]}" "${values[k]}" || return 1
    done
}

# One gather of 512 KiB blocks.
point 'a call that flash serves' \
    rows 'calls by the ring' 1 '  their blocks, MiB' 1.5 'calls by the fallback' 0 \
    3 "${summary[@]}" -- test_others own
point 'of five ranks' \
    rows 'calls by the ring' 1 '  their blocks, MiB' 2.5 5 "${summary[@]}" -- test_others own
point 'a call for which the ring costs more' \
    rows 'calls by the ring' 0 'calls by the fallback' 1 '  why: the ring costs more' 1 \
    3 "${summary[@]}" --mca coll_flash_costs "$costs_folder/fallback" -- test_others own
point 'a call too small for a ring, and pairwise' \
    rows 'calls by the ring' 0 'calls pairwise' 3 'calls by the fallback' 0 \
    2 "${summary[@]}" --mca coll_flash_costs "$costs_folder/pairwise" -- test_async reduce_scatter
nothing() {
    says 1 'nothing went by the ring or pairwise' 3 "${summary[@]}" --mca coll_flash_costs "$costs_folder/fallback" \
        -- test_others own && holds 0 'hidden: '
}
point 'where there was nothing to hide' nothing
on_one_node() {
    on_node=no rows 'calls by the fallback' 1 '  why: on one node (on_node)' 1 "$@"
}
point 'a call on one node' on_one_node 3 "${summary[@]}" -- test_others own
point 'a reduction that is not commutative' \
    rows 'calls by the fallback' 36 '  why: operation or type' 36 \
    2 "${summary[@]}" --mca coll_flash_algorithm ring -- test_reduce_scatter user_operations

callbacks() {
    says 1 'their callbacks  *[1-9]' 3 "${summary[@]}" -- test_extension blocking &&
        holds 1 'these in flight, s  *[0-9.]*  *[0-9.]*  *[0-9.]*$' &&
        holds 1 '^  hidden: [0-9.]* %$'
}
point 'callbacks, and how long it was under way' callbacks
point 'one rank asks for it' \
    says 1 'ranks in MPI_COMM_WORLD' 3 -- \
    "${on_rank[@]}" 1 OMPI_MCA_coll_flash_summary=1 "$programs/test_others" own
unserved() {
    says 1 'ranks in MPI_COMM_WORLD' 3 "${summary[@]}" -x FLASH_TEST_ACTIVE=0 \
        -x UCX_FLASH_TLS=self -- test_extension active user_type &&
        holds 1 'why: communicator not served  *[1-9]'
}
point 'a job that flash does not serve' unserved
point 'none unless asked for' says 0 'ranks in MPI_COMM_WORLD' 3 -- test_others own

plan
