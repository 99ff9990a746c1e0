#!/usr/bin/env python3
"""What PETSc does by MPI's collectives, as programs use it: programs.sh runs it with flash and without.

  mpirun -n 3 --mca coll flash /usr/bin/python3 petsc.py CASE [SIZE]

  pipecg   a sparse system by pipelined conjugate gradients: MPI_Iallreduce of two or three numbers in each iteration
  dense    a dense system by GMRES: MPI_Iallgather of the vector in each product
  scatter  vectors that all ranks get whole: MPI_Iallgatherv, while each rank computes

Each rank prints a line `result RANK DIGEST`, of the bits of what it has computed, and the first one how good it is. The
exit status is 1 if that is not good enough.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import hashlib
import sys

import numpy
import petsc4py

petsc4py.init(sys.argv[:1])
from petsc4py import PETSc  # noqa: E402 # behind init, which decides how PETSc starts

COMM = PETSc.COMM_WORLD


def ordered(first, count, scale):
    """Numbers that differ from place to place, without a random generator."""
    places = numpy.arange(first, first + count, dtype=numpy.float64)
    return numpy.sin(scale * places) + 2


def solve(matrix, kind, preconditioner, tolerance):
    """The solution of `matrix` times it = what belongs to known numbers, and the largest error."""
    known, right = matrix.createVecs()
    first, behind = known.getOwnershipRange()
    known.setArray(ordered(first, behind - first, 0.37))
    matrix.mult(known, right)
    found = known.duplicate()
    solver = PETSc.KSP().create(COMM)
    solver.setOperators(matrix)
    solver.setType(kind)
    solver.getPC().setType(preconditioner)
    solver.setTolerances(rtol=tolerance, max_it=2000)
    solver.solve(right, found)
    digest = hashlib.sha256(found.getArray().tobytes())
    found.axpy(-1, known)
    return digest, found.norm(PETSc.NormType.NORM_INFINITY), solver.getIterationNumber()


def pipecg(size):
    """Of a square of size x size points, each of which is bound to four others."""
    matrix = PETSc.Mat().createAIJ((size * size, size * size), nnz=5, comm=COMM)
    for row in range(*matrix.getOwnershipRange()):
        matrix.setValue(row, row, 4.5)
        for other in (row - size, row + size):
            if 0 <= other < size * size:
                matrix.setValue(row, other, -1)
        if row % size > 0:
            matrix.setValue(row, row - 1, -1)
        if row % size < size - 1:
            matrix.setValue(row, row + 1, -1)
    matrix.assemble()
    return solve(matrix, PETSc.KSP.Type.PIPECG, PETSc.PC.Type.JACOBI, 1e-12)


def dense(size):
    """Each row has its own numbers, and a diagonal that outweighs them."""
    matrix = PETSc.Mat().createDense((size, size), comm=COMM)
    matrix.setUp()
    first, behind = matrix.getOwnershipRange()
    block = matrix.getDenseArray()
    for row in range(first, behind):
        block[row - first, :] = ordered(row, size, 0.61)
        block[row - first, row] = 4 * size
    matrix.assemble()
    return solve(matrix, PETSc.KSP.Type.GMRES, PETSc.PC.Type.NONE, 1e-12)


def scatter(size):
    """In turn: all ranks get a vector whole, and each works out meanwhile what must be in it."""
    vector = PETSc.Vec().createMPI(size, comm=COMM)
    first, behind = vector.getOwnershipRange()
    to_all, whole = PETSc.Scatter.toAll(vector)
    digest, worst = hashlib.sha256(), 0.0
    for turn in range(4):
        vector.setArray(ordered(first, behind - first, 0.1 + turn))
        to_all.scatterBegin(vector, whole)
        expected = ordered(0, size, 0.1 + turn)
        to_all.scatterEnd(vector, whole)
        worst = max(worst, abs(whole.getArray() - expected).max())
        digest.update(whole.getArray().tobytes())
    return digest, worst, 4


def main():
    case, size = sys.argv[1], int(sys.argv[2])
    digest, error, times = {"pipecg": pipecg, "dense": dense, "scatter": scatter}[case](size)
    print("result {} {}".format(COMM.getRank(), digest.hexdigest()), flush=True)
    if COMM.getRank() == 0:
        print("{} of {}: {} times, error {:.1e}".format(case, size, times, error), flush=True)
    return 0 if error < 1e-8 else 1


sys.exit(main())
