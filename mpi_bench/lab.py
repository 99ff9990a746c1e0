"""lab.py: runs benchmarks for the other programs of this folder, on emulated hosts or on this one.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import collections
import csv
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def known_points(options):
    """Those of the file --points, if it is there."""
    if not options.points or not os.path.exists(options.points):
        return []
    with open(options.points, encoding="ascii") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def add_point(options, points, columns, point):
    """To the points, and to the file, which is whole after each one."""
    points.append({name: str(point.get(name, "")) for name in columns})
    if options.points:
        with open(options.points, "w", encoding="ascii") as file:
            writer = csv.DictWriter(file, columns, delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(points)


def write_table(options, source, table):
    """To the file --tsv, or to standard output: lines that tell the source, and rows."""
    with open(options.tsv or "/dev/stdout", "w", encoding="utf-8") as file:
        print(*("# " + line for line in source), *("\t".join(row) for row in table), sep="\n", file=file)


def points_to_table(options, columns, measure, source, table):
    """Measures, unless --rounds is 0, and writes the table of all points that there are."""
    points = known_points(options)
    for point in measure() if options.rounds else ():
        add_point(options, points, columns, point)
    if not points:
        raise SystemExit("there are no points: give --points FILE, or measure some")
    write_table(options, source(points), table(points))


def output_of(*command):
    return subprocess.run(command, cwd=TOP, check=True, capture_output=True, text=True).stdout.strip()


def today_and_commit():
    """Of a point."""
    return {"date": time.strftime("%Y-%m-%d"), "commit": output_of("git", "describe", "--always", "--dirty", "--exclude=*")}


def count_runs(points, columns):
    """How many points there are of each kind, which these columns tell: as text."""
    runs = collections.Counter(tuple(point[name] for name in columns) for point in points)
    least, most = min(runs.values()), max(runs.values())
    return str(most) if least == most else "{} to {}".format(least, most)


def where_and_when(points):
    """A line of a table's source."""
    model = output_of("sed", "-n", "s/^model name.*: //p", "/proc/cpuinfo").split("\n")[0]
    return "A shared virtual machine: {} x {}, Linux {}; {}, commit {}, {}.".format(
        os.cpu_count(), model, platform.release().split("-")[0],
        *(", ".join(dict.fromkeys(point[what] for point in points)) for what in ("date", "commit")),
        output_of("ompi_info", "--version").split("\n")[0])


def processor_time():
    """Of all cores since the machine started: busy, and in all."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


class Lab:
    """Runs the installed benchmarks, on this host or on emulated ones."""

    busy = 0  # percent of the machine's cores, in the latest run
    said = ""  # on standard error, likewise

    def __init__(self, prefix, runs=None):
        self.runs = runs
        self.bin = os.path.join(prefix, "bin")
        self.environment = dict(
            os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"
        )
        own = subprocess.run(
            ["ompi_info", "--path", "pkglibdir", "--parsable"],
            check=True, capture_output=True, text=True,
        ).stdout.strip().split(":")[2]
        self.mca = ["--mca", "opal_mca_base_component_path",
                    os.path.join(prefix, "lib", "openmpi") + ":" + own, "--mca", "coll", "flash"]

    def times(self, usual):
        """How often to run something."""
        return usual if self.runs is None else min(usual, self.runs)

    def _mca(self, served):
        return self.mca[:-1] + ["flash" if served else "^flash"]

    def _run(self, launcher, program, arguments):
        command = launcher + [os.path.join(self.bin, program)] + arguments
        print("  " + " ".join([program] + arguments), file=sys.stderr, flush=True)
        before = processor_time()
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        busy, whole = (after - start for after, start in zip(processor_time(), before))
        self.busy = 100 * busy / max(whole, 1)
        self.said = done.stderr
        if done.returncode != 0:
            sys.exit("lab: failed: {}\n{}".format(" ".join(command), done.stderr))
        return done.stdout

    def hosts(self, count, program, arguments, options=(), served=True):
        launcher = [os.path.join(TOP, "tests", "cluster", "hosts"), "-n", str(count), *options]
        return self._run(launcher + self._mca(served) + ["--"], program, arguments)

    def hosts_of_mpich(self, count, program, arguments, options=(), launcher=None):
        """Runs a program built with MPICH, or with another MPI that MPICH's launcher can start."""
        command = [os.path.join(TOP, "tests", "cluster", "hosts"), "-l", "mpich", "-n", str(count), *options, "--"]
        return self._run(["timeout", "300", "env", "MPIEXEC_MPICH=" + (launcher or "mpiexec.mpich"), *command],
                         program, arguments)

    def here(self, ranks, program, arguments, options=(), served=True):
        launcher = ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none",
                    "--mca", "mpi_yield_when_idle", "1", *options]
        return self._run(launcher + self._mca(served), program, arguments)

    def gemm(self, count, arguments, options=()):
        """flash_gemm on hosts: its results, by operation."""
        with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
            self.hosts(count, "flash_gemm", arguments + ["--json=" + file.name], options)
            run = json.load(file)
        if any(result["wrong_checks"] for result in run["results"]):
            sys.exit("lab: wrong results")
        return run

    def compare(self, arguments):
        """flash_compare's rows."""
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as file:
            print("  flash_compare " + " ".join(arguments), file=sys.stderr, flush=True)
            subprocess.run([os.path.join(TOP, "mpi_bench", "flash_compare"), "--prefix",
                            os.path.dirname(self.bin), "--csv", file.name] + arguments)
            rows = list(csv.DictReader(file))
        if not any(row["variant"] == "flash" for row in rows):
            sys.exit("lab: flash_compare has not measured flash")
        return rows

    def tcp(self, count, arguments, options=()):
        """flash_tcp's rows, by mover: milliseconds."""
        rows = self.rows(self.hosts(count, "flash_tcp", arguments + ["-f"], options))
        if any(row["served"] != "1" for row in rows):
            sys.exit("lab: flash does not serve flash_tcp")
        return {row["mover"]: {way[:-3]: float(row[way]) for way in row if way.endswith("_ms")}
                for row in rows}

    def simulate(self, operation, ranks, size):
        """The row of a simulation with the emulated hosts' links."""
        return self.rows(self._run([], "flash_simulate", [
            "--op=" + operation, "--ranks={}".format(ranks), "--bytes=" + size, "--csv=-"]))[0]

    @staticmethod
    def rows(text):
        """The rows of a collective's benchmark, from its CSV."""
        return list(csv.DictReader(io.StringIO(text)))
