#!/usr/bin/env bash
# Communicators that are set up by their first calls: UCX is opened then, and not by MPI_Init.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

# shellcheck disable=SC2034 # the runner's
algorithm=ring
program=$programs/test_setup
# With ThreadSanitizer tests/tap.mk sets UCX_MEM_EVENTS, by which UCX is opened in MPI_Init.
if [[ ${FLASH_SANITIZER-} == thread ]]; then
    options --mca coll_flash_setup call
    for np in 2 3 5; do
        mpi "$np" --mca coll_flash_blocking yes -- test_setup late communicators freed freed_held beside_intercomm waiting
    done
    mpi 3 -- random_ops
    skip 'which jobs open UCX with their first calls, and refusals' 'ThreadSanitizer wants it opened in MPI_Init'
    plan
    exit
fi
for np in 2 3 5; do
    more=()
    ((np == 3)) || more=(long)
    "${more[@]}" mpi "$np" --mca coll_flash_blocking yes -- test_setup late communicators freed freed_held beside_intercomm waiting
done
# With coll_flash_blocking yes, a call of the test programs themselves, behind MPI_Init, has UCX opened.
algorithm=pairwise mpi 3 -- test_setup opens late communicators freed_held

# UCX is not usable on one rank: its calls, and those of all others, fall back, also those that have waited.
chain=(--mca coll_libnbc_ibcast_algorithm 3) # of 16 KiB
refused() { # NP RANK
    says 1 'cannot use UCX' "$1" --mca coll_flash_blocking yes --mca coll_flash_verbose 1 "${chain[@]}" -- "${on_rank[@]}" "$2" \
        UCX_FLASH_TLS=nonsense "$program" late communicators freed_held waiting many &&
        holds + 'communicator .*: UCX is not usable on all ranks: calls by messages fall back' &&
        holds 0 'UCX is open on all ranks' && told ucx-not-usable
}
point 'np 3: UCX is not usable on one rank: said, and all calls fall back' refused 3 0
long point 'np 2: likewise' refused 2 1
point 'UCX is not usable, and no call needs it: nothing is said' \
    says 0 'cannot use UCX' 2 -x UCX_FLASH_TLS=nonsense --mca coll_flash_algorithm fallback -- test_setup waiting

# Which jobs do so: those whose ranks all may.
ranks=3
when() { # WHEN COMMAND...: the line of each rank
    says "$ranks" "serves this job (.*$1)" "$ranks" --mca coll_flash_verbose 1 "${@:2}"
}
no_set_up() {
    when "$@" && holds 0 'set up by first calls'
}
point 'a program that is linked with flash: in MPI_Init' no_set_up '' -- test_extension active
point 'MPI_THREAD_MULTIPLE: in MPI_Init' no_set_up '' -- "${on_rank[@]}" '0 1 2' FLASH_TEST_LEVEL=multiple \
    "$program" late communicators waiting threads
point 'a relative path in LD_LIBRARY_PATH: in MPI_Init' no_set_up '' -- "${on_rank[@]}" '0 1 2' \
    "LD_LIBRARY_PATH=lib:${LD_LIBRARY_PATH-}" "$program" bystander
point 'UCX_MEM_EVENTS in the environment: in MPI_Init' no_set_up '' -x UCX_MEM_EVENTS=n -- test_setup bystander
one_at_a_time() {
    when ', set up by first calls' --mca coll_flash_verbose 2 -- "${on_rank[@]}" 0 FLASH_TEST_LEVEL=funneled \
        "${on_rank[@]}" '1 2' FLASH_TEST_LEVEL=serialized "$program" late communicators freed_held waiting &&
        holds + 'Iallgather of .*: ring' && holds 0 'Iallgather of .*: falls back' &&
        holds + 'communicator .*: all ranks learn addresses of [1-9]'
}
point 'MPI_THREAD_FUNNELED and MPI_THREAD_SERIALIZED: by calls, which are held' one_at_a_time
# The program finds flash by a relative path, and goes to another folder.
moved=("${on_rank[@]}" '0 1 2' "LD_LIBRARY_PATH=$(realpath --relative-to=. "$top_builddir/ompi_coll_flash/.libs"):${LD_LIBRARY_PATH-}")
if sanitized; then # which has its own way to find libraries
    moved=()
fi
point 'coll_flash_setup call at MPI_THREAD_MULTIPLE: by calls, and no call is held' \
    when ', set up by first calls that may wait' --mca coll_flash_setup call -- \
    "${on_rank[@]}" '0 1 2' FLASH_TEST_LEVEL=multiple "${moved[@]}" "$program" moved late communicators waiting
if ((ompi_major >= 5)); then
    point 'a session, and then MPI_Init at MPI_THREAD_MULTIPLE: in MPI_Init' no_set_up '' -x FLASH_TEST_SESSION=1 -- \
        "${on_rank[@]}" '0 1 2' FLASH_TEST_LEVEL=multiple "$program" late communicators waiting
else
    skip 'a session, and then MPI_Init at MPI_THREAD_MULTIPLE' 'this Open MPI has no sessions (5.0 and later)'
