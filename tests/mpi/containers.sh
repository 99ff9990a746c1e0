#!/usr/bin/env bash
# Ranks in namespaces of their own, as container runtimes make them: all ranks, each in one, or one rank alone; and a
# job in a container with little shared memory. Where a job goes on without flash, it does with flash, and brings
# what is right; where it does not, the point is skipped.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# Of each combination: unshare's options, and what is done in the namespaces before the program starts.
own_pids='--pid --fork --kill-child --mount-proc'
little='mount -n -t tmpfs -o size=64m tmpfs /dev/shm'
declare -A flags=(
    [user]='--map-root-user'
    [pid]=$own_pids
    [ipc]='--ipc'
    [mount]='--mount'
    [uts]='--uts'
    [net]='--net'
    [user+pid]="--map-root-user $own_pids"
    [pid+ipc]="$own_pids --ipc"
    [shm]='--mount'
    [rootful]="$own_pids --ipc --uts --mount"
    [rootless]="--map-root-user $own_pids --ipc --uts --mount"
)
declare -A setup=(
    [net]='ip link set lo up'
    [uts]='hostname container'
    [shm]=$little
    [rootful]=$little
    [rootless]=$little
)

# WHO FLAGS SETUP PROGRAM...: WHO is a rank, or all. unshare itself runs without libmessages, see shm.sh.
cat >"$scratch/apart" <<'END'
#!/bin/sh
who=$1 flags=$2 setup=$3
shift 3
[ "$who" = all ] || [ "$who" = "$OMPI_COMM_WORLD_RANK" ] || exec "$@"
unset LD_PRELOAD
exec unshare $flags sh -c "$setup"' && exec "$@"' sh "$@"
END
chmod +x "$scratch/apart"

# goes_on NAME COMMAND...: whether that job ends well without flash; if not, NAME is skipped.
goes_on() {
    local name=$1 coll=^flash limit=$FLASH_TEST_TIMEOUT status=0
    shift
    "$@" >"$log" 2>&1 || status=$?
    ((status == 0)) && return
    skip "$name" "such a job fails without flash, too: status $status"
    return 1
}

# All ways of a call, in one job.
all_ways() { # NP
    local algorithm on_node shm way
    for way in 'ring yes no' 'auto no copy' 'auto no read' 'pairwise yes no' 'recdbl yes no'; do
        read -r algorithm on_node shm <<<"$way"
        mpi "$1" -- test_blocks
    done
    algorithm=ring on_node=yes shm=no
    mpi "$1" -- test_allgather signatures big
    # UCX takes the System V memory of ranks that see no process of that number for memory of dead ones. flash declines.
    [[ $combination,$who =~ ^(user\+)?pid,1$ ]] || mpi "$1" -- test_extension
    flush
}

# apart NP COMBINATION WHO [MPIRUN OPTION]...
apart() {
    local np=$1 combination=$2 who=$3 reason
    local name="np $np, in $combination: $who${4:+, ${*:4}}"
    local tool=("$scratch/apart" "$who" "${flags[$combination]}" "${setup[$combination]-true}")
    shift 3
    [[ $is_long == no || ${FLASH_TEST_TIER:-short} == all ]] || return 0
    if ! reason=$(OMPI_COMM_WORLD_RANK=$who "${tool[@]}" true 2>&1); then
        skip "$name" "no such namespaces here: ${reason##*$'\n'}"
        return
    fi
    goes_on "$name" run "$np" "$@" -- test_blocks || return 0
    options -x "FLASH_TEST_APART=$combination,$who" "$@"
    all_ways "$np"
    options
}

# Open MPI's own shared memory takes longer blocks for ever where one process may not read another.
short=(-x FLASH_TEST_LONGEST=262144)
# It takes processes of one number, which those are that begin a namespace, for one process.
tcp=(--mca btl 'tcp,self' --mca pml ob1)
apart 3 user 1 "${short[@]}"
for who in all 1; do
    [[ $who == 1 ]] || long apart 3 user "$who" "${short[@]}"
    long apart 3 user "$who" "${tcp[@]}"
    long apart 2 user "$who" "${short[@]}"
    for combination in ipc mount uts shm net; do
        long apart 3 "$combination" "$who"
    done
done
for combination in rootless rootful pid user+pid pid+ipc; do
    [[ $combination == rootless ]] && in_tier=() || in_tier=(long)
    "${in_tier[@]}" apart 3 "$combination" 1 "${tcp[@]}"
    long apart 3 "$combination" 1 "${short[@]}"
    long apart 3 "$combination" all "${tcp[@]}"
    long apart 3 "$combination" all
    long apart 2 "$combination" all "${tcp[@]}"
done

# A container for the whole job, with SIZE of shared memory: Open MPI takes of it what it needs only then, and dies
# where nothing is left.
in_container() { # SIZE NP ...: as run
    printf '#!/bin/sh\nmount -n -t tmpfs -o size=%s tmpfs /dev/shm && exec "$@"\n' "$1" >"$scratch/inside"
    printf '#!/bin/sh\nexec unshare %s "%s" "%s" "$@"\n' "$user --mount --ipc" "$scratch/inside" \
        "$(command -v "$MPIRUN")" >"$scratch/container"
    chmod +x "$scratch/inside" "$scratch/container"
    MPIRUN=$scratch/container run "${@:2}"
}
little_memory() { # NP SIZE PROGRAM [CASE]...
    local name="np $1, $2 of shared memory: ${*:3}"
    [[ $is_long == no || ${FLASH_TEST_TIER:-short} == all ]] || return 0
    goes_on "$name" in_container "$2" "$1" -- "${@:3}" || return 0
    point "$name" in_container "$2" "$1" -- "${@:3}"
    on_node=no shm=auto point "$name, shm auto" in_container "$2" "$1" -- "${@:3}"
}
user=''
((EUID == 0)) || user=--map-root-user
if reason=$(unshare $user --mount --ipc mount -n -t tmpfs tmpfs /dev/shm 2>&1); then
    algorithm=ring
    little_memory 8 24m test_allgather signatures
    for size in 8m 16m 32m 64m; do
        long little_memory 8 "$size" test_blocks
    done
    long little_memory 16 64m test_allgather signatures
    long little_memory 4 64m test_blocks
else
    skip 'a container with little shared memory' "no such namespaces here: ${reason##*$'\n'}"
fi

plan
