#!/usr/bin/env bash
#
# mutate.sh [NAME]...     breaks the library on purpose, once for each of these mutations (none
#                         named: for all), and says which test notices
# mutate.sh --list        their names, and what each breaks
# mutate.sh --check       whether each still finds what it breaks; nothing is built
#
# A mutation is a file of tests/mutations:
#
#   What: the ring goes the wrong way round
#   File: ompi_coll_flash/engine/flash_schedule.c
#   Tests: unit/test_schedule mpi/info.sh
#
#    a line of the file that stays
#   -a line that goes
#   +a line that comes in its place
#
# What stands behind the empty line, with the lines that go, must be in the file exactly once: if
# it no longer is, the mutation fails. It names no line numbers, so that other changes to the file
# do no harm. The tests are those of tests/unit, tests/gpu and tests/mpi; the first that fails ends
# the mutation's turn, at its first point that does.
#
# Sources and objects are in build-mutate, a clone of this tree with the changes that git would
# commit, and stay there: the next run compiles only what has changed. The first takes some minutes
# longer. A test that hangs is ended, which counts as noticed, after FLASH_TEST_TIMEOUT (40 s). What is
# of the long tier is not tried.
#
# The last line sums up. Exit status 0 if the tests pass without a mutation, and notice each of them.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mutations=$top/tests/mutations
folder=$top/build-mutate
source=$folder/source
build=$folder/build
log=$folder/log # what make has printed last
export FLASH_TEST_TIMEOUT=${FLASH_TEST_TIMEOUT:-40} FLASH_TEST_TIER=short
export FLASH_MUTATE_NOTICED=$folder/noticed # why the test that runs is at an end; empty: all is well
points=0 failed=0

die() {
    echo "mutate.sh: $1" >&2
    exit 1
}

# ---------------------------------------------------------------- what a test says

# Ends all processes of the session, if there are any left.
end_session() {
    local signal
    for signal in TERM TERM KILL; do
        pkill "-$signal" --session "$1" || return 0
        sleep 1
    done
}

# noticed TEXT: why the test that runs is at an end.
noticed() {
    echo "$1" >"$FLASH_MUTATE_NOTICED"
}

# watch COMMAND...: what make runs in place of a test: up to its first point that fails. A script's
# points share jobs, in which each has FLASH_TEST_TIMEOUT; it prints them when the job is over.
watch() {
    local line status=0 last='its start' session silence=$FLASH_TEST_TIMEOUT
    [[ $1 != *.sh ]] || silence=$((4 * FLASH_TEST_TIMEOUT))
    exec 3< <(exec setsid stdbuf --output=L "$@")
    session=$!
    while IFS= read -r -t "$silence" -u 3 line || { status=$? && false; }; do
        printf '%s\n' "$line"
        case $line in
        'not ok '*)
            noticed "${line#not ok }"
            break
            ;;
        'ok '*) last=${line#ok } ;;
        1..*) last='' ;;
        esac
    done
    if ((status > 128)); then
        noticed "hangs after $last"
    elif ((status > 0)) && [[ -n $last ]]; then
        noticed "ends early, after $last"
    elif ((status > 0)) && ! wait "$session"; then
        noticed 'fails at its end'
    fi
    end_session "$session"
    [[ ! -s $FLASH_MUTATE_NOTICED ]]
}

# ----------------------------------------------------------------------- building

# The sources as they are here, in a tree of their own. Only what differs is written.
copy_sources() {
    local commit
    commit=$(git -C "$top" -c user.name=mutate -c user.email=mutate@localhost stash create)
    [[ -n $commit ]] || commit=$(git -C "$top" rev-parse HEAD)
    [[ -d $source ]] || git clone --quiet --shared --no-checkout "$top" "$source"
    git -C "$source" -c advice.detachedHead=false checkout --quiet --force --detach "$commit"
}

configure() {
    [[ -e $source/configure ]] || "$source/autogen.sh"
    mkdir -p "$build"
    cd "$build"
    [[ -e config.status ]] || "$source/configure" --quiet --disable-fortran --without-mpich
}

quiet_make() {
    make --silent --no-print-directory -j"$(nproc)" "$@"
}

# Not the benchmarks, which would be linked anew each time, but those that tests/mpi/selection.sh and starting.sh ask.
build_library() {
    local part
    for part in ucx_backend ompi_coll_flash cuda; do
        quiet_make -C "$build/$part"
    done
    quiet_make -C "$build/mpi_bench" flash_explain flash_scale flash_startup
}

build_tests() {
    local part
    for part in unit gpu mpi; do
        quiet_make -C "$build/tests/$part" check TESTS=
    done
}

prepare() {
    copy_sources
    configure
    build_library
    build_tests
}

