# tap.bash: sourced by tests in shell: points of TAP.
#
#   point NAME COMMAND...   a point: COMMAND ends with 0; what it prints is in "$output". A line `note: ...` of it is
#                           printed where the point holds, too
#   skip NAME REASON        a point that is not tried here
#   long COMMAND...         the points of COMMAND are of the long tier
#   beside COMMAND...       the points of COMMAND, which mostly wait, run beside each other until the plan
#   plan                    the end of the script
#
# FLASH_TEST_TIER in the environment says which tier's points are tried, and printed: short (the default), or all; FLASH_TEST_ONLY, a pattern of the shell's, which names; FLASH_TEST_TIMES, how often each.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

: "${scratch:?a folder}" "${output:?a file, for what the latest point prints}"
points=0
failures=0
skips=0

is_long=no
is_beside=no
besides=() # the folders of those points, of which each has its name, output and status

long() {
    local is_long=yes
    "$@"
}

beside() {
    local is_beside=yes
    "$@"
}

# wanted NAME: whether that point is to be tried.
wanted() {
    # shellcheck disable=SC2053 # a pattern
    [[ $1 == ${FLASH_TEST_ONLY:-*} ]] || return 1
    [[ $is_long == no || ${FLASH_TEST_TIER:-short} == all ]]
}

say() {
    points=$((points + 1))
    printf '%s %d - %s\n' "$1" "$points" "$2"
}

skip() {
    wanted "$1" || return 0
    points=$((points + 1))
    skips=$((skips + 1))
    printf 'ok %d # SKIP %s: %s\n' "$points" "$1" "$2"
}

# fail NAME COMMAND...: a point that failed; what COMMAND prints tells why.
fail() {
    failures=$((failures + 1))
    say 'not ok' "$1"
    "${@:2}" | awk '{ print "# " $0 }' || : # awk ends the last line
}

# why OUTPUT: of what a program has printed, the checks that failed, which may lie far ahead of its end.
why() {
    grep -m 20 'rank [0-9]* of [0-9]*, case ' "$1" || :
    tail -n 40 "$1"
}

# judge NAME STATUS OUTPUT: prints the result of a point.
judge() {
    if (($2 == 0)); then
        say ok "$1"
        sed -n 's/^note: /# /p' "$3"
        return
    fi
    fail "$1" why "$3"
    if (($2 == 124 || $2 == 137)); then
        echo '# hangs: its time was up'
    fi
}

# start_beside NAME COMMAND...: with files of its own. Four at a time.
start_beside() {
    local folder status=0
    while (($(jobs -pr | wc -l) >= 4)); do
        wait -n || :
    done
    folder=$(mktemp -d "$scratch/beside.XXXXXX")
    printf '%s\n' "$1" >"$folder/name"
    besides+=("$folder")
    (
        scratch=$folder log=$folder/log output=$folder/output
        "${@:2}" >"$output" 2>&1 || status=$?
        echo "$status" >"$folder/status"
    ) &
}

judge_besides() {
    local folder
    for folder in "${besides[@]}"; do
        until [[ -s $folder/status ]]; do
            wait -n || break
        done
        judge "$(<"$folder/name")" "$(cat "$folder/status" || echo 1)" "$folder/output"
    done
    besides=()
}

point() {
    local name=$1 status turn
    wanted "$name" || return 0
    shift
    for ((turn = 0; turn < ${FLASH_TEST_TIMES:-1}; turn++)); do
        if [[ $is_beside == yes ]]; then
            start_beside "$name" "$@"
            continue
        fi
        status=0
        "$@" >"$output" 2>&1 || status=$?
        judge "$name" "$status" "$output"
    done
}

# Points that wait for others to share a job with; runner.bash, which has some, replaces it.
flush() {
    :
}

plan() {
    flush
    judge_besides
    echo "1..$points"
}

# A script that gave one of its own functions such a name would run that in its place, and pass.
readonly -f long beside wanted say skip fail why judge start_beside judge_besides point plan
