#!/usr/bin/env bash
# Programs of the distribution's packages, as users run them: with flash they compute what they compute without, and
# flash has served calls of theirs. tests/long.sh runs this script; it is not among the scripts of `make check`. A
# program that is not installed is skipped.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

shm=auto
export OMP_NUM_THREADS=1 # for each rank

# result_of FILE NP [MPIRUN OPTION]... -- PROGRAM [ARGUMENT]...: runs it, and keeps the lines that have its result,
# "$result". Programs leave files where they run.
result_of() {
    (cd "$scratch" && run "${@:2}") >"$log" 2>&1 && grep "$result" "$log" >"$1" && return
    cat "$log"
    return 1
}

# same_bits, same_energy: whether the two results are the same. An energy is the last word of its line, but for as many
# as "$energy_at" says.
same_bits() {
    diff "$scratch/without" "$scratch/with"
}
same_energy() {
    paste "$scratch/without" "$scratch/with" | awk -v at="$energy_at" '
        { split($0, half, "\t"); n = split(half[1], a, " "); split(half[2], b, " "); off = a[n - at] - b[n - at] }
        { print half[1] "; " half[2]; lines++ }
        a[n - at] !~ /^-?[0-9]+\.[0-9]+$/ || off * off > 1e-14 { wrong = 1 } END { exit wrong || !lines }'
}

# same ROW COMPARE NP [MPIRUN OPTION]... -- PROGRAM [ARGUMENT]...: the same with flash and without, and this row of the
# summary is not 0.
same() {
    coll=^flash result_of "$scratch/without" "${@:3}" &&
        result_of "$scratch/with" "$3" --mca coll_flash_summary 1 "${@:4}" &&
        "$2" && holds + "^  $1  *[1-9]"
}

# ours PROGRAM: whether it is there, and built for this Open MPI; otherwise why not, in `reason`.
ours() {
    local program libraries library
    reason="no $1 (Debian: $2)"
    program=$(command -v "$1") || return 1
    reason="$1 is not built for this Open MPI"
    libraries=$(ldd "$program")
    library=$(ldd "$programs/test_others" | awk '$1 ~ /^libmpi\.so/ { print $3 }')
    [[ $library && $libraries == *"$library"* ]]
}

# ------------------------------------------------------------------------ PETSc, by its module for Python

# Like mpi4py.sh's: the first Python that has the module, for this Open MPI; otherwise why not, in `reason`. Debian's
# module is found by itself only where PETSc's headers are installed, too.
find_petsc() {
    local version found folder
    version=$("$OMPI_INFO" --version | sed -n '1s/^Open MPI v//p')
    reason='no petsc4py (Debian: python3-petsc4py, python3-mpi4py)'
    for python in "${PYTHON:-}" /usr/bin/python3 python3; do
        command -v "$python" >/dev/null || continue
        for folder in "${PETSC_DIR-}" /usr/lib/petscdir/petsc*/*-real; do
            found=$(PETSC_DIR=$folder "$python" -c 'import numpy, petsc4py, mpi4py; mpi4py.rc.initialize = False
from mpi4py import MPI; print(MPI.Get_library_version().partition(",")[0])' 2>/dev/null) || continue
            if [[ $found == "Open MPI v$version" ]]; then
                export PETSC_DIR=$folder
                python=$(command -v "$python")
                return 0
            fi
            reason="petsc4py is for $found, not Open MPI v$version"
        done
    done
    return 1
}

# By the costs that are built in, then all by the ring.
petsc() {
    local np calls=$top_srcdir/tests/mpi/petsc.py costs='' result='^result '
    # An allgather moves bytes: no algorithm changes a bit of what GMRES computes by it.
    for np in 2 3; do
        point "np $np: PETSc, dense GMRES" same 'calls by shared memory' same_bits "$np" -- "$python" "$calls" dense 400
        algorithm=ring point "np $np: PETSc, dense GMRES (ring)" \
            same 'calls by the ring' same_bits "$np" -- "$python" "$calls" dense 400
        for algorithm in auto ring; do
            point "np $np: PETSc, a vector that all ranks get ($algorithm)" \
                same 'calls by the ring' same_bits "$np" -- "$python" "$calls" scatter 1000003
        done
        algorithm=auto
    done
    # Sums of two numbers have the same bits in any order; of more, PETSc's solution is compared with the known one.
    point 'np 2: PETSc, pipelined CG' same 'calls by the fallback' same_bits 2 -- "$python" "$calls" pipecg 40
    algorithm=ring
    point 'np 2: PETSc, pipelined CG (ring)' same 'calls by the ring' same_bits 2 -- "$python" "$calls" pipecg 40
    point 'np 3: PETSc, pipelined CG (ring)' same 'calls by the ring' : 3 -- "$python" "$calls" pipecg 40
    algorithm=auto
}

if sanitized; then
    skip 'PETSc' 'python3 cannot load a component with a sanitizer'
elif find_petsc; then
    petsc
else
    skip 'PETSc' "$reason"
fi

# -------------------------------------------------------------------------- programs that make blocking calls

# blocking NAME PROGRAM ARGUMENT...: its calls by the ring, long ones by costs, and all of them.
blocking() {
    local name=$1 np
    shift
    costs=$costs_folder/blocking point "np 2: $name, long blocking calls by costs" \
        same 'calls by the ring' same_energy 2 -- "$@"
    algorithm=ring
    for np in 2 3 4; do
        point "np $np: $name, all blocking calls (ring)" \
            same 'calls by the ring' same_energy "$np" --mca coll_flash_blocking yes -- "$@"
    done
    algorithm=auto
}

if sanitized; then
    skip 'Quantum ESPRESSO, CP2K' 'they would want the flags of the sanitizer'
else
    result='^!.*total energy' energy_at=1
    if ours pw.x 'quantum-espresso, quantum-espresso-data'; then
        blocking 'Quantum ESPRESSO' "$(command -v pw.x)" -in "$top_srcdir/tests/mpi/programs/silicon.in"
    else
        skip 'Quantum ESPRESSO' "$reason"
    fi
    result='ENERGY| Total' energy_at=0
    if ours cp2k.psmp cp2k; then
        blocking 'CP2K' "$(command -v cp2k.psmp)" -i "$top_srcdir/tests/mpi/programs/water.inp"
    else
        skip 'CP2K' "$reason"
    fi
fi

plan
