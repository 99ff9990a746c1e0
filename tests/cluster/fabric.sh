#!/usr/bin/env bash
# On emulated hosts: whether flash serves a job where Open MPI's own messages go by another fabric than UCX's.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/run_on.bash"

if compgen -G '/sys/class/infiniband/*' >/dev/null; then
    echo '1..0 # SKIP there is an RDMA device: UCX may go by it'
    exit 0
fi

# outcome HOSTS RANKS SERVES TEXT [MPIRUN OPTION]... -- PROGRAM [ARGUMENT]...: flash is active on all ranks, or on
# none, and TEXT is told.
outcome() {
    local active='not active' not='does not serve'
    [[ $3 == no ]] || active=active not=serves
    run_on "$1" "$2" none --mca coll_flash_verbose 1 "${@:5}" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds $(($1 * $2)) "right, flash is $active" && holds $(($1 * $2)) "coll:flash: $not this job" &&
        holds + "$4"
}

active=$programs/test_version_linked # says whether flash is
declined='Open MPI reaches other nodes by a faster fabric than UCX, and coll_flash_any_fabric is no'

point '2 hosts x 2: each says by what UCX and Open MPI reach the other' \
    outcome 2 2 yes 'UCX reaches other nodes by tcp (eth0), Open MPI by btl tcp$' -- "$active"
if sanitized; then
    skip '2 hosts, Open MPI on a fast fabric' 'a sanitizer wants to be the first library'
else
    # seems VARIABLE=VALUE...: what runs a program for which Open MPI seems to be on another fabric.
    seems() {
        other=(/usr/bin/env "LD_PRELOAD=$programs/.libs/libmessages.so $programs/.libs/libother_fabric.so" "$@" "$active")
    }
    seems FLASH_TEST_PML=cm FLASH_TEST_MTL=psm2
    point '2 hosts x 2, Open MPI on a fast fabric: said, and flash does not serve' \
        outcome 2 2 no 'by tcp (eth0), Open MPI by mtl psm2$' -- "${other[@]}"
    point '2 hosts x 2, likewise, of which one rank knows alone: all say so, and flash does not serve' \
        outcome 2 2 no "$declined" -- /usr/bin/env OMPI_MCA_coll_flash_any_fabric=yes \
        "${on_rank[@]}" 1 OMPI_MCA_coll_flash_any_fabric=no "${other[@]}"
    point '2 hosts x 2, likewise, and coll_flash_any_fabric: flash serves' \
        outcome 2 2 yes 'Open MPI by mtl psm2$' --mca coll_flash_any_fabric yes -- "${other[@]}"
    point '1 host x 2, likewise: flash serves' outcome 1 2 yes 'with shared memory' -- "${other[@]}"
    seems FLASH_TEST_PML=cm FLASH_TEST_MTL=ofi
    point '2 hosts, libfabric on what it finds: flash does not serve' \
        outcome 2 1 no 'Open MPI by mtl ofi$' -- "${other[@]}"
    seems FLASH_TEST_PML=unknown
    point '2 hosts, an unknown PML: flash does not serve' outcome 2 1 no 'Open MPI by pml unknown$' -- "${other[@]}"
    seems FLASH_TEST_PML=monitoring
    point '2 hosts, a PML before the one that sends: its BTLs count, and flash serves' \
        outcome 2 1 yes 'Open MPI by btl ' -- "${other[@]}"
    seems FLASH_TEST_PML=ucx
    point '2 hosts, the PML ucx: flash serves' outcome 2 1 yes 'Open MPI by pml ucx$' -- "${other[@]}"
    # UCX has TCP alone, whatever devices the host has: its protocols are those for TCP.
    seems FLASH_TEST_RDMA=yes
    opened_anew() {
        outcome 2 1 yes 'by tcp (eth0)' "$@" -- "${other[@]}" && holds 2 'FLASH_TEST_RDMA: RNDV_THRESH=inf'
    }
    point '2 hosts, RDMA devices that UCX cannot use: the protocols for TCP' opened_anew
fi

# libfabric itself, where Open MPI has it. Emulated hosts have TCP alone, which Open MPI excludes unless it is told.
by_libfabric=(--mca pml cm --mca mtl ofi)
if "$OMPI_INFO" --parsable | grep '^mca:mtl:ofi:' >/dev/null; then
    point '2 hosts, libfabric that is told to use TCP: flash serves' outcome 2 1 yes 'Open MPI by mtl ofi$' \
        "${by_libfabric[@]}" --mca mtl_ofi_provider_include tcp -- "$active"
    point '2 hosts, libfabric that is told nothing but what not to use: flash does not serve' outcome 2 1 no \
        "$declined" "${by_libfabric[@]}" --mca mtl_ofi_provider_exclude shm -- "$active"
else
    skip '2 hosts, libfabric' 'this Open MPI has no mtl ofi'
fi

plan
