#!/usr/bin/env bash
# How flash is selected, what it says, and what it leaves to the others.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# ------------------------------------------------------------------ parameters

has_help_texts() {
    local name help
    OMPI_MCA_opal_mca_base_component_path=$FLASH_COMPONENT_PATH \
        "$OMPI_INFO" --param coll flash --level 9 --parsable >"$scratch/info"
    sed -n 's/^mca:coll:flash:param:\([a-z_]*\):value:.*/\1/p' "$scratch/info" >"$scratch/found"
    for name in priority algorithm costs on_node shm progress bind ring_order segment_bytes segment_window scratch_cache_bytes verbose help_dir; do
        grep -qx "coll_flash_$name" "$scratch/found" || echo "there is no coll_flash_$name"
    done >"$scratch/wrong"
    while read -r name; do
        help=$(sed -n "s/^mca:coll:flash:param:$name:help://p" "$scratch/info")
        ((${#help} >= 20)) || echo "$name has no help text"
    done <"$scratch/found" >>"$scratch/wrong"
    cat "$scratch/wrong"
    [[ ! -s $scratch/wrong ]]
}

if sanitized; then
    skip 'ompi_info shows the parameters' 'ompi_info cannot load a component with a sanitizer'
else
    point 'ompi_info shows the parameters' has_help_texts
fi

# ----------------------------------------------------- a program without flash

for np in 1 2 3 5; do
    mpi "$np" -- test_others
done
mpi 3 --mca coll_flash_algorithm ring -- test_others

# What is loaded: what the list names, and flash's remedy does not add to it.
list_is_honoured() {
    local list=flash,tuned,libnbc,basic,self,inter,sync
    coll=$list run 2 --mca coll_base_verbose 10 -- test_extension active blocking \
        >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    sed -n 's/.*components_register: component \([a-z]*\) register.*/\1/p;
        s/.*components_register: found loaded component \([a-z]*\)$/\1/p' "$log" |
        sort -u >"$scratch/found"
    tr , '\n' <<<"$list" | sort | diff - "$scratch/found"
}
point 'a list of components is honoured' list_is_honoured

others_are_loaded() {
    run 2 --mca coll_base_verbose 10 -- test_others >"$log" 2>&1 &&
        grep -q 'component tuned' "$log" && grep -q 'component libnbc' "$scratch/log"
}
point 'flash alone on the list: the others are loaded' others_are_loaded

# -------------------------------------------------------------------- messages

inactive=(-x FLASH_TEST_ACTIVE=0)
program=("$programs/flash_tests" test_extension)

# The reason is its own, not what its neighbour makes of it, which could not be acted on.
not_usable() {
    explains ucx-not-usable says 1 'cannot use UCX' 3 "${inactive[@]}" -- \
        "${on_rank[@]}" 0 UCX_FLASH_TLS=nonsense "${program[@]}" active user_type &&
        holds 1 'Cause: .*: No such device'
}
point 'UCX not usable on one rank: said once, with its reason, cause and remedy, flash not active' not_usable
point 'UCX reaches no other rank: said by each, flash not active' \
    says 3 'cannot use UCX' 3 "${inactive[@]}" -x UCX_FLASH_TLS=self -- test_extension active \
    user_type
point 'coll_flash_priority 1: said, with cause and remedy, flash not active' explains priority-too-low \
    says 1 'has a priority of 1' 3 "${inactive[@]}" --mca coll_flash_priority 1 -- \
    test_extension active user_type
point 'coll_flash_priority 1 on one rank: said, flash not active' \
    says 1 'has a priority of 1' 3 "${inactive[@]}" -- \
    "${on_rank[@]}" 1 OMPI_MCA_coll_flash_priority=1 "${program[@]}" active user_type
# Below and above other components: what they are enabled after differs from rank to rank.
for priority in 15 35; do
    point "coll_flash_priority $priority on one rank: said, with cause and remedy, flash not active" \
        explains priority-differs says 1 'coll_flash_priority differs' 3 "${inactive[@]}" --mca coll_flash_blocking yes \
        --mca coll_flash_algorithm ring -- "${on_rank[@]}" 1 OMPI_MCA_coll_flash_priority=$priority "${program[@]}" \
        active user_type
done
point 'coll_flash_priority 15 on one rank: blocking calls agree' \
    says 1 'coll_flash_priority differs' 3 "${inactive[@]}" -x FLASH_TEST_BLOCKING=1 --mca coll_flash_blocking yes --mca coll_flash_algorithm ring -- \
    "${on_rank[@]}" 1 OMPI_MCA_coll_flash_priority=15 "$programs/flash_tests" test_bcast roots
point 'coll_flash_priority -1: nothing said, flash not active' \
    says 0 'flash' 3 "${inactive[@]}" --mca coll_flash_priority -1 -- test_extension active \
    user_type

# The smallest value counts, on all ranks.
algorithms_differ() {
    explains choices-differ says 1 'coll_flash_algorithm differs' 3 --mca coll_flash_verbose 1 \
        --mca coll_flash_algorithm ring -- "${on_rank[@]}" 1 OMPI_MCA_coll_flash_algorithm=fallback \
        "$programs/flash_tests" test_allgather signatures && holds 3 'serves this job (algorithm auto'
}
point 'coll_flash_algorithm differs: said, with cause and remedy, and all use auto' algorithms_differ
costs_differ() {
    says 1 'coll_flash_costs differs' 3 --mca coll_flash_verbose 1 -- \
        "${on_rank[@]}" 1 OMPI_MCA_coll_flash_costs="$costs_folder/fallback" \
        "$programs/flash_tests" test_allgather signatures && holds 3 'costs built in' && told choices-differ
}
point 'coll_flash_costs differs: said, and all use the built-in costs' costs_differ
wrong_costs() { # CAUSE FILE
    explains costs-ignored says + "Cause: *$1" 3 --mca coll_flash_costs "$2" -- test_others own
}
for line in 'node allgather ring 1 2 3' 'node allgather ring 1 2 3 4 5' 'node allgather rign 1 2 3 4' \
    'nod allgather ring 1 2 3 4' 'node gatherv ring 1 2 3 4' 'node allgather ring -1 2 3 4' 'node allgather ring 1 2 3 x' \
    'node allgather ring 1 2 3 1000000000001'; do
    printf '# costs\n\n%s\n' "$line" >"$scratch/wrong_costs"
    point "costs, $line: said, with cause and remedy" wrong_costs 'line 3 is no row' "$scratch/wrong_costs"
done
printf 'node allgather ring 1 2 3 4\n#%500s\nnode allgather ring 1 2 3 4\n' '' >"$scratch/wrong_costs"
point 'costs, a row that comes twice, behind a long comment: said' wrong_costs 'line 3 is no row' "$scratch/wrong_costs"
point 'costs that are not there: likewise' wrong_costs 'No such file' "$scratch/nothing"
segments_differ() { # [MPIRUN OPTION]...
    says 1 'coll_flash_segment_bytes differs' 3 --mca coll_flash_algorithm ring --mca coll_flash_verbose 1 "$@" -- \
        "${on_rank[@]}" 1 OMPI_MCA_coll_flash_segment_bytes=4096 \
        "$programs/flash_tests" test_allgather signatures && holds 3 'serves this job .*, segment_bytes 4096,' && told parameters-differ
}
point 'coll_flash_segment_bytes differs: said, and everyone goes by the smallest' \
    segments_differ --mca coll_flash_segment_bytes 65536
point 'coll_flash_segment_bytes on one rank alone: said, and everyone goes by it' segments_differ
# All ranks are on this node.
plain='Iallgatherv* of [0-9]* bytes on communicator 0' # the extension's take the ring anyway
path_is() { # ON_NODE TEXT OTHER: plain calls take the way of that text, and none the other
    on_node=$1 says + "$plain: $2" 3 --mca coll_flash_verbose 2 "${@:4}" &&
        holds 0 "$plain: $3"
}
below='falls back (on one node'
gather=(-- test_others own)
point 'coll_flash_on_node yes: the ring' path_is yes ring "$below" "${gather[@]}"
point 'coll_flash_on_node no: falls back' path_is no "$below" ring "${gather[@]}"
point 'coll_flash_on_node no on one rank: all fall back' path_is yes "$below" ring \
    -- "${on_rank[@]}" 1 OMPI_MCA_coll_flash_on_node=no "$programs/test_others" own
if (($(getconf _NPROCESSORS_ONLN) < 6)); then
    point 'coll_flash_on_node auto, few hardware threads: falls back' path_is auto "$below" ring \
        "${gather[@]}"
else
    point 'coll_flash_on_node auto, many hardware threads: the ring' path_is auto ring "$below" \
        "${gather[@]}"
fi
on_node=no mpi 3 -- test_extension
on_node=no mpi 3 -- test_allgather

point 'a callback fails: the others say why, with cause and remedy' explains peer-failed \
    says + 'Another rank could not complete' 2 -- test_failures produce
point 'sizes disagree: said, with cause and remedy' explains sizes-disagree \
    says + 'disagree about the sizes' 2 --mca coll_flash_algorithm ring -- test_sizes plain

# --------------------------------------------------------------------- verbose

point 'coll_flash_verbose 1: a communicator that flash does not serve, and why' \
    says 3 'does not serve communicator [0-9]*: one rank' 3 --mca coll_flash_verbose 1 -- \
    test_others own
point 'coll_flash_verbose 1: too low a priority' \
    says + 'does not serve communicator [0-9]*: coll_flash_priority is too low' 3 \
    "${inactive[@]}" --mca coll_flash_verbose 1 --mca coll_flash_priority -1 -- \
    test_extension active
point 'coll_flash_verbose 2: operations around the ring' \
    says 3 'Iallgather of .* bytes .*: ring' 3 --mca coll_flash_verbose 2 -- test_others own
point 'coll_flash_verbose 2: operations that fall back, and why' \
    says 3 'Iallgather of .* bytes .*: falls back (the ring costs more)' 3 \
    --mca coll_flash_verbose 2 --mca coll_flash_costs "$costs_folder/fallback" -- test_others own
ring_costs() { # NS TEXT: of 1 MiB that each of three ranks sends, at a nanosecond a byte by the fallback
    printf 'node allgather %s\n' 'fallback 0 0 0 1000' "ring $1" >"$scratch/ring_costs"
    says 3 "Iallgather of .* bytes .*: $2" 3 --mca coll_flash_verbose 2 --mca coll_flash_costs "$scratch/ring_costs" \
        -- test_others own
}
point 'equal costs: falls back' ring_costs '1048576 0 0 0' 'falls back'
point 'a nanosecond less: the ring' ring_costs '1048575 0 0 0' ring
point 'costs of each other rank' ring_costs '0 524288 0 0' 'falls back'
point 'costs of each doubling' ring_costs '0 0 524288 0' 'falls back'
point 'costs of each byte' ring_costs '0 0 0 999' ring
# What the built-in costs choose between nodes.
chooses() { # TEXT OP BYTES RANKS
    costs=${of_file-} run 2 -- "$top_builddir/mpi_bench/flash_explain" "${@:2}" >"$log" 2>&1 &&
        [[ $(grep -v '^#' "$log" | tail -n 1) == "$1"* ]] || {
        cat "$log"
        return 1
    }
}
point 'three ranks, a small reduce-scatter: falls back' chooses 'falls back' reduce_scatter 32K 3
point 'three ranks, a larger one: pairwise' chooses pairwise reduce_scatter 64K 3
# The same of a file of costs, but where it says otherwise.
printf 'network reduce_scatter %s\n' 'fallback 1000 0 0 0' 'pairwise 1 0 0 0' >"$scratch/no_three"
of_file=$scratch/no_three point 'three ranks, a small reduce-scatter, costs of a file: falls back' \
    chooses 'falls back' reduce_scatter 32K 3
of_file=$scratch/no_three point 'three ranks, a larger one, costs of a file: pairwise' chooses pairwise reduce_scatter 64K 3
of_file=$scratch/no_three point 'two ranks, a small one, costs of a file: pairwise' chooses pairwise reduce_scatter 32K 2
{
    cat "$scratch/no_three"
    echo 'network reduce_scatter pairwise_of_three 30000'
} >"$scratch/three"
of_file=$scratch/three point 'three ranks, a small one, a file with bytes for three ranks: pairwise' \
    chooses pairwise reduce_scatter 32K 3
of_file=$scratch/three point 'three ranks, a smaller one, a file with bytes for three ranks: falls back' \
    chooses 'falls back' reduce_scatter 24K 3
point 'two ranks, a small one: recursive doubling' chooses recdbl reduce_scatter 32K 2
point 'four ranks, likewise' chooses recdbl reduce_scatter 32K 4
point 'two ranks, an allreduce: falls back' chooses 'falls back' allreduce 128K 2
point 'two ranks, a larger one: the ring' chooses ring allreduce 256K 2
point 'an allreduce within a node: falls back' chooses 'falls back' allreduce 64M 4 node
point 'four ranks, a large all-to-all: the ring' chooses ring alltoall 1M 4
point 'two ranks, a broadcast: falls back' chooses 'falls back' bcast 400K 2
point 'four ranks, the same, which a root sends twice: the ring' chooses ring bcast 400K 4
point 'four ranks, a large one: the ring' chooses ring bcast 2M 4
point 'four ranks, a large reduce: the ring' chooses ring reduce 2M 4
point 'a broadcast within a node: falls back' chooses 'falls back' bcast 64M 4 node
point 'four ranks, a gather: falls back' chooses 'falls back' gather 512K 4
point 'four ranks, a large one, a gather: the ring' chooses ring gather 4M 4
point 'a gather within a node: falls back' chooses 'falls back' gather 64M 4 node
point 'a gather of more than 16 ranks: falls back' chooses 'falls back (too many ranks' gather 64M 17
point 'four ranks, a scatter: falls back' chooses 'falls back' scatter 512K 4
point 'four ranks, a large one, a scatter: the ring' chooses ring scatter 4M 4
point 'a scatter of more than 16 ranks: falls back' chooses 'falls back (too many ranks' scatter 64M 17
point 'more than 16 ranks, likewise: falls back' chooses 'falls back (too many ranks' alltoall 4M 17
point 'three ranks, a large blocking broadcast: the ring' chooses ring blocking_bcast 2M 3
point 'two ranks, one of any size: falls back' chooses 'falls back (the ring has no cost' blocking_bcast 256M 2
point 'two ranks, a blocking allreduce of any size: falls back' \
    chooses 'falls back (the ring has no cost' blocking_allreduce 256M 2
point 'four ranks, a large blocking all-to-all: the ring' chooses ring blocking_alltoall 8M 4
point 'eight ranks, likewise: the ring' chooses ring blocking_alltoall 8M 8
point 'more than eight ranks, one of any size: falls back' chooses 'falls back (the ring has no cost' blocking_alltoall 256M 9
of_file=$costs_folder/blocking point 'a file of costs, two ranks, a blocking broadcast: the ring' \
    chooses ring blocking_bcast 1M 2 node
point 'coll_flash_verbose 2: reductions around the ring' \
    says 10 'Ireduce_scatter_block of .* bytes .*: ring' 2 \
    --mca coll_flash_verbose 2 --mca coll_flash_algorithm ring -- test_reduce_scatter same_bits
point 'coll_flash_verbose 2: operations of the user fall back, and why' \
    says 24 'Ireduce_scatter_block of .* bytes .*: falls back (not a commutative' 2 \
    --mca coll_flash_verbose 2 --mca coll_flash_algorithm ring -- test_reduce_scatter user_operations
point 'coll_flash_verbose 2: calls of the extension around the ring' \
    says + 'Iallgather_compute of .* bytes on communicator 0: ring' 2 --mca coll_flash_verbose 2 -- \
    test_extension blocking
point 'coll_flash_verbose 2: calls of the extension that fall back, and why' \
    says + 'Ireduce_scatter_block_compute of .* bytes on .*: plain collective (not a commutative' 2 \
    --mca coll_flash_verbose 2 -- test_extension user_operation
if ((ompi_major >= 5)); then
    point 'coll_flash_verbose 1: a job with ULFM' \
        says + 'does not serve communicator [0-9]*: the job is fault tolerant' 3 \
        "${inactive[@]}" --with-ft ulfm --mca coll_flash_verbose 1 -- test_extension active
else
    skip 'a job with ULFM' 'this Open MPI has none (5.0 and later)'
fi
point 'silent by default' says 0 flash 3 -- test_others

plan
