# tap.bash: sourced by tests in shell: points of TAP.
#
#   point NAME COMMAND...   a point: COMMAND ends with 0; what it prints is in "$output"
#   skip NAME REASON        a point that is not tried here
#   plan                    the end of the script
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

: "${output:?a file, for what the latest point prints}"
points=0
failures=0
skips=0

say() {
    points=$((points + 1))
    printf '%s %d - %s\n' "$1" "$points" "$2"
}

skip() {
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
    local name=$1 status=0
    shift
    "$@" >"$output" 2>&1 || status=$?
    if ((status == 0)); then
        say ok "$name"
        return
    fi
    fail "$name" tail -n 40 "$output"
    if ((status == 124 || status == 137)); then
        echo "# hangs: no end within $FLASH_TEST_TIMEOUT s"
    fi
}

# Points that wait for others to share a job with; runner.bash has some.
flush() {
    :
}

plan() {
    flush
    echo "1..$points"
}
