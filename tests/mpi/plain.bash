# plain.bash: sourced behind runner.bash by the scripts of plain calls that take another way than a ring:
# what comes of one must come of each of them.
#
#   plain_results      points: results of both collectives, on 1 to 8 ranks
#   plain_requests     points: requests of all kinds, many, early freed, from several threads
#   plain_random [OPTION]...   points: random calls, with these options of mpirun
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

results_of() { # NP
    mpi "$1" -- test_allgather
    mpi "$1" -- test_reduce_scatter
}

plain_results() {
    local np
    for np in 2 3 5; do
        results_of "$np"
    done
    for np in 1 4 6 7 8; do
        long results_of "$np"
    done
}

requests_of() { # NP
    mpi "$1" -- test_requests one_communicator many_communicators free_active free_types \
        free_communicators come_and_go reduce_meanwhile leak
}

failures_of() { # NP
    mpi "$1" -- test_sizes plain own_block
    mpi "$1" -- test_failures
}

lives_of() { # NP
    # shellcheck disable=SC2154 # runner.bash's
    mpi "$1" -- test_threads "${thread_cases[@]}"
    mpi "$1" -- test_in_turn
    mpi "$1" -- test_life
    mpi "$1" -- test_life finalize
}

plain_requests() {
    local np
    failures_of 3
    for np in 2 4 5; do
        long failures_of "$np"
    done
    requests_of 5
    long requests_of 2
    long requests_of 8
    long mpi 2 -- test_requests many_pending
    long lives_of 2
    lives_of 3
    long lives_of 4
    mpi 2 -- test_cancel
    long mpi 3 -- test_growth
    point 'sizes disagree: cause and remedy' explains sizes-disagree 2 -- test_sizes plain
}

plain_random() {
    local np before=("${common[@]}")
    options "$@"
    mpi 3 -- random_ops --seed="${FLASH_TEST_SEED:-20261125}" --operations=500
    for np in 2 5; do
        long mpi "$np" -- random_ops --seed="${FLASH_TEST_SEED:-20261125}" --operations=500
    done
    options "${before[@]}"
}