# passes TEST: as `make check` runs it, but without linking what the test does not need. 1: it does not,
# and $FLASH_MUTATE_NOTICED says why; 2: make has not run it to its end.
passes() {
    local test=${1#*/} watched
    watched=$(printf '%q --watch' "$top/tests/mutate.sh")
    : >"$FLASH_MUTATE_NOTICED"
    quiet_make -C "$build/tests/${1%/*}" check check_PROGRAMS= TESTS="$test" LOG_COMPILER="$watched" \
        SH_LOG_COMPILER="$watched" >"$log" 2>&1 && return 0
    [[ -s $FLASH_MUTATE_NOTICED ]] && return 1
    cp "$log" "$log-make"
    noticed "make does not run it, see $log-make"
    return 2
}

# ---------------------------------------------------------------------- mutations

# field NAME FIELD
field() {
    sed -n "1,/^\$/s/^$2: *//p" "$mutations/$1"
}

# change NAME FOLDER: its file there, with the change, in "$text". False if what goes is not there exactly once.
change() {
    local line gone=$'\n' come=$'\n' rest file
    file=$2/$(field "$1" File)
    while IFS= read -r line; do
        [[ $line == +* ]] || gone+=${line:1}$'\n'
        [[ $line == -* ]] || come+=${line:1}$'\n'
    done < <(sed '1,/^$/d' "$mutations/$1")
    [[ -f $file && $gone != "$come" ]] || return 1
    text=$'\n'$(<"$file")$'\n'
    rest=${text#*"$gone"}
    [[ $rest != "$text" && $'\n'$rest != *"$gone"* ]] || return 1
    text=${text%%"$gone"*}$come$rest
}

# apply NAME: in the copy.
apply() {
    local text
    change "$1" "$source" && printf '%s' "${text:1}" >"$source/$(field "$1" File)"
}

# Whether all of them apply to the sources as they are here.
check() {
    local name text
    for name in "$@"; do
        change "$name" "$top" || say 'not ok' "$name: no longer applies to $(field "$name" File)"
    done
    ((failed == 0))
}

take_back() {
    git -C "$source" checkout --quiet --force -- .
}

say() {
    points=$((points + 1))
    [[ $1 == ok ]] || failed=$((failed + 1))
    printf '%s %d - %s\n' "$1" "$points" "$2"
}

# Each test that is named, once.
tests_of() {
    local name
    for name in "$@"; do
        field "$name" Tests
    done | tr ' ' '\n' | sort -u
}

try_unmutated() {
    local tests test
    mapfile -t tests < <(tests_of "$@")
    for test in "${tests[@]}"; do
        if ! passes "$test"; then
            say 'not ok' "nothing broken, but $test: $(<"$FLASH_MUTATE_NOTICED")"
            return 1
        fi
    done
    say ok "nothing broken: ${tests[*]} pass"
}

try_mutation() {
    local name=$1 tests test status=0
    if ! apply "$name"; then
        say 'not ok' "$name: no longer applies to $(field "$name" File)"
        return
    fi
    if ! build_library >"$log" 2>&1; then
        say 'not ok' "$name: does not compile, see $log"
        return
    fi
    read -ra tests < <(field "$name" Tests)
    for test in "${tests[@]}"; do
        passes "$test" || status=$?
        case $status in
        0) ;;
        1)
            say ok "$name: caught by $test: $(<"$FLASH_MUTATE_NOTICED")"
            return
            ;;
        *)
            say 'not ok' "$name: $test: $(<"$FLASH_MUTATE_NOTICED")"
            return
            ;;
        esac
    done
    say 'not ok' "$name: NOT caught by ${tests[*]}: $(field "$name" What)"
}

# --------------------------------------------------------------------------- main

list() {
    local name
    for name in "$@"; do
        printf '%-24s %s\n' "$name" "$(field "$name" What)"
    done
}

case ${1-} in
--watch)
    watch "${@:2}"
    exit
    ;;
--help | -h)
    sed -n '3,/^# Copyright/{/^# Copyright/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit
    ;;
esac
cd "$mutations"
all=(*)
case ${1-} in
--list)
    list "${all[@]}"
    exit
    ;;
--check)
    check "${all[@]}"
    exit
    ;;
-*)
    echo "usage: $0 [--list | --check | NAME...]" >&2
    exit 2
    ;;
esac
names=("${@:-${all[@]}}")
for name in "${names[@]}"; do
    [[ -f $name ]] || die "there is no mutation $name: --list tells which there are"
done

mkdir -p "$folder"
exec 9>"$folder/lock"
flock --nonblock 9 || die "another one is at work in $folder"
prepare >"$log" 2>&1 || {
    cat "$log"
    die 'the sources do not build as they are'
}
if try_unmutated "${names[@]}"; then
    for name in "${names[@]}"; do
        try_mutation "$name"
        take_back
    done
fi
echo "1..$points"
echo "$((points - failed)) passed, $failed failed"
((failed == 0))
