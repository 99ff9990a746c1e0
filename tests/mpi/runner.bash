# runner.bash: sourced by the test scripts: runs MPI programs with the component of the build tree,
# a test point of TAP for each run.
#
#   mpi NP [MPIRUN OPTION]... -- PROGRAM [ARGUMENT]...   a point: PROGRAM ends with 0, in time. Those of
#                              tests/mpi share jobs with others, at the plan
#   own_job mpi ...            but this one
#   mpi_on_many [MPIRUN OPTION]... -- PROGRAM [ARGUMENT]...   a point on 2, 3 and 5 ranks, in the long tier on 1 to 8
#   run NP [MPIRUN OPTION]... -- PROGRAM [ARGUMENT]...   no point: the exit status
#   deaf NP ...                                          likewise; UCX's events wake no progress thread (deaf.c)
#   says COUNT TEXT NP ...                               likewise, and whether TEXT is told so often
#   explains TOPIC NP ...                                likewise, a message of flash's, as a whole
#   explains TOPIC says COUNT TEXT NP ...                both of the same run
#   holds COUNT TEXT; told TOPIC   what the log holds, see below
#   find_matplotlib                                      whether there is a "$python" that draws
#   options [MPIRUN OPTION]...                           for all that follow
#   select_coll LIST                                     likewise, instead of `--mca coll flash`
#
# point, skip and plan are tap.bash's.
#
# PROGRAM is one of tests/mpi, or anything with a slash. Under `make check` the environment says
# where things are; by hand, a script is run in its build folder.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

: "${top_srcdir:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${top_builddir:=$(cd ../.. && pwd)}"
: "${MPIRUN:=mpirun}" "${OMPI_INFO:=ompi_info}"
: "${FLASH_COMPONENT_PATH:=$top_builddir/ompi_coll_flash/.libs:$("$OMPI_INFO" --path pkglibdir \
    --parsable | cut -d: -f3)}"
# Seconds; a longer run hangs. Sanitizers may want more.
export FLASH_TEST_TIMEOUT=${FLASH_TEST_TIMEOUT:-120}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Where the host has IPv6, Open MPI 5.0 complains of its own pairs of interfaces.
export OMPI_MCA_btl_tcp_disable_family=6
# In MPI_Finalize a rank waits two seconds for the launcher's answer, and ends. Open MPI 4.1's mpirun, if a loaded machine
# kept it away for longer, would find a rank that ends unasked, with status 0, and fail. Other statuses fail as before.
export OMPI_MCA_orte_allowed_exit_without_sync=1

programs=$top_builddir/tests/mpi
# FLASH_TEST_SCRATCH: who stops the script finds there what it had got to.
if [[ ${FLASH_TEST_SCRATCH-} ]]; then
    scratch=$FLASH_TEST_SCRATCH
else
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
fi
log=$scratch/log # of the latest run that is looked into
# shellcheck disable=SC2034 # tap.bash's
output=$scratch/output
# shellcheck source=/dev/null
source "$top_srcdir/tests/tap.bash"
common=()
tool=() # what runs the program: a debugger with its options
coll=flash
on_node=yes # its parameter: this host is one, and its ranks are to go around the ring
shm=no      # another: what does not use the ring falls back; shm.sh and read.sh are about shared memory
algorithm=auto # another: by its cost
costs_folder=$top_srcdir/tests/mpi/costs
costs=$costs_folder/default # another: the same on all machines

# Open MPI 5's mpirun now and then writes a zero byte between two lines.
grep() {
    command grep --text "$@"
}

options() {
    common=("$@")
}

select_coll() {
    coll=$1
}

# Whether flash was built with a sanitizer. Reads all that ldd says: one that is cut off fails.
sanitized() {
    ldd "$top_builddir/ompi_coll_flash/.libs/libmpix_flash.so" | grep -E 'lib[at]san' >/dev/null
}

# The cases of test_threads where persistent requests are passed on to Open MPI's own collectives, of
# whose order ThreadSanitizer sees nothing; none: all.
thread_cases=()
# shellcheck disable=SC2034 # used by the scripts
[[ ${FLASH_SANITIZER-} != thread ]] || thread_cases=(several bursts other_waits)

