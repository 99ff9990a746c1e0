#!/usr/bin/env bash
# What users get wrong before anything runs: a clear sentence each, never a crash. And flash's
# messages as a whole: each is told by a test, and names cause and remedy.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

linked=$programs/test_version_linked # with flash's library; test_version is without
libraries=$top_builddir/ompi_coll_flash/.libs
path=$FLASH_COMPONENT_PATH
series=$("$OMPI_INFO" --version | sed -n 's/^Open MPI v\([0-9]*\.[0-9]*\).*/\1/p')

# ---------------------------------------------------------------- the help file

same() { # NAME FILE FILE
    echo "$1:"
    diff "$2" "$3"
}

# Each topic is used by a source, and each that is used exists; likewise those that tests are told.
topics_are_used() {
    sed -n 's/^\[\(.*\)\]$/\1/p' "$help_file" | sort >"$scratch/topics"
    cat "$top_srcdir"/ompi_coll_flash/*/*.c | tr '\n' ' ' | grep -o 'FLASH_HELP( *"[^"]*"' |
        cut -d '"' -f 2 | sort -u >"$scratch/used"
    sed -e 's/^ *#.*//' -e "s/'[^']*'//g" "$top_srcdir"/tests/mpi/*.sh |
        grep -o -w -E '(told|explains|ends_explaining) [a-z][a-z-]*' | cut -d ' ' -f 2 | sort -u \
        >"$scratch/told"
    [[ -s $scratch/topics ]] &&
        same "topics and the sources' uses" "$scratch/topics" "$scratch/used" &&
        same 'topics and what tests are told' "$scratch/topics" "$scratch/told"
}
point 'each message is used, and told by a test' topics_are_used

# A sentence that says what is wrong, and then what to do.
topics_are_whole() {
    local topic found=0
    while read -r topic; do
        lines_of "$topic" | tr '\n' ' ' >"$scratch/text"
        grep -E -q '^[A-Z(c].{40,}[.:] .*Remedy: .{6,}\\\. *$' "$scratch/text" || {
            echo "$topic: no cause, or no remedy at its end:"
            cat "$scratch/text"
            return 1
        }
        found=$((found + 1))
    done <"$scratch/topics"
    ((found > 0))
}
point 'each message has a cause and a remedy' topics_are_whole

# By Open MPI and mpirun, which the other tests do not go by, see messages.c: of a rank that is alone, and lives
# for a second. Even of such a one Open MPI 4.1.4 loses some ("Data unpack would read past end of buffer").
reaches_the_user() {
    local turn
    for turn in {1..20}; do
        run 1 --mca coll_flash_segment_bytes 1x -- /usr/bin/env -u LD_PRELOAD "$programs/flash_tests" \
            test_async idle >"$log" 2>&1 || {
            cat "$log"
            return 1
        }
        grep -q 'ORTE_ERROR_LOG' "$log" || break
        echo "lost, turn $turn"
    done
    told parameter-ignored
}
point 'a message reaches the user by Open MPI' reaches_the_user

# ---------------------------------------------------------------- another MPI

# ends_with TEXT COMMAND...: fails in time, by no signal, and says TEXT.
ends_with() {
    local text=$1 status=0
    shift
    "$@" >"$log" 2>&1 || status=$?
    if ((status == 0 || status >= 124)) || grep -e 'exited on signal' -e 'egmentation' "$log"; then
        echo "ends with $status"
        cat "$log"
        return 1
    fi
    holds + "$text"
}

other='FLASH_TEST_LIBRARY=Open MPI v9.8.7, package: another'
with_another=(/usr/bin/env "$other")
coll=^nothing point 'the component of another Open MPI: not used, said, and the job runs' \
    says 2 'is loaded by Open MPI v9.8.7: it is$' 2 -- "${with_another[@]}" "$programs/test_version"
asked_for_another() {
    ends_with 'component was not found' run 2 -- "${with_another[@]}" "$programs/test_version" &&
        holds + 'is loaded by Open MPI v9.8.7: it is$' && holds + 'Remedy: build'
}
point 'asked for by name: said, and the job ends' asked_for_another
mixed() {
    coll=^nothing says 1 'is loaded by Open MPI v9.8.7: it is$' 3 -- "${on_rank[@]}" 1 "$other" \
        "$programs/test_version" &&
        holds 3 'right, flash is not active' && told releases-differ
}
point 'on one rank: said, and none uses flash' mixed
coll=^nothing point 'another release of the same series is used' says 2 'serves communicator 0' 2 \
    --mca coll_flash_verbose 1 \
    -- /usr/bin/env "FLASH_TEST_LIBRARY=Open MPI v$series.99, package: another" \
    "$programs/test_version"
coll=^nothing point 'a program linked for another Open MPI: its first call says so, and ends it' \
    ends_with 'this program runs with another MPI: Open MPI v9.8.7' run 2 -- \
    "${with_another[@]}" "$linked"
coll=^nothing point 'a program linked for another one that calls nothing of flash: runs' \
    says 2 'right, flash is not active' 2 -x FLASH_TEST_CALLS=0 -- "${with_another[@]}" "$linked"
point 'a program linked with it runs' says 2 'right, flash is active' 2 -- "$linked"

# With MPICH's compiler wrapper, and flash's library.
of_mpich() {
    mpicc.mpich -I"$top_srcdir/ompi_coll_flash" "$top_srcdir/tests/mpi/test_version.c" \
        -o "$scratch/of_mpich" -Wl,--no-as-needed -L"$libraries" -lmpix_flash \
        -Wl,-rpath,"$libraries" &&
        ends_with 'this program runs with another MPI: MPICH' "$scratch/of_mpich" &&
        holds 1 'Remedy: link and run'
}
if sanitized; then
    skip "a program of MPICH's" 'a sanitizer would have to be linked first'
elif command -v mpicc.mpich >/dev/null; then
    point "a program of MPICH's: said, and ends" of_mpich
else
    skip "a program of MPICH's" 'no mpicc.mpich (Debian: libmpich-dev)'
fi

# --------------------------------------------------------------------- UCX's own

for transports in tcp,self posix,self '^posix,sysv'; do
    beside point "UCX_FLASH_TLS $transports: UCX finds all settings fitting" \
        says 0 'invalid configuration' 2 -x "UCX_FLASH_TLS=$transports" -- test_allgather counts
done

# ------------------------------------------------- a component without its library

mkdir "$scratch/alone"
sed 's/libmpix_flash\.so\.1/libmpix_flash.so.?/' "$libraries/mca_coll_flash.so" \
    >"$scratch/alone/mca_coll_flash.so"
show=(--mca mca_base_component_show_load_errors "$( ((ompi_major < 5)) && echo 1 || echo all)")
alone() {
    coll=^nothing says 2 'right, flash is not active' 2 "${show[@]}" -- test_version &&
        holds + 'libmpix_flash.so.?: cannot open shared object file'
}
FLASH_COMPONENT_PATH=$scratch/alone:${path#*:}
point 'a component without its library: said, and the job runs' alone
point 'asked for by name: said, and the job ends' \
    ends_with 'component was not found' run 2 "${show[@]}" -- test_version
FLASH_COMPONENT_PATH=$path

# ------------------------------------------------------------------- misspelt

# On all ranks: where one ends and another has come to the job's first fence, Open MPI 4.1's mpirun now and then
# uses memory that it has freed, and falls or hangs.
coll=flahs point 'a component that there is not: said, and the job ends' \
    ends_with 'Component: flahs' run 2 --mca coll_flash_verbose 0 -- "$programs/test_version"

# misspelt PARAMETER VALUE CHECK...: that is told, and what held before holds.
misspells() {
    run 2 --mca coll_flash_verbose 1 --mca "$1" "$2" -- "$linked" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds 2 "$held" && "${@:3}" && holds + " $2\$"
}
misspelt() {
    beside point "$1 $2: said, and the default holds" misspells "$@"
}
held='serves this job (algorithm auto, .* segment_bytes 0, .*)'
for value in 1x -5; do
    misspelt coll_flash_segment_bytes "$value" told parameter-ignored
done
for value in abc 0x 64kk 99999999999999999999999; do
    long misspelt coll_flash_segment_bytes "$value" told parameter-ignored
done
misspelt coll_flash_priority 9o told parameter-ignored
misspelt coll_flash_segment_window -1 told parameter-ignored
misspelt coll_flash_algorithm rign holds + 'invalid value was supplied for'
misspelt coll_flash_progress onn holds + 'invalid value was supplied for'
misspelt coll_flash_segmet_bytes 4096 told parameter-unknown
too_few_pinned() { # BYTES [MPIRUN OPTION]...
    explains pinned-bytes-too-low 2 --mca coll_flash_pinned_bytes "$@" -- "$linked" && holds 2 'right, flash is active'
}
beside point 'coll_flash_pinned_bytes of less than three segments: said, and the job runs' \
    too_few_pinned 196607 --mca coll_flash_segment_bytes 65536
beside point 'coll_flash_pinned_bytes of less than three of the longest segments: likewise' \
    too_few_pinned 12582911
enough_pinned() { # BYTES
    says 2 'right, flash is active' 2 --mca coll_flash_segment_bytes 65536 \
        --mca coll_flash_pinned_bytes "$1" -- "$linked" && holds 0 'three segments'
}
for value in 196608 0; do
    beside point "coll_flash_pinned_bytes $value: nothing is said" enough_pinned "$value"
done
is_taken() {
    says 2 'serves this job (.* segment_bytes 65536,' 2 --mca coll_flash_verbose 1 \
        --mca coll_flash_segment_bytes "$1" -- "$linked" && holds 0 'is ignored'
}
for value in 65536 64k; do
    beside point "coll_flash_segment_bytes $value: a number" is_taken "$value"
done
for value in 64K 64kB 0x10000; do
    beside long point "coll_flash_segment_bytes $value: a number" is_taken "$value"
done

plan
