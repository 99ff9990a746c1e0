#!/usr/bin/env bash
# Ranks that differ: another release of flash, or none, on some of them, or a PMIx that does not tell. Then no rank
# uses flash, which is said, and no rank waits in MPI_Init.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

linked=$programs/test_version_linked # with flash's library
libraries=$top_builddir/ompi_coll_flash/.libs

# A copy of the build whose library says that it is of another release.
other=$scratch/other # points that run beside each other have a scratch folder of their own
mkdir "$other"
sed 's/mpix_flash \([0-9]\)/mpix_other \1/' "$libraries/libmpix_flash.so.1" \
    >"$other/libmpix_flash.so.1"

# differ NP RANKS VARIABLE=VALUE PROGRAM: those ranks have no flash, or another one; none uses it.
differ() {
    local np=$1 ranks=$2 setting=$3 program=$4
    explains releases-differ "$np" -- "${on_rank[@]}" "$ranks" "$setting" "$program" &&
        holds "$np" 'right, flash is not active'
}
# PMIx fails for some ranks, and tells all others: none uses flash, and none waits in MPI_Init.
pmix_fails() { # NP RANKS STATUS
    says "$1" 'right, flash is not active' "$1" -- "${on_rank[@]}" "$2" "FLASH_TEST_PMIX=$3" /usr/bin/env \
        LD_PRELOAD="$programs/.libs/libmessages.so $programs/.libs/libpmix_fails.so" "$linked" && holds + 'FLASH_TEST_PMIX: .* is not told' &&
        holds + 'PMIx \(tells of\|did not tell\)'
}
if sanitized; then
    skip 'PMIx fails on one rank' 'a sanitizer wants to be the first library'
else
    timeout=-24 error=-1 not_found=-46 # as PMIx has them
    beside point 'PMIx fails on one rank of three: none uses flash' pmix_fails 3 1 "$timeout"
    beside point 'PMIx fails on one rank of five for one other: none uses flash' pmix_fails 5 3 "$error 2"
    for rank in 0 1 2 3 4; do
        long beside point "PMIx fails on rank $rank of five" pmix_fails 5 "$rank" "$not_found"
        long beside point "PMIx fails on rank $rank of five for the next one" pmix_fails 5 "$rank" \
            "$timeout $(((rank + 1) % 5))"
    done
fi

if sanitized; then
    skip 'another release on one rank' 'a sanitizer has its own way to find libraries'
else
    beside point 'another release on one rank: said, and none uses flash' \
        differ 3 1 "LD_LIBRARY_PATH=$other" "$linked"
    both_are_named() {
        differ 2 0 "LD_LIBRARY_PATH=$other" "$linked" &&
            holds + 'Rank . of MPI_COMM_WORLD:  mpix_flash [0-9]' &&
            holds + 'Rank . of MPI_COMM_WORLD:  mpix_other [0-9]'
    }
    beside point 'both releases are named' both_are_named
fi
# PMIx 5 is asked for what was never sent, for a quarter of a minute each time, and ranks poll meanwhile.
without=(0 '1 3' '0 2 3 4') often='0|1 3'
if ((ompi_major >= 5)); then
    often=none # five ranks poll for two minutes
    beside point 'no flash on rank 0 of 2: said, and none uses flash' differ 2 0 OMPI_MCA_coll=^flash "$linked"
else
    without+=(1 4 '0 1')
fi
for ranks in "${without[@]}"; do
    rarely=()
    [[ "|$often|" == *"|$ranks|"* ]] || rarely=(long)
    "${rarely[@]}" beside point "no flash on rank $ranks of 5: said, and none uses flash" \
        differ 5 "$ranks" OMPI_MCA_coll=^flash "$linked"
done
# Rank 0 asks PMIx for the releases of ranks 1, 2, 4 and 5 of 6.
if ((ompi_major < 5)); then
    beside point 'no flash on rank 3 of 6: said, and none uses flash' differ 6 3 OMPI_MCA_coll=^flash "$linked"
else
    long beside point 'no flash on rank 3 of 6: said, and none uses flash' differ 6 3 OMPI_MCA_coll=^flash "$linked"
fi

plan
