# run_on.bash: sourced by the test scripts of this folder: runs MPI programs on emulated hosts. Where there can be
# none, it skips the script.
#
#   run_on HOSTS RANKS RATE [MPIRUN OPTION]... -- PROGRAM [CASE]...   the exit status; "${hosts_options[@]}" are
#                                                                     options of the script `hosts`
#   on_hosts HOSTS RANKS [MPIRUN OPTION]... -- PROGRAM [CASE]...      a point
#
# The rest is runner.bash's.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/runner.bash"

hosts=$top_srcdir/tests/cluster/hosts
hosts_options=()

run_on() {
    local number=$1 ranks=$2 rate=$3 own=() np=$(($1 * $2)) folder executable status=0
    shift 3
    while [[ $1 != -- ]]; do
        own+=("$1")
        shift
    done
    shift
    executable=$(executable_of "$1")
    [[ $executable == "$1" ]] && shift
    [[ $executable == */* ]] || executable=$programs/$executable
    folder=${ranks_folder:-$(mktemp -d "$scratch/ranks.XXXXXX")}
    timeout --kill-after=10 $((5 * FLASH_TEST_TIMEOUT)) "$hosts" -n "$number" -p "$ranks" -r "$rate" "${hosts_options[@]}" \
        --mca opal_mca_base_component_path "$FLASH_COMPONENT_PATH" --mca coll flash \
        --mca coll_flash_help_dir "$top_srcdir/ompi_coll_flash" --mca coll_flash_algorithm ring \
        --mca mpi_yield_when_idle 1 "${own[@]}" -- "${own_files[@]}" "$folder" "${tool[@]}" "$executable" "$@" \
        </dev/null || status=$?
    said_in "$folder"
    return $status
}

on_hosts() {
    local name="$1 hosts x $2" word
    for word in "${@:3}"; do
        [[ $word == --* ]] || name+=" $word"
    done
    point "$name" run_on "$1" "$2" none "${@:3}"
}

if ! reason=$("$hosts" --probe 2>&1); then
    echo "1..0 # SKIP ${reason#hosts: }"
    exit 0
fi
