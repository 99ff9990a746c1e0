# tap.bash: sourced by tests in shell: points of TAP.
#
#   point NAME COMMAND...   a point: COMMAND ends with 0; what it prints is in "$output"
#   skip NAME REASON        a point that is not tried here
#   long COMMAND...         the points of COMMAND are of the long tier
#   plan                    the end of the script
#
# FLASH_TEST_TIER in the environment says which tier's points are tried, and printed: short (the default),
# long, or all; FLASH_TEST_ONLY, a pattern of the shell's, which names; FLASH_TEST_TIMES, how often each.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

: "${output:?a file, for what the latest point prints}"
points=0
failures=0
skips=0

is_long=no

long() {
    local is_long=yes
    "$@"
}

# wanted NAME: whether that point is to be tried.
wanted() {
    # shellcheck disable=SC2053 # a pattern
    [[ $1 == ${FLASH_TEST_ONLY:-*} ]] || return 1
    case ${FLASH_TEST_TIER:-short} in
    all) ;;
    long) [[ $is_long == yes ]] ;;
    *) [[ $is_long == no ]] ;;
    esac
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

point() {
    local name=$1 status turn
    wanted "$name" || return 0
    shift
    for ((turn = 0; turn < ${FLASH_TEST_TIMES:-1}; turn++)); do
        status=0
        "$@" >"$output" 2>&1 || status=$?
        if ((status == 0)); then
            say ok "$name"
            continue
        fi
        fail "$name" tail -n 40 "$output"
        if ((status == 124 || status == 137)); then
            echo "# hangs: no end within $FLASH_TEST_TIMEOUT s"
        fi
    done
}

# Points that wait for others to share a job with; runner.bash has some.
flush() {
    :
}

plan() {
    flush
    echo "1..$points"
}
