#!/usr/bin/env python3
"""C = A B from Python: A's rows lie on all ranks, and are multiplied as they arrive.

  mpirun -n 4 --mca coll flash python3 gather_gemm.py [PREFIX/lib/libmpix_flash.so]

mpi4py makes the communicator, ctypes calls MPIX_Allgather_compute(), numpy computes in the callback.
The library's path is needed unless it is where the system looks for libraries. Python is one that has
mpi4py for this Open MPI, such as Debian's /usr/bin/python3.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import ctypes
import sys

import numpy
from mpi4py import MPI

ROWS, WIDTH, COLUMNS = 60, 64, 48  # A has ROWS on each rank, B is WIDTH x COLUMNS


class Block(ctypes.Structure):
    """MPIX_Flash_block"""
    _fields_ = [("rank", ctypes.c_int), ("piece", ctypes.c_int), ("pieces", ctypes.c_int),
                ("displ", ctypes.c_longlong), ("offset", ctypes.c_longlong),
                ("count", ctypes.c_longlong), ("datatype", ctypes.c_void_p),
                ("data", ctypes.c_void_p), ("on_stream", ctypes.c_int),
                ("stream", ctypes.c_void_p), ("handle_operation", ctypes.c_void_p),
                ("handle_piece", ctypes.c_longlong)]


class Hints(ctypes.Structure):
    """MPIX_Flash_hints"""
    _fields_ = [("size", ctypes.c_size_t), ("pieces", ctypes.c_int), ("row", ctypes.c_longlong),
                ("on_stream", ctypes.c_int), ("stream", ctypes.c_void_p),
                ("own", ctypes.c_void_p), ("own_arg", ctypes.c_void_p)]


Compute = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Block), ctypes.c_void_p)


def handle_of(thing):
    """Open MPI's handle of an object of mpi4py's."""
    return ctypes.c_void_p.from_address(MPI._addressof(thing))


def gather(flash, own, gathered, width, compute, comm):
    """Gathers rows; compute(first, rows) is called with an array of those that have arrived."""
    caught = []

    def consume(block, _):
        try:
            piece = block.contents
            data = ctypes.cast(piece.data, ctypes.POINTER(ctypes.c_double))
            rows = numpy.ctypeslib.as_array(data, (piece.count // width, width))
            compute((piece.displ + piece.offset) // width, rows)
        except Exception as error:  # must not leave a callback: C would not see it
            caught.append(error)
            return MPI.ERR_OTHER
        return MPI.SUCCESS

    callback = Compute(consume)  # to be held until the call returns
    hints = Hints(size=ctypes.sizeof(Hints), pieces=3, row=width)
    double = handle_of(MPI.DOUBLE)
    result = flash.MPIX_Allgather_compute(
        ctypes.c_void_p(own.ctypes.data), own.size, double, ctypes.c_void_p(gathered.ctypes.data),
        own.size, double, callback, None, ctypes.byref(hints), handle_of(comm))
    if caught:
        raise caught[0]
    if result != MPI.SUCCESS:
        raise MPI.Exception(result)


def main():
    flash = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libmpix_flash.so.1")
    comm = MPI.COMM_WORLD.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    whole = numpy.random.default_rng(1).random((comm.size * ROWS, WIDTH))
    b = numpy.random.default_rng(2).random((WIDTH, COLUMNS))
    own = whole[comm.rank * ROWS:(comm.rank + 1) * ROWS].copy()
    gathered = numpy.empty_like(whole)
    c = numpy.full((comm.size * ROWS, COLUMNS), numpy.nan)

    def multiply(first, rows):
        c[first:first + len(rows)] = rows @ b

    gather(flash, own, gathered, WIDTH, multiply, comm)
    error = comm.allreduce(float(abs(c - whole @ b).max()), MPI.MAX)
    if comm.rank == 0:
        print(f"{comm.size} ranks: error {error:.1e}")
    comm.Free()
    sys.exit(0 if error < 1e-9 else 1)  # not a NAN


main()
