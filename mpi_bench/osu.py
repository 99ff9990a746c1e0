#!/usr/bin/env python3
"""Runs OSU's own non-blocking benchmarks on emulated hosts, with flash and without, and writes the table
docs/results/osu.tsv.

  mpi_bench/osu.py --osu DIR [OPTION]... [CALL]...

  --osu DIR          OSU's sources, as they were built with Open MPI's mpicc
  --peer NAME=DIR[,LAUNCHER]
                     likewise, built with MPICH; LAUNCHER is its mpiexec, or that of an MPI with MPICH's binary interface.
                     May be given again
  --prefix DIR       where flash is installed (default: install, as quickstart.sh leaves it)
  --hosts N[,N...]   numbers of hosts, with a rank on each (default 2,4)
  --sizes MIN:MAX    bytes, as OSU has them: a rank's block, or a whole vector (default 1048576:4194304)
  --rounds N         runs of each kind, in turn (default 3)
  --iterations N     of each size (default 20)
  --points FILE      the file of all points: new ones are added, and the table is of all that are there. With
                     --rounds 0 nothing is measured
  --tsv FILE         the table (default: standard output)

The table has what OSU calls the overall time, and the time of the call alone: with flash, divided by the same of
Open MPI's call and of the peers', as medians of the rounds' ratios; then OSU's overlap of all of them, as medians. OSU
computes by the clock for as long as the call of the same library takes alone, and prints 0 for an overlap below 0.
A peer's run that fails is left out: MPICH 4.0 hangs now and then.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import argparse
import os
import re
import statistics
import sys
import time

from lab import Lab, TOP, count_runs, points_to_table, today_and_commit, where_and_when

CALLS = ("iallgather", "ireduce_scatter", "iallreduce", "ialltoall", "ialltoallv", "ibcast", "ireduce", "igather", "iscatter")
COLUMNS = ("call", "hosts", "bytes", "by", "round", "overall", "alone", "overlap", "date", "commit")
OURS, OWN = "flash", "Open MPI"
WARMUP = 2
# With -f: the size, overall, computation, start, tests, wait, alone, its least and most, overlap.
ROW = re.compile(r"^(\d+)" + r"\s+(-?[\d.]+)" * 9 + "$", re.MULTILINE)


def sizes_of(options):
    """How many sizes OSU measures: powers of two."""
    least, most = map(int, options.sizes.split(":"))
    return (most // least).bit_length()


def output_of_osu(lab, options, call, hosts, by):
    """One run: what OSU prints."""
    folder, launcher = options.peers.get(by, (options.osu, None))
    program = os.path.join(folder, "c", "mpi", "collective", "non_blocking", "osu_" + call)
    arguments = ["-f", "-m", options.sizes, "-i", str(options.iterations), "-x", str(WARMUP)]
    if by in options.peers:
        return lab.hosts_of_mpich(hosts, program, arguments, ["-b"], launcher)
    text = lab.hosts(hosts, program, arguments, ["-b", "--mca", "coll_flash_summary", "1"], by == OURS)
    if by == OURS:
        # The calls alone and those under computation.
        ring = re.search(r"^  calls by the ring  *(\d+)", lab.said, re.MULTILINE)
        if not ring or int(ring.group(1)) < 2 * options.iterations * sizes_of(options):
            raise SystemExit("osu: not all calls of osu_{} on {} hosts went by the ring".format(call, hosts))
    return text


def points_of(lab, options, call, hosts, by):
    """One run: a point for each size."""
    rows = ROW.findall(output_of_osu(lab, options, call, hosts, by))
    if len(rows) != sizes_of(options):
        raise SystemExit("osu: figures of {} sizes of osu_{}, {}".format(len(rows), call, by))
    for size, overall, _, _, _, _, alone, _, _, overlap in rows:
        yield {"call": call, "hosts": hosts, "bytes": size, "by": by, "overall": overall, "alone": alone, "overlap": overlap}


def measure(lab, options):
    """Of all variants in turn, so that what disturbs a while disturbs all."""
    variants = [OURS, OWN, *options.peers]
    for number in range(options.rounds):
        known = {"round": "{:.0f}".format(time.time()), **today_and_commit()}
        for hosts in options.hosts:
            for call in options.calls:
                for by in variants[::(-1) ** number]:
                    try:
                        yield from ({**point, **known} for point in points_of(lab, options, call, hosts, by))
                    except SystemExit as failed:
                        if by not in options.peers:
                            raise
                        print("osu: left out: {}".format(failed), file=sys.stderr)


def figures(points, name):
    """By variant and round."""
    found = {}
    for point in points:
        found.setdefault(point["by"], {})[point["round"]] = float(point[name])
    return found


def ratio(ours, other):
    """The median of the rounds that have both."""
    ratios = [ours[number] / other[number] for number in ours if number in other]
    return "{:.2f}".format(statistics.median(ratios)) if ratios else "-"


def cells(points, others):
    """Of a call, a number of hosts and a size: overall, alone, overlap."""
    for name in ("overall", "alone"):
        found = figures(points, name)
        yield ", ".join(ratio(found[OURS], found.get(by, {})) for by in others)
    found = figures(points, "overlap")
    yield ", ".join("{:.0f}".format(statistics.median(found[by].values())) if by in found else "-" for by in (OURS, *others))


def table(points):
    """A line for each number of hosts, call and size."""
    others = [by for by in dict.fromkeys(point["by"] for point in points) if by != OURS]
    found = {}
    for point in points:
        key = int(point["hosts"]), CALLS.index(point["call"]), int(point["bytes"])
        found.setdefault(key, []).append(point)
    beside = ", ".join(others)
    yield ["call", "overall, of " + beside, "alone, of " + beside, "overlap, %: flash, " + beside]
    for (hosts, call, size), some in sorted(found.items()):
        yield ["{} hosts, {}, {:g} MiB".format(hosts, CALLS[call], size / (1 << 20)), *cells(some, others)]


def peer(text):
    """Of an option --peer: the name, and the folder and the launcher."""
    name, _, places = text.partition("=")
    folder, _, launcher = places.partition(",")
    if not folder:
        raise argparse.ArgumentTypeError("give NAME=DIR[,LAUNCHER]")
    return name, (os.path.abspath(folder), os.path.abspath(launcher) if launcher else None)


def source_of(points):
    """How, where and when: the first lines of the table's file."""
    yield ("OSU's own programs in turn: the time with flash, divided by that of the others; overlap as OSU defines it. "
           "Medians of {} runs. Emulated hosts that share the machine's cores, 2 Gbit/s both ways. "
           "mpi_bench/osu.py.".format(count_runs(points, COLUMNS[:4])))
    yield where_and_when(points)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("calls", nargs="*")
    parser.add_argument("--osu", type=os.path.abspath)
    parser.add_argument("--peer", dest="peers", action="append", default=[], type=peer)
    parser.add_argument("--prefix", default=os.path.join(TOP, "install"), type=os.path.abspath)
    parser.add_argument("--hosts", default="2,4", type=lambda text: list(map(int, text.split(","))))
    parser.add_argument("--sizes", default="1048576:4194304")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--iterations", default=20, type=int)
    parser.add_argument("--points")
    parser.add_argument("--tsv")
    options = parser.parse_args()
    options.peers = dict(options.peers)
    options.calls = options.calls or list(CALLS)
    if not set(options.calls) <= set(CALLS):
        parser.error("calls: " + ", ".join(CALLS))
    if options.rounds and not options.osu:
        parser.error("--osu: give the folder of OSU's sources")
    return options


def main():
    options = parse()
    points_to_table(options, COLUMNS, lambda: measure(Lab(options.prefix), options), source_of, table)


main()
