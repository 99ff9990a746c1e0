#!/usr/bin/env python3
"""Compares flash's calls with Open MPI's own by pml ucx over software RoCE, between two virtual machines (tests/rdma),
size by size, and writes the table docs/results/rdma.tsv.

  mpi_bench/rdma.py [OPTION]...

  --build FOLDER     where test.sh has built (default: build-test)
  --ranks N[,N...]   ranks on each of the two machines (default 1,2)
  --blocks MIN:MAX   sizes of blocks (default 64K:8M)
  --times N          each is N times the one before (default 2)
  --rounds N         runs of each call (default 5)
  --iterations N     calls of each kind in a run (default 10)
  --ratio R          a sleep takes R times as long as the call alone (default 2)
  --alone            only calls alone, and none under a sleep
  --mca NAME=VALUE   a parameter, for all runs; may be given again
  --points FILE      the file of all points: new ones are added, and the table is of all that are there. With
                     --rounds 0 nothing is measured
  --tsv FILE         the table (default: standard output)

A ratio is the time of the call alone, divided by that of the faster of Open MPI's calls, blocking or not, in the same
job, which makes the calls in turn; so is the time of the slower of these. What is hidden is hidden under a sleep, as while an
accelerator computes. It takes longer than the call's median, since calls in a guest differ by a tenth and more. Wake-ups and
context switches are those of the progress thread of rank 0 under that sleep, for each MiB that the rank receives. Figures
are medians of the runs, behind ratios the lowest and the highest.

A virtual machine is emulated and has one core: it is ten to forty times as slow as this machine, and only ratios within a
run mean something.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile

from lab import TOP, count_runs, output_of, points_to_table, today_and_commit, where_and_when

LAB = os.path.join(TOP, "tests", "rdma", "lab")
ENTERED = "/run/lab/lab"  # there inside of `lab enter` alone
SHARED = "/run/lab/shared"
GUESTS = 2
KIB, MIB = 1 << 10, 1 << 20
# By call: the title, the program, and whether it is told the bytes of all blocks.
CALLS = {"allgather": ("AG", "flash_iallgather", False),
         "reduce_scatter": ("RS", "flash_ireduce_scatter_block", True)}
COLUMNS = ("call", "ranks", "block", "path", "ratio", "own_slower", "alone", "hidden", "own_hidden", "wakeups", "switches", "date",
           "commit")


class Guests:
    """Two virtual machines that are up, with so many ranks each."""

    def __init__(self, options, each):
        self.ranks = GUESTS * each
        self.build = options.build
        self.environment = dict(os.environ, FLASH_LAB_RANKS=str(each))
        own = output_of("ompi_info", "--path", "pkglibdir", "--parsable").split(":")[2]
        self.mca = ["--mca", "opal_mca_base_component_path",
                    os.path.join(self.build, "ompi_coll_flash", ".libs") + ":" + own,
                    "--mca", "coll", "flash", "--mca", "pml", "ucx"]
        for setting in options.mca:
            self.mca += ["--mca", *setting.split("=", 1)]

    def __enter__(self):
        subprocess.run([LAB, "up", str(GUESTS)], env=self.environment, check=True)
        return self

    def __exit__(self, *_):
        subprocess.run([LAB, "down"], check=True)

    def rows(self, program, arguments):
        """What the benchmark has measured, by size."""
        print("  {} ranks: {} {}".format(self.ranks, program, " ".join(arguments)), file=sys.stderr, flush=True)
        # In the folder that guests share: of what they say, outputs and errors come as one.
        with tempfile.NamedTemporaryFile("r", dir=SHARED, suffix=".csv") as file:
            done = self.run(program, [*arguments, "--csv=" + file.name])
            rows = list(csv.DictReader(file))
        if done.returncode != 0 or not rows or any(row["Wrong"] != "0" for row in rows):
            sys.exit("rdma: failed:\n{}{}".format(done.stdout, done.stderr))
        return rows

    def run(self, program, arguments):
        command = [LAB, "mpirun", "-np", str(self.ranks), *self.mca, os.path.join(self.build, "mpi_bench", program),
                   *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)


def under_sleep(row, received):
    """What a benchmark's row says of calls under a sleep, each of which receives so many MiB."""
    return {"hidden": row["Overlap(%)"], "own_hidden": row["Own overlap"],
            "wakeups": "{:.2f}".format(float(row["Wake-ups"]) / received),
            "switches": "{:.2f}".format(float(row["Switches"]) / received)}


