#!/bin/bash
# shm.sh: calls within a node, through the slots of shared memory: what rings do must come of them as well.
# shm_requests.sh, read.sh, same_bits.sh and lost.sh have more.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/plain.bash"

# shellcheck disable=SC2034 # the runner's
shm=copy on_node=no # none is read from where it is

# ------------------------------------------------------------------ which calls

plain='Iallgatherv* of [0-9]* bytes on communicator 0' # the extension's take the ring anyway
path_is() { # TEXT OTHER: plain calls take the way of that text, and none the other
    says + "$plain: $1" 3 --mca coll_flash_verbose 2 "${@:3}" && holds 0 "$plain: \\($2\\)"
}
counts=(test_allgather counts)
point 'on one node: shared memory' path_is 'shm (on one node' 'ring\|falls back' -- "${counts[@]}"
asked_for() {
    on_node=yes algorithm=shm path_is 'shm (see algorithm' 'ring\|falls back' -- "${counts[@]}"
}
point 'algorithm shm, where rings are welcome' asked_for
point 'coll_flash_shm no on one rank: all fall back' path_is 'falls back (' 'ring\|shm' \
    -- "${on_rank[@]}" 1 OMPI_MCA_coll_flash_shm=no "$programs/flash_tests" test_allgather counts
point 'algorithm ring: the ring' path_is ring 'shm\|falls back' --mca coll_flash_algorithm ring -- "${counts[@]}"
# As in a container of its own. unshare itself cannot make processes once the first one has ended, as
# LeakSanitizer, which libmessages brings into it, would.
apart=(env -u LD_PRELOAD unshare --pid --fork --mount-proc)
hidden() {
    says + 'no shared memory: processes of this node do not see each other' 2 --mca coll_flash_verbose 2 \
        --mca btl tcp,self --mca pml ob1 -x UCX_FLASH_TLS=tcp \
        -- "${on_rank[@]}" 1 A=1 "${apart[@]}" "$programs/flash_tests" test_allgather counts &&
        holds 2 'shm no' && holds + "$plain: falls back"
}
if "${apart[@]}" true 2>/dev/null; then
    point 'processes that do not see each other: all fall back' hidden
else
    skip 'processes that do not see each other: all fall back' 'may not unshare(1) process numbers'
fi
served() {
    says 3 'serves communicator 0 .* with shared memory' 3 --mca coll_flash_verbose 1 -- \
        test_requests many_communicators && holds + 'serves communicator 3 .* with shared memory'
}
point 'coll_flash_verbose 1: who has shared memory' served
kept_once() {
    says 3 "where processes are is in the node's memory" 3 --mca coll_flash_verbose 1 -- "${counts[@]}"
}
point 'where processes are is kept once for a node' kept_once
kept_by_each() {
    says 3 'where processes are is in own memory' 3 --mca coll_flash_verbose 1 -- \
        "${on_rank[@]}" 1 OMPI_MCA_coll_flash_shm=no "$programs/flash_tests" "${counts[@]}"
}
point 'coll_flash_shm no on one rank: each keeps it' kept_by_each
# A rank that does not know how many ranks the job has: its file has another length.
size_unknown() { # RANKS TEXT
    says 3 "$2" 3 --mca coll_flash_verbose 1 -- "${on_rank[@]}" "$1" 'FLASH_TEST_PMIX=-46 size' /usr/bin/env \
        LD_PRELOAD="$programs/.libs/libmessages.so $programs/.libs/libpmix_fails.so" \
        "$programs/flash_tests" "${counts[@]}" && holds + 'FLASH_TEST_PMIX: pmix.job.size is not told'
}
if sanitized; then
    skip 'PMIx does not tell how many ranks the job has' 'a sanitizer wants to be the first library'
else
    point 'PMIx tells one rank not how many ranks the job has: no shared memory' size_unknown 0 'no shared memory: '
    point 'PMIx tells no rank: each keeps where processes are' size_unknown '0 1 2' 'where processes are is in own memory'
fi
short_files() { # 12 MiB, which is less than a file of Open MPI's own, too, but for TCP
    says + 'no shared memory: File too large' 3 --mca coll_flash_verbose 1 --mca btl tcp,self --mca pml ob1 -- \
        "${on_rank[@]}" 1 FLASH_TEST_SHORT=1 /bin/sh -c '[ -z "$FLASH_TEST_SHORT" ] || ulimit -f 24000; exec "$@"' sh "$programs/flash_tests" "${counts[@]}" &&
        holds 3 'no shared memory: '
}
point 'ulimit -f of one rank is below what shared memory takes: none' short_files
counted() {
    says 1 'calls by shared memory  *1  *1.0  *1$' 3 --mca coll_flash_summary 1 -- \
        test_others own && holds 1 'calls by the fallback  *0  *0.0  *0$'
}
point 'the table counts them' counted

# ---------------------------------------------------------------------- results

plain_results
mpi 4 --mca coll_flash_progress off -- test_allgather
mpi 4 --mca coll_flash_progress off -- test_reduce_scatter
for np in 2 3; do
    mpi "$np" -- test_users_code
    mpi "$np" -- test_arguments
done
mpi 4 -- test_buffers no_buffer no_strided_buffer null_buffer many

plan
