#!/usr/bin/env python3
"""Compares what MPI_Init, and the first of each of some calls behind it, cost programs with and without flash, by
flash_startup, and writes the table docs/results/startup.tsv.

  mpi_bench/startup.py [OPTION]...

  --prefix DIR       where flash is installed (default: install, as quickstart.sh leaves it)
  --before NAME=DIR  where another version of it is, to be compared, too: NAME is its column's
  --here N           ranks on this host (default 16)
  --hosts N          emulated hosts with a rank each (default 8); 0: none
  --rounds N         jobs of each kind, in turn (default 9)
  --points FILE      the file of all points: new ones are added, and the table is of all that are there. With
                     --rounds 0 nothing is measured
  --tsv FILE         the table (default: standard output)

A cell is the median over the jobs of: the time of the call on the slowest rank; the processor time, and the memory that
the process has for itself, that the mean rank has taken until the call's end.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import argparse
import os
import statistics

from lab import Lab, TOP, count_runs, points_to_table, today_and_commit, where_and_when

COLUMNS = ("place", "variant", "call", "ms", "cpu_ms", "private_kib", "date", "commit")
INIT = ["--mca", "coll_flash_setup", "init"]


def variants_of(options):
    """By title: an installation, options of mpirun, and whether flash serves."""
    lab = Lab(os.path.abspath(options.prefix))
    yield "without flash", lab, [], False
    yield "flash", lab, [], True
    yield "coll_flash_setup init", lab, INIT, True
    if options.before:
        name, prefix = options.before.split("=", 1)
        before = Lab(os.path.abspath(prefix))
        before.bin = lab.bin  # the program is not flash's
        yield name, before, [], True


def points_of(options, title, lab, mca, served):
    """One job of each place."""
    places = [("{} ranks on one host".format(options.here), lab.here, options.here)]
    if options.hosts:
        places.append(("{} hosts".format(options.hosts), lab.hosts, options.hosts))
    for place, run, count in places:
        for row in lab.rows(run(count, "flash_startup", [], mca, served)):
            yield {"place": place, "variant": title, **row, **today_and_commit()}


def measure(options):
    for _ in range(options.rounds):
        for variant in variants_of(options):
            yield from points_of(options, *variant)


def cell(points):
    ms, cpu, kib = (statistics.median(float(point[name]) for point in points) for name in COLUMNS[3:6])
    return "{:.0f}, {:.0f}, {:.2f}".format(ms, cpu, kib / 1024)


def table(points):
    found = {}
    for point in points:
        row = found.setdefault((point["place"], point["call"]), {})
        row.setdefault(point["variant"], []).append(point)
    variants = list(dict.fromkeys(point["variant"] for point in points))
    yield ["the first call, and its time, ms; processor time so far, ms; private memory, MiB", *variants]
    for (place, call), row in found.items():
        yield ["{}: {}".format(place, call), *(cell(row[variant]) if variant in row else "" for variant in variants)]


def source_of(points):
    """How, where and when: the first lines of the table's file."""
    yield ("Medians of {} jobs of each kind, in turn; blocks of 64 KiB; the time on the slowest rank, the rest of the mean "
           "rank. mpi_bench/startup.py.".format(count_runs(points, COLUMNS[:3])))
    yield where_and_when(points)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--prefix", default=os.path.join(TOP, "install"))
    parser.add_argument("--before")
    parser.add_argument("--here", default=16, type=int)
    parser.add_argument("--hosts", default=8, type=int)
    parser.add_argument("--rounds", default=9, type=int)
    parser.add_argument("--points")
    parser.add_argument("--tsv")
    options = parser.parse_args()
    points_to_table(options, COLUMNS, lambda: measure(options), source_of, table)


main()