def points_of(guests, call, options):
    """One run."""
    _, program, told_all = CALLS[call]
    factor = guests.ranks if told_all else 1
    arguments = ["-m", "{}:{}".format(*(factor * size for size in options.blocks)), "--times", str(options.times),
                 "-x", "2", "-i", str(options.iterations),
                 *(["--alone"] if options.alone else ["--compute=sleep", "--ratio={:g}".format(options.ratio)])]
    for row in guests.rows(program, arguments):
        block = int(row["Size"]) // factor
        own = sorted(float(row[name]) for name in ("Own comm.", "Own blocking"))
        yield {"call": call, "ranks": guests.ranks, "block": block, "path": row["Path"], "ratio": row["Comm./own"],
               "own_slower": "{:.3f}".format(own[1] / own[0]), "alone": row["Pure Comm.(us)"],
               **({} if options.alone else under_sleep(row, (guests.ranks - 1) * block / MIB)),
               **today_and_commit()}


def measure(options):
    for each in options.ranks:
        with Guests(options, each) as guests:
            for _ in range(options.rounds):
                for call in CALLS:
                    yield from points_of(guests, call, options)


def size_text(size):
    return "{} MiB".format(size // MIB) if size >= MIB else "{} KiB".format(size // KIB)


def spread(points, name):
    values = [float(point[name]) for point in points]
    return "{:.2f} ({:.2f} to {:.2f})".format(statistics.median(values), min(values), max(values))


def ratio_text(points):
    paths = {point["path"] for point in points}
    text = spread(points, "ratio")
    return text if paths == {"ring"} else "{}, {}".format(text, " and ".join(sorted(paths)))


def medians(points, digits, *names):
    slept = [point for point in points if point["hidden"]]
    return ", ".join("{:.{}f}".format(statistics.median(float(point[name]) for point in slept), digits)
                     for name in names if slept)


# Behind the call and the number of ranks: the title of a group of columns, and what is in a cell.
GROUPS = (("", ratio_text),
          (": Open MPI's slower call", lambda points: spread(points, "own_slower")),
          (": hidden, and by Open MPI, %", lambda points: medians(points, 0, "hidden", "own_hidden")),
          (": wake-ups, switches a MiB", lambda points: medians(points, 1, "wakeups", "switches")))


def table(points):
    """By the size of a block."""
    found = {}
    for point in points:
        found.setdefault((point["call"], int(point["ranks"])), {}).setdefault(int(point["block"]), []).append(point)
    cases = sorted(found)
    yield ["block", *("{}, {} ranks{}".format(CALLS[call][0], ranks, title) for title, _ in GROUPS for call, ranks in cases)]
    for block in sorted({block for sizes in found.values() for block in sizes}):
        yield [size_text(block), *(text(found[case][block]) if block in found[case] else ""
                                   for _, text in GROUPS for case in cases)]


def source_of(options, points):
    """How, where and when: the first lines of the table's file."""
    yield ("The time of the call alone, divided by that of the faster of Open MPI's own calls by pml ucx; lowest and highest "
           "run. Medians of {} runs. Two emulated guests of one core with software RoCE (tests/rdma). "
           "mpi_bench/rdma.py{}.".format(count_runs(points, COLUMNS[:3]),
                                         "".join(" --mca " + setting for setting in options.mca)))
    yield where_and_when(points)


def size_of(text):
    return int(text[:-1]) * {"K": KIB, "M": MIB}[text[-1]]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--build", default=os.path.join(TOP, "build-test"), type=os.path.abspath)
    parser.add_argument("--ranks", default="1,2", type=lambda text: list(map(int, text.split(","))))
    parser.add_argument("--blocks", default="64K:8M", type=lambda text: list(map(size_of, text.split(":"))))
    parser.add_argument("--times", default=2, type=int)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--iterations", default=10, type=int)
    parser.add_argument("--ratio", default=2, type=float)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--mca", default=[], action="append")
    parser.add_argument("--points")
    parser.add_argument("--tsv")
    return parser.parse_args()


def main():
    options = parse()
    if options.rounds and not os.path.islink(ENTERED):
        os.execv(LAB, [LAB, "enter", sys.executable, os.path.abspath(__file__), *sys.argv[1:]])
    points_to_table(options, COLUMNS, lambda: measure(options), lambda points: source_of(options, points), table)


main()
