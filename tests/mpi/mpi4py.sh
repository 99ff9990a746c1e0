#!/usr/bin/env bash
# Python's mpi4py with numpy arrays, which goes by `--mca coll flash` like any other program.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

program=$top_srcdir/tests/mpi/collectives.py
version=$("$OMPI_INFO" --version | sed -n '1s/^Open MPI v//p')

# The first Python that has the modules, for this Open MPI: the distribution's often is not the first
# in PATH. Otherwise why not, in `reason`.
python='' reason='no python3'
for candidate in "${PYTHON:-}" /usr/bin/python3 python3; do
    command -v "$candidate" >/dev/null || continue
    if ! found=$("$candidate" -c 'import numpy, mpi4py; mpi4py.rc.initialize = False
from mpi4py import MPI; print(MPI.Get_library_version().partition(",")[0])' 2>/dev/null); then
        reason='no mpi4py or no numpy (Debian: python3-mpi4py, python3-numpy)'
    elif [[ $found != "Open MPI v$version" ]]; then
        reason="mpi4py is for $found, not Open MPI v$version"
    else
        python=$(command -v "$candidate")
        break
    fi
done
if sanitized; then
    python='' reason='python3 cannot load a component with a sanitizer'
fi

# collectives NP [MPIRUN OPTION]... -- [ELEMENTS]; -m mpi4py: an exception ends the other ranks, too.
collectives() {
    local np=$1 own=()
    shift
    while [[ $1 != -- ]]; do
        own+=("$1")
        shift
    done
    shift
    run "$np" "${own[@]}" -- "$python" -m mpi4py "$program" "$@"
}

# All calls go around the ring: two communicators, two types, and four ranks.
rings() {
    local call count
    collectives 4 --mca coll_flash_verbose 2 -- >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    for call in Iallgather=32 Iallgatherv=32 Ireduce_scatter=16 Ireduce_scatter_block=32; do
        count=$(grep -c "coll:flash: ${call%=*} of .* bytes .*: ring" "$log") || :
        if ((count != ${call#*=})); then
            echo "${call%=*}: $count rings, not ${call#*=}"
            cat "$log"
            return 1
        fi
    done
}

if [[ -z $python ]]; then
    skip 'mpi4py' "$reason"
    plan
    exit 0
fi

for np in 1 2 3; do
    point "np $np: mpi4py" collectives "$np" --
done
point 'np 4: mpi4py: all calls go around the ring' rings
point 'np 3, coll_flash_progress off: mpi4py' collectives 3 --mca coll_flash_progress off --
point 'np 5, coll_flash_algorithm ring: mpi4py, short blocks' \
    collectives 5 --mca coll_flash_algorithm ring -- 17
for np in 1 2 4; do
    point "np $np: gather_gemm.py" run "$np" -- "$python" -m mpi4py \
        "$top_srcdir/examples/gather_gemm.py" "$top_builddir/ompi_coll_flash/.libs/libmpix_flash.so"
done

plan
