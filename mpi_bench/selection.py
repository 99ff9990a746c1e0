#!/usr/bin/env python3
"""Compares flash's algorithms for small calls with Open MPI's non-blocking calls on emulated hosts, size by size, and
writes the table docs/results/selection-small.tsv.

  mpi_bench/selection.py [OPTION]... [pairwise] [recdbl]

  --prefix DIR       where flash is installed (default: install, as quickstart.sh leaves it)
  --hosts N[,N...]   numbers of hosts, with a rank on each (default 2,3,4)
  --rounds N         runs of each kind, in turn (default 5)
  --points FILE      the file of all points: new ones are added, and the table is of all that are there. With
                     --rounds 0 nothing is measured
  --tsv FILE         the table (default: standard output)

A cell is a call's time relative to that of Open MPI's non-blocking call in the same job, which makes the two calls in
turn: alone, under computation. It is the median of the runs. The rows "own" compare Open MPI's call with itself, in a
job without flash: they show the noise. The pairwise algorithm is measured as costs choose it, without its thread, by a
file of costs that knows no other algorithm.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import argparse
import os
import statistics
import tempfile

from lab import Lab, TOP, count_runs, points_to_table, today_and_commit, where_and_when

RATIOS = (("alone", "Pure Comm.(us)", "Own comm."), ("overall", "Overall(us)", "Own overall"))
COLUMNS = ("algorithm", "call", "hosts", "bytes", *(name for name, _, _ in RATIOS), "date", "commit")
TITLES = {"reduce_scatter": "{}, reduce-scatter, {} in all", "allgather": "{}, allgather, blocks of {}"}
# Sizes: of all blocks of a reduce-scatter, of a rank's block of an allgather.
REDUCE_SCATTER = ("reduce_scatter", "flash_ireduce_scatter_block", "64:256K")
ALLGATHER = ("allgather", "flash_iallgather", "8:8K")
RUNS = {"pairwise": (REDUCE_SCATTER,), "recdbl": (REDUCE_SCATTER, ALLGATHER)}


def points_of(lab, hosts, algorithm, served, costs):
    """One run of each call."""
    by_cost = ["--mca", "coll_flash_costs", costs]
    options = by_cost if algorithm == "pairwise" else ["--mca", "coll_flash_algorithm", algorithm]
    for call, program, sizes in RUNS[algorithm]:
        for row in lab.rows(lab.hosts(hosts, program, ["-m", sizes, "--times=2", "--seconds=0.15", "--same-work",
                                                       "--csv=-"], options, served)):
            if served and row["Path"] != algorithm:
                raise SystemExit("selection: {} hosts, {} B: {}".format(hosts, row["Size"], row["Path"]))
            yield {"algorithm": algorithm if served else "own", "call": call, "hosts": hosts, "bytes": row["Size"],
                   **today_and_commit(),
                   **{name: float(row[ours]) / float(row[own]) for name, ours, own in RATIOS}}


def measure(lab, options):
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as costs:
        os.chmod(costs.name, 0o644)
        print("network reduce_scatter pairwise 1 0 0 0", file=costs, flush=True)
        for number in range(options.rounds):
            for hosts in options.hosts:
                for algorithm in options.algorithms:
                    for served in (True, False)[::(-1) ** number]:
                        yield from points_of(lab, hosts, algorithm, served, costs.name)


def size_text(size):
    return "{} B".format(size) if size < 1024 else "{} KiB".format(size // 1024)


def cell(points):
    return ", ".join("{:.2f}".format(statistics.median(float(point[name]) for point in points))
                     for name, _, _ in RATIOS)


def table(points):
    """By call, algorithm and size."""
    found = {}
    for point in points:
        found.setdefault((point["call"], point["algorithm"], int(point["bytes"])), {}).setdefault(
            int(point["hosts"]), []).append(point)
    hosts = sorted({int(point["hosts"]) for point in points})
    yield ["", *("{} hosts".format(number) for number in hosts)]
    for call, title in TITLES.items():
        for algorithm in ("pairwise", "recdbl", "own"):
            for size in sorted(key[2] for key in found if key[:2] == (call, algorithm)):
                cells = found[call, algorithm, size]
                yield [title.format(algorithm, size_text(size)),
                       *(cell(cells[number]) if number in cells else "" for number in hosts)]


def source_of(points):
    """How, where and when: the first lines of the table's file."""
    yield ("Time relative to Open MPI's non-blocking call: alone, under computation. Rows \"own\": Open MPI's call and "
           "itself. Medians of {} runs. Emulated hosts, 2 Gbit/s. mpi_bench/selection.py.".format(count_runs(points, COLUMNS[:4])))
    yield where_and_when(points)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("algorithms", nargs="*")
    parser.add_argument("--prefix", default=os.path.join(TOP, "install"), type=os.path.abspath)
    parser.add_argument("--hosts", default="2,3,4", type=lambda text: list(map(int, text.split(","))))
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--points")
    parser.add_argument("--tsv")
    options = parser.parse_args()
    options.algorithms = options.algorithms or list(RUNS)
    if not set(options.algorithms) <= set(RUNS):
        parser.error("algorithms: " + ", ".join(RUNS))
    return options


def main():
    options = parse()
    points_to_table(options, COLUMNS, lambda: measure(Lab(options.prefix), options), source_of, table)


main()
