"""collectives.py [ELEMENTS]: flash's collectives as a Python program calls them.

numpy arrays through mpi4py, which knows nothing of flash. Prints nothing unless something is wrong;
an exception ends the job with `python3 -m mpi4py`. Requests of mpi4py 3.1 do not keep all buffers
alive: that is the caller's part here.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import sys

import numpy as np
from mpi4py import MPI


def block(rank, count, dtype):
    """What a rank contributes: integers, so that all sums are exact."""
    return (np.arange(count) % 1000 + 7 * rank).astype(dtype)


def summed(comm, first, count, dtype):
    """The sum of elements first .. first + count of all ranks' contributions."""
    return sum(block(rank, first + count, dtype)[first:] for rank in range(comm.size))


def check(found, wanted, what):
    """Raises unless two arrays are equal."""
    np.testing.assert_array_equal(found, wanted, err_msg=what)


def compute():
    """What the calls are hidden under."""
    matrix = np.ones((64, 64))
    return matrix @ matrix


def unequal(comm, count):
    """A block length for each rank: one of them empty, and where the blocks begin."""
    counts = [0 if rank == 1 else count + rank for rank in range(comm.size)]
    displs = [sum(counts[:rank]) for rank in range(comm.size)]
    return np.array(counts, "i"), np.array(displs, "i")


def allgather(comm, count, dtype):
    """Equal blocks as the rows of a matrix, out of place and in place."""
    wanted = np.stack([block(rank, count, dtype) for rank in range(comm.size)])
    rows = np.zeros_like(wanted)
    own = block(comm.rank, count, dtype)
    request = comm.Iallgather(own, rows)
    compute()
    request.Wait()
    check(rows, wanted, "Iallgather")
    rows[:] = 0
    rows[comm.rank] = wanted[comm.rank]
    comm.Iallgather(MPI.IN_PLACE, rows).Wait()
    check(rows, wanted, "Iallgather in place")


def allgatherv(comm, count, dtype):
    """Unequal blocks, with an element between them that stays as it is."""
    counts, displs = unequal(comm, count)
    displs += np.arange(comm.size, dtype="i")
    found = np.full(counts.sum() + comm.size, -1, dtype)
    wanted = found.copy()
    for rank in range(comm.size):
        wanted[displs[rank] : displs[rank] + counts[rank]] = block(rank, counts[rank], dtype)
    own = block(comm.rank, counts[comm.rank], dtype)
    request = comm.Iallgatherv(own, [found, (counts, displs)])
    while not request.Test():
        compute()
    check(found, wanted, "Iallgatherv")


def columns(comm, count, dtype):
    """Blocks into every other element. mpi4py makes arrays of the lists, and frees them early."""
    counts, displs = ([array[rank] for rank in range(comm.size)] for array in unequal(comm, count))
    basic = {np.float64: MPI.DOUBLE, np.int32: MPI.INT32_T}[dtype]
    spaced = basic.Create_resized(0, 2 * basic.Get_size()).Commit()
    own = block(comm.rank, counts[comm.rank], dtype)
    found = np.full((sum(counts), 2), -1, dtype)
    request = comm.Iallgatherv(own, [found, counts, displs, spaced])
    spaced.Free()
    others = [np.full(comm.size, 1 << 20, "i") for _ in range(100)]  # where the arrays were
    request.Wait()
    del others
    blocks = [block(rank, counts[rank], dtype) for rank in range(comm.size)]
    check(found[:, 0], np.concatenate(blocks), "Iallgatherv into a column")
    check(found[:, 1], np.full(sum(counts), -1), "the other column")


def reduce_scatter(comm, count, dtype):
    """Unequal blocks."""
    counts, displs = unequal(comm, count)
    contribution = block(comm.rank, counts.sum(), dtype)
    found = np.zeros(counts[comm.rank], dtype)
    request = comm.Ireduce_scatter(contribution, found, counts, MPI.SUM)
    compute()
    request.Wait()
    wanted = summed(comm, displs[comm.rank], counts[comm.rank], dtype)
    check(found, wanted, "Ireduce_scatter")


def reduce_scatter_block(comm, count, dtype):
    """Equal blocks; two calls at a time."""
    contribution = block(comm.rank, comm.size * count, dtype)
    sums, most = np.zeros(count, dtype), np.zeros(count, dtype)
    requests = [
        comm.Ireduce_scatter_block(contribution, sums, MPI.SUM),
        comm.Ireduce_scatter_block(contribution, most, MPI.MAX),
    ]
    compute()
    MPI.Request.Waitall(requests)
    first = comm.rank * count
    check(sums, summed(comm, first, count, dtype), "Ireduce_scatter_block")
    wanted = block(comm.size - 1, first + count, dtype)[first:]
    check(most, wanted, "Ireduce_scatter_block of MAX")


def main():
    """All calls on all ranks, and in another order of them."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 17
    calls = (allgather, allgatherv, columns, reduce_scatter, reduce_scatter_block)
    backwards = MPI.COMM_WORLD.Split(0, -MPI.COMM_WORLD.rank)
    for comm in (MPI.COMM_WORLD, backwards):
        for dtype in (np.float64, np.int32):
            for call in calls:
                call(comm, count, dtype)
    backwards.Free()


main()
