#!/usr/bin/env bash
# recdbl.sh: plain calls by recursive doubling, with Open MPI's own messages: what rings do must come of them as
# well. recdbl_requests.sh has their requests.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/plain.bash"

# shellcheck disable=SC2034 # the runner's
algorithm=recdbl

# ------------------------------------------------------------------ which calls

plain='I[a-z_]* of [1-9][0-9]* bytes on communicator 0' # an empty call falls back
path_is() { # TEXT OTHER NP ...: plain calls take the way of that text, and none the other
    says + "$plain: $1" "${@:3}" && holds 0 "$plain: \\($2\\)"
}
gather=(--mca coll_flash_verbose 2 -- test_allgather counts)
reduce=(--mca coll_flash_verbose 2 -- test_reduce_scatter same_bits)
point 'allgathers: recursive doubling' path_is 'recdbl (see algorithm' 'falls back\|shm\|pairwise' 3 "${gather[@]}"
point 'reduce-scatters: recursive doubling' path_is 'recdbl (see algorithm' 'falls back\|shm\|pairwise' 3 "${reduce[@]}"
by_cost() { # TEXT OTHER NP ...: chosen by the costs in `rows`
    printf 'node allgather %s\n' "${rows[@]}" >"$scratch/costs"
    algorithm=auto path_is "$1" "$2" "$3" --mca coll_flash_costs "$scratch/costs" "${@:4}"
}
rows=('fallback 1 0 0 0' 'recdbl 0 0 0 0' 'ring 2 0 0 0')
point 'by its cost' by_cost 'recdbl (the ring costs more' 'falls back' 4 "${gather[@]}"
point 'three ranks: never by their cost' by_cost 'falls back' recdbl 3 "${gather[@]}"
rows=('fallback 0 1 0 0' 'recdbl 0 0 1 0')
point 'four ranks: two rounds cost less than three messages' by_cost recdbl 'falls back' 4 "${gather[@]}"
on_one_node() {
    on_node=no by_cost 'falls back (on one node' recdbl 4 "${gather[@]}"
}
point 'on one node without rings: falls back' on_one_node
counted() {
    says 1 'calls by recursive doubling  *[1-9][0-9]* ' 3 --mca coll_flash_summary 1 -- \
        test_reduce_scatter same_bits && holds 1 'calls by the fallback  *0 '
}
point 'the table counts them' counted
too_long() { # of all blocks of that program's allgather: 512 KiB of each rank
    says + 'Iallgather of 1572864 bytes on communicator 0: ring' 3 --mca coll_flash_verbose 2 -- test_others own
}
point 'more than 1 MiB in all: as by auto' too_long

# ---------------------------------------------------------------------- results

plain_results
for np in 2 3; do
    mpi "$np" -- test_users_code
    mpi "$np" -- test_arguments
done
mpi 4 -- test_buffers no_buffer no_strided_buffer null_buffer many

by_recdbl() {
    says + "$plain: recdbl (" "$1" --mca coll_flash_verbose 2 "${@:2}"
}
calls_of() { # NP
    point "np $1, no longer than a message may be" by_recdbl "$1" -- test_recdbl_calls gaps wide_gaps
    point "np $1, persistent receives" by_recdbl "$1" -- test_recdbl_calls persistent_receives
    # Merged calls of the extension, whose plain collectives are so.
    (($1 == 3)) || algorithm=auto point "np $1, sums of 16 bits" by_recdbl "$1" --mca coll_flash_costs "$costs_folder/recdbl" \
        -- test_recdbl_calls float16
}
long calls_of 2
calls_of 3
calls_of 4
long calls_of 5
# Other messages of Open MPI's, whose requests are other ones.
if [[ ${FLASH_SANITIZER-} == thread ]]; then
    skip 'over pml ucx' "Open MPI's pml ucx crashes with ThreadSanitizer, without flash"
elif ! "$OMPI_INFO" --parsable | grep -q '^mca:pml:ucx:'; then
    skip 'over pml ucx' 'this Open MPI has none'
else
    over_ucx=(--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any)
    over_ucx_of() { # NP
        mpi "$1" "${over_ucx[@]}" -- test_recdbl_calls persistent_receives
        mpi "$1" "${over_ucx[@]}" -- test_allgather
    }
    long over_ucx_of 2
    over_ucx_of 3
    long over_ucx_of 4
fi

plan
