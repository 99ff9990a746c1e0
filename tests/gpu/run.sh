#!/usr/bin/env bash
#
# run.sh [--list] [-o FOLDER] [STEP]...: the tests and benchmarks of a kit that pack.sh made, on a node with a GPU.
#
# All steps, or those that are named, one after the other, in at most FLASH_KIT_SECONDS (450) seconds. Each step has
# a time limit of its own, which FLASH_KIT_LIMITS changes, as in FLASH_KIT_LIMITS='smoke=90 rates=20'; no step ends the
# others. FLASH_KIT_SLOW=N, for a node that is N times as slow: all other times are N times as long. Each result is
# at once in FOLDER (default: $OUT, or ./results): summary.txt, about a screen of text; details.txt, all that was
# printed; traces.tar.gz. What earlier runs left there stays: each has a heading, and the second one's traces are
# traces-2.tar.gz.
# Exit status 0: nothing failed, 1: something did, 2: bad arguments, or no kit.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
least=5             # seconds that must be left for a step to begin
grace=5             # seconds between a step's signal to end and its being killed
largest=$((15 << 20)) # bytes of a file of results

# In this order: a step, its limit in seconds, what it does.
steps='
node        30   the GPU, the driver, CUDA, shared memory, UCX, and what is in the way of several ranks
smoke       60   four tests with buffers of a device
direct      90   tests by a UCX that knows CUDA, on all ranks and beside one that does not
rates       70   copies and sums of the plugin beside one plain copy
collectives 80   an allgather and a reduce-scatter of host and device memory, with and without a UCX that knows CUDA
efficiency  150  collectives and products, apart and together: E and its bound
facts       20   what the driver answers where flash depends on it, and the stand-in decides by itself
waits       20   streams that wait for the host by themselves, and what flash does instead
behind      20   a call behind a long kernel in the default, a blocking and a non-blocking stream
mps         60   the same figures with and without the Multi-Process Service
sanitizer   60   a test under compute-sanitizer
device      450  the tests of device memory, until the time is up
'

usage() {
    sed -n '3,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

die() {
    echo "run.sh: $1" >&2
    exit 2
}

# Only for run.sh itself: one step, in a process of its own.
if [[ ${1-} == --step ]]; then
    for part in kit checks figures; do
        # shellcheck source=/dev/null
        source "$here/$part.bash"
    done
    # The session, whose processes all end with the step.
    awk '{ sub(/.*\) /, ""); print $4 }' "/proc/$$/stat" >"$FLASH_KIT_ROOT/session"
    "step_$2"
    exit
fi

results=${OUT:-$PWD/results}
chosen=()
while (($#)); do
    case $1 in
    --list)
        printf '%s' "${steps#?}"
        exit
        ;;
    -o) results=${2:?a folder} && shift ;;
    -*) usage ;;
    *)
        awk -v name="$1" '$1 == name { found = 1 } END { exit !found }' <<<"$steps" ||
            die "there is no step $1: see run.sh --list"
        chosen+=("$1")
        ;;
    esac
    shift
done
mkdir -p "$results"
results=$(cd "$results" && pwd)
summary=$results/summary.txt
details=$results/details.txt
export FLASH_KIT_SLOW=${FLASH_KIT_SLOW:-1}
budget=$((${FLASH_KIT_SECONDS:-450} * FLASH_KIT_SLOW))
failed=0 passed=0 skipped=0 not_run=0

say() {
    printf '%s\n' "$1" | tee -a "$summary"
}

# Ends what a step has left behind, by the session that all its processes are in.
end_session() {
    local session=$1 stat pid rest
    for stat in /proc/[0-9]*/stat; do
        read -r pid rest 2>/dev/null <"$stat" || continue
        # shellcheck disable=SC2086 # words; the name, in brackets, may have spaces
        set -- ${rest##*) }
        [[ $4 != "$session" ]] || kill -KILL "$pid" 2>/dev/null || :
    done
}

# limit_of STEP: the caller's, or its own; no more than the time that is left.
limit_of() {
    local limit word left=$((budget - SECONDS))
    limit=$(awk -v name="$1" -v slow="$FLASH_KIT_SLOW" '$1 == name { print $2 * slow }' <<<"$steps")
    for word in ${FLASH_KIT_LIMITS-}; do
        [[ $word != "$1="* ]] || limit=${word#*=}
    done
    limit=${limit:-$((10 * FLASH_KIT_SLOW))} # of what is in no list
    # For timeout, 0 is none.
    ((limit > 0)) || limit=1
    echo $((limit < left ? limit : left))
}

# verdict STEP STATUS SECONDS LIMIT
verdict() {
    case $2 in
    0)
        passed=$((passed + 1))
        say "ok       $1, $3 s"
        ;;
    3)
        skipped=$((skipped + 1))
        say "SKIPPED  $1, $3 s: see above"
        ;;
    *)
        failed=$((failed + 1))
        # setsid makes 9 of 137. Either is a SIGKILL, which may come from elsewhere, too.
        if (($2 == 124 || $2 == 137 || $2 == 9)) && (($3 >= $4)); then
            say "FAILED   $1: stopped at its limit of $4 s"
        else
            say "FAILED   $1, $3 s: status $2, see details.txt"
        fi
        ;;
    esac
}

