#!/usr/bin/env bash
# The programs of tests/mpi under Slurm, whose nodes are emulated hosts: started by srun, which has PMIx, and by mpirun
# within an allocation; and two jobs of an array at a time on one node. `hosts -l slurm` makes this Slurm, in
# namespaces of its own, and this script runs twice: around it, and in it.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/runner.bash"

hosts=$top_srcdir/tests/cluster/hosts
if [[ ${1-} != inside ]]; then
    if ! reason=$("$hosts" -l slurm --probe 2>&1); then
        echo "1..0 # SKIP ${reason#hosts: }"
        exit 0
    fi
    # Two ranks to a host: UCX is to have its shared memory.
    "$hosts" -l slurm -n 2 -p 2 -r none -- "${BASH_SOURCE[0]}" inside
    exit
fi

if ! srun --mpi=list 2>&1 | grep -q pmix; then
    echo '1..0 # SKIP this Slurm has no plugin for PMIx (srun --mpi=list)'
    exit 0
fi

# What mpirun is told elsewhere.
export OMPI_MCA_opal_mca_base_component_path=$FLASH_COMPONENT_PATH OMPI_MCA_coll=flash
export OMPI_MCA_coll_flash_help_dir=$top_srcdir/ompi_coll_flash OMPI_MCA_coll_flash_costs=$costs
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_coll_flash_verbose=1
tests=$programs/flash_tests

# in_slurm COMMAND...: in time, and whatever it says is in the log.
in_slurm() {
    local status=0
    timeout --kill-after=10 $((5 * FLASH_TEST_TIMEOUT)) "$@" >"$log" 2>&1 </dev/null || status=$?
    ((status == 0)) || cat "$log"
    return "$status"
}

# served RANKS COMMAND...: each rank says that flash serves its job.
served() {
    in_slurm "${@:2}" && holds "$1" 'coll:flash: serves this job'
}

# with NAME=VALUE... -- COMMAND...: parameters of flash.
with() {
    while [[ $1 != -- ]]; do
        local -x "OMPI_MCA_coll_flash_$1"
        shift
    done
    shift
    "$@"
}

# by_srun NODES RANKS PROGRAM [CASE]...: points, for each way of a call.
by_srun() {
    local ways=('algorithm=ring on_node=yes') way
    (($1 > 1)) || ways+=('algorithm=auto on_node=no shm=copy' 'algorithm=auto on_node=no shm=auto')
    for way in "${ways[@]}"; do
        # shellcheck disable=SC2086 # a list of words
        point "srun, nodes: $1, ranks: $2, $way, ${*:3}" with $way -- \
            served "$2" srun --nodes="$1" --ntasks="$2" --overcommit --mpi=pmix "$tests" "${@:3}"
    done
}

for shape in '2 4' '1 3' '2 2' '1 2'; do
    read -r nodes ranks <<<"$shape"
    [[ $shape == '2 4' || $shape == '1 3' ]] && in_tier=() || in_tier=(long)
    "${in_tier[@]}" by_srun "$nodes" "$ranks" test_allgather types signatures big
    "${in_tier[@]}" by_srun "$nodes" "$ranks" test_reduce_scatter big same_bits
    long by_srun "$nodes" "$ranks" test_reduce_scatter
    long by_srun "$nodes" "$ranks" test_extension
    long by_srun "$nodes" "$ranks" test_persistent
done
long by_srun 2 2 test_failures consume produce
long by_srun 2 4 test_requests many_communicators free_communicators leak
point 'srun, nodes: 2, ranks: 2, test_async' with algorithm=ring progress=on -- \
    served 2 srun --nodes=2 --ntasks=2 "$tests" test_async

# Slurm's PMIx ends a step in which a rank dies, whatever srun is told.
dies() {
    local status=0
    in_slurm srun "$@" "$programs/test_lost" dies gather >/dev/null || status=$?
    ((status == 137)) && holds 0 'called right'
}
point 'srun, nodes: 2, ranks: 3: a rank dies, and Slurm ends the job' with algorithm=ring probe_seconds=1 -- \
    dies --nodes=2 --ntasks=3 --overcommit

# Within an allocation: mpirun's daemons are started by Slurm.
by_mpirun() {
    served "$1" salloc --nodes=2 --ntasks="$1" --overcommit "$MPIRUN" -np "$1" --oversubscribe "$tests" "${@:2}"
}
for program in allgather reduce_scatter; do
    point "mpirun in an allocation, nodes: 2, ranks: 4, test_$program" with algorithm=ring -- by_mpirun 4 "test_$program"
done

# Jobs of an array, two at a time on a node of which each has one processor: no thread of theirs leaves it. The first
# step of each waits for the other job, and says which processor it has.
array_keeps() { # COMMAND...: of a job
    local folder job
    folder=$(mktemp -d "$scratch/array.XXXXXX")
    cat >"$folder/job" <<END
#!/bin/sh
touch $folder/there.\$SLURM_ARRAY_TASK_ID
until [ -e $folder/there.0 ] && [ -e $folder/there.1 ]; do sleep 0.1; done
sed -n 's/^Cpus_allowed_list:[[:space:]]*/processor: /p' /proc/self/status
timeout $FLASH_TEST_TIMEOUT $* && echo 'job: right'
END
    in_slurm sbatch --wait --array=0-1 --nodelist=host0 --ntasks=1 --cpus-per-task=1 --output="$folder/%a.out" \
        "$folder/job" || cat "$folder"/*.out
    for job in 0 1; do
        cat "$folder/$job.out"
    done >"$log"
    holds 2 'job: right' && holds 4 'serves this job' && holds 2 'processor: [0-9]*$' &&
        (($(grep 'processor: ' "$log" | sort -u | grep -c .) == 2))
}
if (($(nproc) < 2 || $(nproc) < $(nproc --all))); then
    skip 'two jobs on a node' 'Slurm wants two processors or more, and all that this machine has'
else
    keeps() { # NAME COMMAND...
        point "two jobs on a node, $1: their threads stay on their processors" with algorithm=ring progress=on -- \
            array_keeps "${@:2}" "$tests" test_affinity inside
    }
    keeps srun srun --ntasks=2 --overcommit
    keeps mpirun "$MPIRUN" -np 2 --oversubscribe --bind-to none
    # It binds without regard to its own mask, and each thread stays with its rank.
    keeps 'mpirun that binds' "$MPIRUN" -np 2 --oversubscribe --bind-to core:overload-allowed
fi

plan