fi

# One rank that may not has all open UCX in MPI_Init, also those that have not by then.
in_init() { # COMMAND...
    no_set_up '' --mca coll_flash_verbose 2 "$@" && holds "$ranks" 'communicator 0: UCX is open on all ranks'
}
# shellcheck disable=SC2016 # expanded by the inner shell
by_rank=(/bin/sh -c 'case $OMPI_COMM_WORLD_RANK in 2) exec "$0" bystander ;; esac; exec "$@"' "$program")
two_programs() {
    in_init -- "${by_rank[@]}" "$programs/flash_tests" test_extension starts_alone &&
        holds 2 'Iallgather_compute of .*: ring'
}
point 'two programs, one of which is linked with flash: no call of its waits for another rank' two_programs
multiple_on_one() {
    local ranks=4 # not all of which are neighbours
    in_init -- "${on_rank[@]}" 1 FLASH_TEST_LEVEL=multiple "$program" late communicators waiting &&
        holds + 'Iallgather of .*: ring' && holds 0 'Iallgather of .*: falls back'
}
point 'MPI_THREAD_MULTIPLE on one rank: all calls are served' multiple_on_one
mixed_refused() { # RANK
    says 3 'does not serve this job (' 3 --mca coll_flash_verbose 1 -- "${on_rank[@]}" 1 FLASH_TEST_LEVEL=multiple \
        "${on_rank[@]}" "$1" UCX_FLASH_TLS=nonsense "$program" late communicators waiting &&
        holds 1 'cannot use UCX' && told ucx-not-usable
}
point 'likewise, UCX is not usable on another rank: flash does not serve the job' mixed_refused 0
long point 'likewise, on that rank' mixed_refused 1

beside point 'a rank that is late: said, with cause and remedy, and all goes well' explains set-up-stalled \
    says + 'waits for all ranks to make their first such call' 3 --mca coll_flash_stall_seconds 1 -- test_setup slow
# Programs that are linked with flash: random calls of all kinds, the extension's among them.
mpi 3 --mca coll_flash_setup call -- random_ops
# Calls that are shared with the fallback: its part begins at once, the other one is held, or falls back.
shared=(--mca coll_flash_setup call --mca coll_flash_algorithm auto --mca coll_flash_costs "$costs_folder/small_rings")
mpi 3 "${shared[@]}" -- test_alltoallv many handles_gone communicators
mpi 3 "${shared[@]}" -- test_gatherv many handles_gone communicators roots
long mpi 5 "${shared[@]}" -- test_alltoallv many handles_gone communicators
long mpi 5 "${shared[@]}" -- test_gatherv many handles_gone communicators roots
long mpi 3 "${shared[@]}" -- random_ops
shared_refused() {
    says 1 'cannot use UCX' "$ranks" "${shared[@]}" -- "${on_rank[@]}" 1 UCX_FLASH_TLS=nonsense \
        "$programs/flash_tests" "$@"
}
point 'calls that are shared with the fallback, UCX is not usable on one rank: both parts fall back' \
    shared_refused test_alltoallv counts many communicators
point 'likewise, gathers and scatters' shared_refused test_gatherv roots many communicators
four() {
    local ranks=4 # not all of which are neighbours
    "$@"
}
point 'np 4: likewise, all-to-alls' four shared_refused test_alltoallv counts many communicators
point 'np 4: likewise, gathers and scatters' four shared_refused test_gatherv roots many communicators
# All of the call is held, and falls back: in place, persistent, of all types and roots.
shared+=(--mca coll_flash_algorithm ring)
point 'likewise, whole allgathers' shared_refused test_allgather counts types
point 'likewise, reduce-scatters' shared_refused test_reduce_scatter operations other_ways
point 'likewise, allreduces' shared_refused test_allreduce operations persistent handles_gone
point 'likewise, all-to-alls' shared_refused test_alltoall counts types
point 'likewise, broadcasts' shared_refused test_bcast roots types many handles_gone
point 'likewise, gathers and scatters' shared_refused test_gather roots types many handles_gone
shared+=(--mca coll_flash_algorithm auto)
shared+=(--mca coll_flash_costs "$costs_folder/blocking" -x FLASH_TEST_BLOCKING=1)
point 'blocking calls that would be shared, likewise: all of them fall back' shared_refused test_alltoallv counts many communicators
# Open MPI takes libnbc's tags at times that differ from rank to rank.
mpi 3 --mca coll_flash_setup call -- test_allreduce beside_idup

# Buffers of devices: bounces of calls that have waited and fall back.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/device.bash"
options --mca coll_flash_setup call --mca coll_flash_cuda_plugin "$plugin"
device_refused() {
    says 1 'cannot use UCX' 3 -- "${on_rank[@]}" 1 UCX_FLASH_TLS=nonsense "$programs/flash_device_tests" "$@"
}
point 'buffers of devices, UCX is not usable on one rank: calls that have waited fall back' device_refused test_device_first
long mpi 3 -- test_device_first
long mpi 3 -- test_device allgather reduce_scatter alltoall
plan
