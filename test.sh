#!/usr/bin/env bash
#
# test.sh [--all] [CONFIGURE OPTION]...: installs what is missing, builds coll/flash in ./build-test,
# warnings being errors, and runs its tests, two more at a time than there are cores: some ten minutes on two idle
# ones. With --all, the long ones, too: hours, see tests/long.sh. The last lines say which took longest, and sum
# up. A test that takes more than a minute of its share of the cores fails, unless FLASH_TEST_LOADED=1 says that the
# machine has other work.
# Exit status 0 if some passed and none failed. ./build.sh build-test --help lists configure's options.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
folder=build-test
# Seconds that a test of the short tier may take: those of one that would take a minute if it had a core for itself.
cores=$(nproc)
longest=$((60 * (cores + 2) / cores))

if [[ " $* " == *' --help '* || " $* " == *' -h '* ]]; then
    sed -n '3,/^#$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]##*/}"
    exit 0
fi
all=no
if [[ ${1-} == --all ]]; then
    all=yes
    shift
fi

./install-deps.sh
./build.sh "$folder" --enable-werror "$@"
# The test programs first, all at once; then the tests, which have limits of time.
echo 'building the tests'
make --directory "$folder" --silent -j"$cores" check TESTS= >/dev/null
find "$folder/tests" \( -name '*.trs' -o -name '*.log' -o -name '*.time' \) -delete
checked=0
SECONDS=0
make --directory "$folder" --silent --keep-going -j"$((cores + 2))" --file="$PWD/tests/all.mk" || checked=$?
make --directory "$folder/tests/mpi" --silent check TESTS=install.sh || checked=$?
whole=$SECONDS

passed=0 failed=0 skipped=0
while IFS= read -r -d '' results; do
    while read -r field result _; do
        [[ $field == :test-result: ]] || continue
        case $result in
        PASS | XFAIL) passed=$((passed + 1)) ;;
        SKIP) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) ;;
        esac
    done <"$results"
    if grep -Eq '^:test-result: (FAIL|XPASS|ERROR)' "$results"; then
        printf '\n=== %s ===\n' "${results%.trs}"
        cat "${results%.trs}.log"
    fi
done < <(find "$folder/tests" -name '*.trs' -print0 | sort -z)

# tests/all.mk names folders.
for place in "$folder"/tests/*/; do
    [[ $(find "$place" -name '*.trs' -print -quit) ]] || {
        echo "not ok: no test of $place was run: see tests/all.mk"
        failed=$((failed + 1))
    }
done

# Whatever stopped make apart from a test.
if ((checked != 0 && failed == 0)); then
    echo "make check failed outside of the tests: see above"
    failed=1
fi

# SECONDS, those of processor time, TEST; the longest first.
times() {
    find "$folder/tests" -name '*.time' -exec awk '{
        name = FILENAME; sub(/.*\/tests\//, "", name); sub(/\.time$/, "", name)
        printf "%7.1f %7.1f  %s\n", $1, $2 + $3, name
    }' {} + | sort -rn
}
printf '\nThe ten longest tests: seconds, seconds of processor time\n'
times | sed 10q
echo "All tests: $whole s"
# Not where something else has the cores, as tests/repeat does it, nor with tools that slow programs down.
if [[ ! ${FLASH_TEST_LOADED-} && "$*" != *--enable-[at]san* ]]; then
    while read -r seconds _ name; do
        echo "not ok: $name takes $seconds s: no test of the short tier may take more than" \
            "$longest s (with FLASH_TEST_LOADED=1 it may: the machine has other work)"
        failed=$((failed + 1))
    done < <(times | awk -v longest="$longest" '$1 > longest')
fi

if [[ $all == yes ]]; then
    echo
    more_passed=0 more_failed=0 more_skipped=0
    tests/long.sh --folder "$folder" all || failed=$((failed + 1))
    read -r more_passed more_failed more_skipped <"$folder/long-summary" || :
    passed=$((passed + more_passed)) failed=$((failed + more_failed)) skipped=$((skipped + more_skipped))
fi

summary="$passed passed, $failed failed"
if ((skipped)); then
    summary+=", $skipped skipped"
fi
echo
echo "$summary"
((passed > 0 && failed == 0))