# The first Python that can draw, in `python`; otherwise why there is none, in `reason`. The
# distribution's often is not the first in PATH.
find_matplotlib() {
    for python in "${PYTHON:-}" /usr/bin/python3 python3; do
        "$python" -c 'import matplotlib' 2>/dev/null && return
    done
    # shellcheck disable=SC2034 # read by the scripts
    reason='no matplotlib (Debian: python3-matplotlib)'
    return 1
}

# latest OPTION...: options of mpirun in `given`, with the latest value of each parameter alone: mpirun makes one
# text of several.
latest() {
    local -A at=()
    given=()
    while (($#)); do
        if [[ $1 == --mca && ${at[$2]-} ]]; then
            given[at[$2]]=$3
            shift 3
        elif [[ $1 == --mca ]]; then
            given+=("$1" "$2" "$3")
            at[$2]=$((${#given[@]} - 1))
            shift 3
        else
            given+=("$1")
            shift
        fi
    done
}

# The programs have a limit of their own, of processor time, for each case. That of the whole job is far away, on
# a machine that has much else to do, too; one of many points has more.
run() {
    local np=$1 own=() program executable ranks status=0
    shift
    while [[ $1 != -- ]]; do
        own+=("$1")
        shift
    done
    program=$2
    shift 2
    executable=$(executable_of "$program")
    [[ $executable == "$program" ]] || set -- "$program" "$@"
    [[ $executable == */* ]] || executable=$programs/$executable
    ranks=${ranks_folder:-$(mktemp -d "$scratch/ranks.XXXXXX")}
    latest "${common[@]}" "${own[@]}"
    # By the environment, so that options may say otherwise.
    OMPI_MCA_coll_flash_algorithm=$algorithm OMPI_MCA_coll_flash_costs=$costs \
        timeout --foreground --kill-after=10 "${limit:-$((5 * FLASH_TEST_TIMEOUT))}" "$MPIRUN" -np "$np" --oversubscribe \
        --mca mpi_yield_when_idle 1 --mca opal_mca_base_component_path "$FLASH_COMPONENT_PATH" \
        --mca coll "$coll" --mca coll_flash_on_node "$on_node" --mca coll_flash_shm "$shm" \
        --mca coll_flash_help_dir "$top_srcdir/ompi_coll_flash" "${given[@]}" \
        "${own_files[@]}" "$ranks" "${tool[@]}" "$executable" "$@" </dev/null || status=$?
    said_in "$ranks"
    return $status
}

# "${own_files[@]}" FOLDER PROGRAM [ARGUMENT]...: a rank that writes to files of its own, RANK.out and RANK.err:
# mpirun reads what ranks say in pieces, and puts the pieces of several into one line.
# shellcheck disable=SC2016 # expanded by the inner shell
own_files=(/bin/sh -c 'exec >"$1/$OMPI_COMM_WORLD_RANK.out" 2>"$1/$OMPI_COMM_WORLD_RANK.err"
    export LD_PRELOAD="$0"; shift; exec "$@"' "$programs/.libs/libmessages.so")

deaf() {
    # shellcheck disable=SC2034 # run's
    local tool=(env "LD_PRELOAD=$programs/.libs/libmessages.so:$programs/.libs/libdeaf.so")
    run "$@"
}

# said_in FOLDER: what the `np` ranks wrote there, one behind the other.
said_in() {
    local rank
    for ((rank = 0; rank < np; rank++)); do
        if [[ -e $1/$rank.err ]]; then
            cat "$1/$rank.out"
            cat "$1/$rank.err" >&2
        fi
    done
}

# ------------------------------------------------------------ points that share a job

# Parameters that a point can set for its communicators, by info keys; all others are its job's.
keys=' algorithm blocking on_node shm segment_bytes segment_window max_sends pinned_bytes callback_thread '
# Variables that a job begins with.
variables=(FLASH_TEST_DRIVER FLASH_TEST_UCX FLASH_TEST_TOPOLOGY LD_LIBRARY_PATH)
queue_names=() queue_lines=() # of the points that wait for their job
jobs=()                       # what each of these jobs is run with,
declare -A job_points=()      # and the numbers of its points

# executable_of PROGRAM: which of tests/mpi has it.
executable_of() {
    local shared
    for shared in flash_tests flash_device_tests; do
        if grep -q "&$1\b" "$top_srcdir/tests/mpi/$shared.c"; then
            echo "$shared"
            return
        fi
    done
    echo "$1"
}

# queue NAME NP [MPIRUN OPTION]... -- PROGRAM [CASE]...: a point that runs with others, at the plan.
queue() {
    local name=$1 np=$2 job=() settings=() variable words turn
    shift 2
    set -- "${common[@]}" "$@"
    settings+=("on_node=$on_node" "shm=$shm" "algorithm=$algorithm")
    while [[ $1 != -- ]]; do
        if [[ $1 == --mca && $2 == coll_flash_* && $keys == *" ${2#coll_flash_} "* ]]; then
            settings+=("${2#coll_flash_}=$3")
            shift 3
        elif [[ $1 == --mca ]]; then
            job+=("$1" "$2" "$3")
            shift 3
        elif [[ $1 == -x && $2 == FLASH_TEST_*=* ]]; then
            settings+=("$2")
            shift 2
        elif [[ $1 == -x || $1 == --bind-to ]]; then
            job+=("$1" "$2")
            shift 2
        else
            job+=("$1")
            shift
        fi
    done
    shift
    for variable in FLASH_TEST_LEVEL FLASH_TEST_FAIL; do
        [[ -z ${!variable-} ]] || settings+=("$variable=${!variable}")
    done
    for variable in "${variables[@]}"; do
        [[ -z ${!variable-} ]] || job+=(-x "$variable=${!variable}")
    done
    words=$(printf '%q ' "$coll" "$(executable_of "$1")" "$np" "${job[@]}")
    [[ ${job_points[$words]-} ]] || jobs+=("$words")
    for ((turn = 0; turn < ${FLASH_TEST_TIMES:-1}; turn++)); do
        job_points[$words]+=" ${#queue_names[@]}"
        queue_lines+=("$(IFS='|' && echo "${settings[*]}")"$'\t'"$*")
        queue_names+=("$name")
    done
}

# points_of_job COLL EXECUTABLE NP OPTION... : runs the points whose numbers are in `left`, with as many
# jobs as it takes: one that dies leaves the rest to the next. Each job has all that keys may ask for.
points_of_job() {
    local coll=$1 executable=$2 np=$3 number status begun
    local common=() on_node=yes shm=auto algorithm=auto
    shift 3
    while ((${#left[@]})); do
        for number in "${left[@]}"; do
            printf '%d\t%s\n' "$number" "${queue_lines[number]}"
        done >"$scratch/points"
        : >"$scratch/results"
        status=0
        limit=$((5 * FLASH_TEST_TIMEOUT * (${#left[@]} + 1))) run "$np" \
            "$@" -- "$executable" --points "$scratch/points" "$scratch/results" >"$output" 2>&1 </dev/null || status=$?
        begun=$(sed -n 's/^begin //p' "$scratch/results" | tail -n 1)
        report "${begun:=${left[0]}}"
    done
}

# ended_by STATUS OUTPUT: why a job has ended before its points.
ended_by() {
    why "$2"
    echo "its job ended with status $1"
}

# report LAST: prints the results of the job. The points that it has begun, up to LAST, are not left any more; one that it
# has begun and not ended has ended it.
report() {
    local number result rest=()
    declare -A results=()
    while read -r result number _; do
        results[$number]=$result
    done < <(sed -n 's/^not ok /not-ok /; /^\(not-\)\?ok /p' "$scratch/results")
    if [[ ! ${results[$1]-} ]]; then
        results[$1]=ended
    elif ((status != 0)); then
        fail "${queue_names[$1]}: the end of its job" why "$output"
    fi
    for number in "${left[@]}"; do
        case ${results[$number]-} in
        ok) say ok "${queue_names[number]}" ;;
        not-ok) fail "${queue_names[number]}" grep "^$number: " "$output" ;;
        ended) fail "${queue_names[number]}" ended_by "$status" "$output" ;;
        *) rest+=("$number") ;;
        esac
    done
    left=("${rest[@]}")
}

# Runs what is queued.
flush() {
    local words left job
    for words in "${jobs[@]}"; do
        read -ra left <<<"${job_points[$words]}"
        eval "job=($words)"
        points_of_job "${job[@]}"
    done
    jobs=() job_points=()
}

in_own_job=no

# own_job COMMAND...: each point of COMMAND has a job of its own.
own_job() {
    local in_own_job=yes
    "$@"
}

mpi() {
    local np=$1 name="np $1" word executable
    shift
    for word in "${common[@]}" "$@"; do
        case $word in
        --mca | -x | --) ;;
        *) name+=" ${word#"$costs_folder"/}" ;;
        esac
    done
    [[ $coll == flash ]] || name+=" (coll $coll)"
    [[ $on_node == yes ]] || name+=" (on_node $on_node)"
    [[ $shm == no ]] || name+=" (shm $shm)"
    [[ $algorithm == auto ]] || name+=" ($algorithm)"
    [[ -z ${FLASH_TEST_FAIL-} ]] || name+=", $FLASH_TEST_FAIL fails"
    [[ -z ${FLASH_TEST_UCX-} ]] || name+=", UCX for $FLASH_TEST_UCX"
    [[ -z ${FLASH_TEST_LEVEL-} ]] || name+=", $FLASH_TEST_LEVEL"
    wanted "$name" || return 0
    word=" $* "
    word=${word#* -- }
    executable=$(executable_of "${word%% *}")
    if [[ $executable == flash*_tests && $in_own_job == no ]]; then
        queue "$name" "$np" "$@"
    else
        point "$name" run "$np" "$@"
    fi
}

mpi_on_many() {
    local np
    for np in 2 3 5; do
        mpi "$np" "$@"
    done
    for np in 1 4 6 7 8; do
        long mpi "$np" "$@"
    done
}

ompi_major=$("$OMPI_INFO" --version | sed -n 's/^Open MPI v\([0-9]*\).*/\1/p')
if [[ -z $ompi_major ]]; then
    echo "Bail out! $OMPI_INFO does not tell Open MPI's version"
    exit 1
fi
# "${on_rank[@]}" RANKS VARIABLE=VALUE PROGRAM ARGUMENT...: an environment of its own for one rank, or
# for several, with spaces between them.
# shellcheck disable=SC2016,SC2034 # expanded by the inner shell; used by the scripts
on_rank=(/bin/sh -c 'case " $0 " in *" $OMPI_COMM_WORLD_RANK "*) export "$1" ;; esac; shift; exec "$@"')

# holds COUNT TEXT: in the log TEXT is in so many lines; `+`: in one or more.
holds() {
    local found
    # Open MPI 5's launcher now and then has a byte 0 before a line of a job that aborts.
    found=$(tr -d '\0' <"$log" | grep -c -e "$2" || :)
    [[ $1 == + ]] && ((found > 0)) && return 0
    [[ $found == "$1" ]] && return 0
    # What comes last is what a failed point shows.
    cat "$log"
    echo "\"$2\" comes $found times instead of $1"
    return 1
}

# The lines of a topic of flash's help file, as `grep` finds them: whatever comes for %s and %d.
help_file=$top_srcdir/ompi_coll_flash/help-mpi-coll-flash.txt
lines_of() {
    awk -v topic="[$1]" '/^#/ { next } /^\[/ { ours = $0 == topic; next } ours && NF' "$help_file" |
        sed -e 's/[].[*^$\\]/\\&/g' -e 's/%[a-z]*/.*/g'
}

# told TOPIC: the log holds the whole message, with cause and remedy.
told() {
    local line lines
    mapfile -t lines < <(lines_of "$1")
    ((${#lines[@]} > 0)) || {
        echo "there is no topic $1"
        return 1
    }
    for line in "${lines[@]}"; do
        holds + "$line" || return
    done
}

# says COUNT TEXT NP ...: run, successfully, and TEXT is told so many times.
says() {
    local count=$1 text=$2
    shift 2
    run "$@" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds "$count" "$text"
}

# explains TOPIC [says COUNT TEXT] NP ...: run, successfully, and the message of that topic is told.
explains() {
    local topic=$1
    shift
    if [[ $1 == says ]]; then
        "$@" && told "$topic"
        return
    fi
    run "$@" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    told "$topic"
}
