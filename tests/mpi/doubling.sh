#!/usr/bin/env bash
# doubling.sh: plain calls in a few rounds of Open MPI's own messages: what rings do must come of them as
# well. doubling_requests.sh has their requests.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/plain.bash"

# shellcheck disable=SC2034 # the runner's
rounds=67108864

# ------------------------------------------------------------------ which calls

plain='I[a-z_]* of [1-9][0-9]* bytes on communicator 0' # nothing is passed on
path_is() { # TEXT OTHER NP ...: plain calls take the way of that text, and none the other
    says + "$plain: $1" "${@:3}" && holds 0 "$plain: \\($2\\)"
}
gather=(--mca coll_flash_verbose 2 -- test_allgather counts)
options --mca coll_flash_min_bytes 0
point 'a ring where that is worth its while' path_is ring doubling 3 "${gather[@]}"
options --mca coll_flash_min_bytes 1000000000
reduce=(--mca coll_flash_verbose 2 -- test_reduce_scatter same_bits)
point 'allgathers: rounds' path_is 'doubling (below twice min_bytes' 'passed on\|board\|direct' 3 "${gather[@]}"
point 'reduce-scatters: rounds' path_is 'doubling (below min_bytes' 'passed on\|board\|direct' 3 "${reduce[@]}"
rounds_from=4 point 'not of so few ranks' path_is 'passed on (below twice min_bytes' doubling 3 \
    "${gather[@]}"
rounds_from=4 point 'nor reduce-scatters: direct' path_is 'direct (below min_bytes' doubling 3 \
    "${reduce[@]}"
rounds_from=4 point 'of as many' path_is 'doubling (below twice min_bytes' 'passed on' 4 "${gather[@]}"
rounds_from=4 point 'of two always' path_is 'doubling (below twice min_bytes' 'passed on' 2 \
    "${gather[@]}"
board=yes point 'a board on one node' path_is board doubling 3 "${gather[@]}"
on_node=no point 'on one node: passed on' path_is 'passed on' doubling 3 "${gather[@]}"
counted() {
    says 1 'small plain calls, in rounds  *[1-9][0-9]* ' 3 --mca coll_flash_summary 1 -- \
        test_reduce_scatter same_bits && holds 1 'plain calls passed on  *0 '
}
point 'the table counts them' counted
size=$((3 * 512 * 1024)) # of all blocks of that program's allgather
for limit in $((2 * size)) $((2 * size - 1)); do
    text=$([[ $limit == $((2 * size)) ]] && echo doubling || echo 'passed on')
    rounds=$limit point "coll_flash_doubling_bytes $limit, allgather of $size: $text" \
        says + "Iallgather of $size bytes on communicator 0: $text" 3 --mca coll_flash_verbose 2 -- \
        test_others own
done

# ---------------------------------------------------------------------- results

plain_results
for np in 2 3; do
    mpi "$np" -- test_users_code
    mpi "$np" -- test_arguments
done
mpi 4 -- test_buffers no_buffer no_strided_buffer null_buffer many

in_rounds() {
    says + "$plain: doubling (" "$1" --mca coll_flash_verbose 2 "${@:2}"
}
direct=(--mca coll_flash_schedule direct --mca coll_flash_merge_bytes 1000000)
rounds_of() { # NP
    rounds=65536 point "np $1, no longer than a message may be" in_rounds "$1" -- test_rounds gaps wide_gaps
    point "np $1, persistent receives" in_rounds "$1" -- test_rounds persistent_receives
    point "np $1, sums of 16 bits" in_rounds "$1" "${direct[@]}" -- test_rounds halves
}
long rounds_of 2
rounds_of 3
rounds_of 4
long rounds_of 5
# Other messages of Open MPI's, whose requests are other ones.
if [[ ${FLASH_SANITIZER-} == thread ]]; then
    skip 'over pml ucx' "Open MPI's pml ucx crashes with ThreadSanitizer, without flash"
elif ! "$OMPI_INFO" --parsable | grep -q '^mca:pml:ucx:'; then
    skip 'over pml ucx' 'this Open MPI has none'
else
    over_ucx=(--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any)
    over_ucx_of() { # NP
        mpi "$1" "${over_ucx[@]}" -- test_rounds persistent_receives
        mpi "$1" "${over_ucx[@]}" -- test_allgather
    }
    long over_ucx_of 2
    over_ucx_of 3
    long over_ucx_of 4
fi

plan
