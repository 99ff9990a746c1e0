# survivors.bash: sourced by the tests of jobs in which a rank dies, or ends with an error: mpirun's status tells
# nothing there, and mpirun waits as long as a rank does.
#
#   ranks_end run NP ...       likewise run_on: its output into the log. Fails where a rank does not end. Where all have,
#                              and mpirun does not, mpirun is ended, and the point says so
#
# The rest is runner.bash's.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash

rank_patience=$((2 * FLASH_TEST_TIMEOUT))    # seconds for all ranks to end
mpirun_patience=$((FLASH_TEST_TIMEOUT / 4)) # and for mpirun, after them

# ranks_of FOLDER: the processes that write to its files, in whatever namespace they are.
ranks_of() {
    find /proc/[0-9]*/fd/1 -lname "$1/*.out" 2>/dev/null | cut -d/ -f3
}

# watch_ranks FOLDER: until it is killed, or has ended the job, and left the reason in the folder.
watch_ranks() {
    local begin=$SECONDS seen=$SECONDS ranks
    while sleep 1; do
        ranks=$(ranks_of "$1")
        if [[ -n $ranks ]] || ! compgen -G "$1/*.out" >/dev/null; then
            seen=$SECONDS
        fi
        if ((SECONDS - begin > rank_patience)) && [[ -n $ranks ]]; then
            ps -o pid,stat,wchan:20,time,args -p "${ranks//$'\n'/,}" >"$1/listed" || continue # they have just ended
            mv "$1/listed" "$1/left"
        elif ((SECONDS - seen > mpirun_patience)); then
            : >"$1/mpirun"
        else
            continue
        fi
        pkill -TERM --full -- "^timeout .* $1 " # which kills mpirun, if it must
        return
    done
}

ranks_end() {
    local ranks_folder watch
    ranks_folder=$(mktemp -d "$scratch/ranks.XXXXXX")
    watch_ranks "$ranks_folder" &
    watch=$!
    "$@" >"$log" 2>&1 || :
    kill "$watch" 2>/dev/null || :
    wait "$watch" || :
    if [[ -e $ranks_folder/left ]]; then
        echo "these ranks had not ended after $rank_patience seconds:"
        cat "$ranks_folder/left" "$log"
        return 1
    fi
    [[ ! -e $ranks_folder/mpirun ]] ||
        echo "note: all ranks had ended, and mpirun had not $mpirun_patience seconds later"
}