# run_process NAME LIMIT: a step in a session of its own, all of which ends with it. What the step tells is printed.
run_process() {
    local before status=0
    before=$(wc -l <"$summary")
    printf '\n=== %s ===\n' "$1" >>"$details"
    rm -f "$FLASH_KIT_ROOT/session"
    FLASH_KIT_LIMIT=$2 setsid --wait timeout --kill-after "$grace" "$2" bash "$here/run.sh" --step "$1" \
        >>"$details" 2>&1 </dev/null || status=$?
    [[ ! -s $FLASH_KIT_ROOT/session ]] || end_session "$(<"$FLASH_KIT_ROOT/session")"
    tail --lines "+$((before + 1))" "$summary"
    return "$status"
}

run_step() {
    local name=$1 limit status=0 begun=$SECONDS
    limit=$(limit_of "$name")
    if ((budget - SECONDS < least)); then
        not_run=$((not_run + 1))
        say "NOT RUN  $name: the $budget s are over"
        return
    fi
    if [[ $name != node && -e $FLASH_KIT_ROOT/no-device ]]; then
        not_run=$((not_run + 1))
        say "NOT RUN  $name: no device can be used, see node"
        return
    fi
    say "--- $name"
    run_process "$name" "$limit" || status=$?
    verdict "$name" "$status" $((SECONDS - begun)) "$limit"
}

# The archive of traces, of all that there are by now; and no file of results that is too large to come back.
keep_results() {
    if compgen -G "$FLASH_KIT_ROOT/traces/*" >/dev/null; then
        tar --create --directory "$FLASH_KIT_ROOT" traces | gzip >"$archive" || return
        if (($(stat --format %s "$archive") > largest)); then
            rm "$archive"
            say "the traces are too large to be kept"
        fi
    fi
    if (($(stat --format %s "$details") > largest)); then
        tail --bytes "$largest" "$details" >"$details.end" && mv "$details.end" "$details"
    fi
}

# The number of this run in the folder of results.
count_runs() {
    local before
    before=$(grep -c '^coll/flash on ' "$summary" 2>/dev/null || :)
    echo $((${before:-0} + 1))
}

FLASH_KIT_ROOT=$(mktemp -d)
trap 'rm -rf "$FLASH_KIT_ROOT"' EXIT
export FLASH_KIT_ROOT FLASH_KIT_SUMMARY=$summary
[[ -e $here/kit.tar.gz ]] || die "there is no $here/kit.tar.gz: run.sh is for a folder that pack.sh made"
gzip --decompress --stdout "$here/kit.tar.gz" | tar --extract --no-same-owner --directory "$FLASH_KIT_ROOT"
if ((${#chosen[@]} == 0)); then
    mapfile -t chosen < <(awk 'NF { print $1 }' <<<"$steps")
fi
number=$(count_runs)
archive=$results/traces.tar.gz
if ((number > 1)); then
    archive=$results/traces-$number.tar.gz
    printf '\n' >>"$summary"
fi
heading="coll/flash on $(uname -n), $(date --utc '+%F %H:%M:%S') UTC, run $number: ${chosen[*]}"
say "$heading"
printf '\n##### %s #####\n' "$heading" >>"$details"
# What was run, and where, which otherwise the step `node` tells.
if [[ " ${chosen[*]} " != *' node '* ]] && ((budget - SECONDS >= least)); then
    run_process origin "$(limit_of origin)" || say "what this kit and this node are could not be told"
fi
for step in "${chosen[@]}"; do
    run_step "$step"
    keep_results || say "the results of $step could not be kept as they should be"
done
say "$passed passed, $failed failed, $skipped skipped, $not_run not run; $SECONDS s"
((failed == 0))
