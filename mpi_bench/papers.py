#!/usr/bin/env python3
"""Runs the papers' tables on emulated hosts, and prints them as Markdown, the papers' figures beside.

  mpi_bench/papers.py [--prefix DIR] [--only TABLE[,TABLE...]] [--pictures DIR] [--results DIR] [--runs N]

DIR is where flash is installed (default: install, as quickstart.sh leaves it). Tables: mlp, attention,
ulysses, flux, timeline (default: all); timeline draws into --pictures (default: docs/pictures), for
which it needs matplotlib. --results docs/results also writes papers-TABLE.tsv there, from which docs/generate
makes docs/performance.md; what a table compares stands there.
Computation is the time that an accelerator takes whose speed relative to the network is the paper's.
Each figure is a median over iterations of the maximum over ranks, and then over N runs (default 3).

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import argparse
import glob
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile

import goals
from lab import Lab, TOP

HOSTS = 4
LEAST_PIECE = 128 * 1024  # a shorter one's way through the network takes longer than it saves
# CommFuse, arXiv 2604.24013, TP = 4: ms exposed, and end to end.
MLP_PAPER = {"no overlap": (43.8, 122.3), "slicing": (7.1, 83.9), "flash": (0.1, 77.1)}
# Of (16, 4096), end to end.
ATTENTION_PAPER = {"no overlap": 270.1, "slicing": 246.1, "flash rows": 230.9, "flash queries": 215.8}
NO_OVERLAP = ("no overlap", "no overlap ring")


def measure(lab, program, arguments, runs, iterations=6):
    """Of each phase and variant: computation and total time in ms."""
    times = {}
    for phase, found in goals.layer_runs(lab, program, arguments, runs, iterations).items():
        for name in found[0]:
            computation, total = (
                statistics.median(1e3 * float(rows[name][column]) for rows in found)
                for column in ("computation_s", "total_s"))
            times.setdefault(phase, {})[name] = (computation, total)
    return times


def exposed(times, name):
    computation, total = times[name]
    return total - computation


def best(times, names):
    return min((name for name in times if name in names), key=lambda name: times[name][1])


def best_slicing(times):
    return best(times, [name for name in times if name.startswith("sliced")])


def less(value, of):
    return "{:.1f}".format(100 * (1 - value / of))


class Rows:
    """Where the rows of a table go, beside the standard output."""
    file = None

    @classmethod
    def begin(cls, folder, name):
        if folder is not None:
            cls.file = open(os.path.join(folder, "papers-{}.tsv".format(name)), "w", encoding="utf-8")
            cls.file.write("# mpi_bench/papers.py\n")

    @classmethod
    def end(cls):
        if cls.file is not None:
            cls.file.close()
        cls.file = None


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
    if Rows.file is not None and cells[0] != "---":
        Rows.file.write("\t".join(str(cell) for cell in cells) + "\n")
        Rows.file.flush()


def mlp(lab, options):
    print("## MLP, tensor and sequence parallel\n")
    row("tokens", "phase", "none: exposed, total ms", "Open MPI's blocking calls",
        "slicing: exposed (% less), total (% less)", "flash: exposed (% less), total (% less)")
    row(*["---"] * 6)
    none = MLP_PAPER["no overlap"]
    row("CommFuse", "", "{:.1f}, {:.1f}".format(*none), "", *(
        "{:.1f} ({}), {:.1f} ({})".format(MLP_PAPER[name][0], less(MLP_PAPER[name][0], none[0]),
                                          MLP_PAPER[name][1], less(MLP_PAPER[name][1], none[1]))
        for name in ("slicing", "flash")))
    for tokens, runs, iterations in ((1024, options.runs, 6), (2048, options.runs, 6), (4096, 1, 4),
                                     (8192, 1, 3), (16384, 1, 3)):
        arguments = ["-m", str(tokens), "-k", "4096", "-n", "16384", "--rate=381G", "--warmup=1"]
        for phase, times in measure(lab, "flash_mlp", arguments, runs, iterations).items():
            if phase == "both":
                continue
            least = best(times, NO_OVERLAP)
            row(tokens, phase, *(
                "{:.1f}, {:.1f}".format(exposed(times, name), times[name][1])
                for name in (least, "no overlap")), *(
                    "{:.2f} ({}), {:.1f} ({})".format(
                        exposed(times, name), less(exposed(times, name), exposed(times, least)),
                        times[name][1], less(times[name][1], times[least][1]))
                    for name in (best_slicing(times), "flash")))
    print()


def attention(lab, options):
    print("## Attention, tensor parallel: row-parallel and query-split\n")
    names = ("slicing", "flash rows", "flash queries")
    row("", "none: exposed, total ms", *("{}: exposed, total (% less)".format(name) for name in names))
    row(*["---"] * 5)
    none = ATTENTION_PAPER["no overlap"]
    row("CommFuse, forward", "?, {}".format(none), *("?, {} ({})".format(ATTENTION_PAPER[name],
                                                      less(ATTENTION_PAPER[name], none))
                                     for name in names))
    arguments = ["-m", "4096", "-k", "1024", "--heads=16", "--rate=64G"]
    for phase, times in measure(lab, "flash_attention", arguments, options.runs).items():
        least = best(times, NO_OVERLAP)
        row(phase, "{:.1f}, {:.1f}".format(exposed(times, least), times[least][1]), *(
            "{:.2f}, {:.1f} ({})".format(exposed(times, name), times[name][1],
                                         less(times[name][1], times[least][1]))
            for name in (best_slicing(times), "flash rows", "flash queries")))
    print()


def ulysses(lab, options):
    print("## Attention with exchanged heads (Ulysses)\n")
    row("phase", "no overlap", "non-blocking", "best slicing", "flash")
    row(*["---"] * 5)
    arguments = ["-m", "4096", "-k", "1024", "--heads=16", "--rate=64G"]
    for phase, times in measure(lab, "flash_ulysses", arguments, options.runs).items():
        row(phase, *("{:.1f}, {:.1f}".format(exposed(times, name), times[name][1])
                     for name in ("no overlap", "nonblocking", best_slicing(times), "flash")))
    print()


def flux(lab, options):
    print("## FLUX's overlap efficiency\n")
    row("m", "product of a block / its transfer", "AG: slicing", "AG: flash", "RS: slicing", "RS: flash")
    row(*["---"] * 6)
    for rows in (64, 512, 1024, 2048, 4096, 8192):
        for ratio in (1, 2):
            pieces = min(8, rows // HOSTS * 1024 * 8 // LEAST_PIECE)
            arguments = ["-m", str(rows), "-n", "1024", "-k", "1024", "--compute=offload",
                         "--pieces={}".format(pieces), "--compute-ratio={}".format(ratio)]
            runs = [lab.gemm(HOSTS, arguments)["results"] for _ in range(options.runs)]
            cells = []
            for results in zip(*runs):
                values = {entry["name"]: statistics.median(
                    goals.case(result, entry["name"])["e_overlap"] for result in results)
                          for entry in results[0]["cases"]
                          if entry["name"] == "flash" or entry["name"].startswith("sliced")}
                flash = values.pop("flash")
                cells += ["{:.3f}".format(max(values.values())), "{:.3f}".format(flash)]
            row(rows, ratio, *cells)
    print()


def operations(path):
    """Of a rank's trace: the last reduce-scatter and the last allgather that have callbacks."""
    called, kinds = set(), {"reduce-scatter": set(), "allgather": set()}
    with open(path, encoding="utf-8") as file:
        for event in json.load(file):
            if event["name"] == "callback":
                called.add(event["args"]["operation"])
            elif event["name"] in kinds:
                kinds[event["name"]].add(event["args"]["operation"])
    return tuple(max(called & operations) for operations in kinds.values())


def timeline(lab, options):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "gemm")
        lab.hosts(HOSTS, "flash_gemm", goals.OFFLOAD + ["--bytes=8M", "--iterations=1", "--warmup=1"],
                  ["--mca", "coll_flash_trace", trace])
        traces = sorted(glob.glob(trace + ".*.json"))
        for name, operation in zip(("timeline-rs", "timeline-ag"), operations(traces[0])):
            subprocess.run([
                sys.executable, os.path.join(lab.bin, "flash_timeline"), "--operations", str(operation), "--picture",
                os.path.join(options.pictures, name + ".png")] + traces, stdout=sys.stderr, check=True)


TABLES = {table.__name__: table for table in (mlp, attention, ulysses, flux, timeline)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default=os.path.join(TOP, "install"))
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--pictures", default=os.path.join(TOP, "docs", "pictures"))
    parser.add_argument("--results")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    names = options.only.split(",")
    for name in names:
        if name not in TABLES:
            parser.error("--only {}: no such table; give some of {}".format(
                name, ", ".join(TABLES)))
    if not os.path.exists(os.path.join(options.prefix, "bin", "flash_mlp")):
        sys.exit("papers.py: no flash_mlp in {}: run ./quickstart.sh, or give --prefix".format(
            options.prefix))
    if "timeline" in names and importlib.util.find_spec("matplotlib") is None:
        sys.exit("papers.py: timeline draws, and {} has no matplotlib (Debian: python3-matplotlib, for "
                 "/usr/bin/python3); or give --only what else there is".format(sys.executable))
    lab = Lab(os.path.abspath(options.prefix))
    print("# The papers' tables, measured here\nFour emulated hosts, links of 2 Gbit/s; "
          "by `mpi_bench/papers.py`.\n")
    for name in names:
        if name != "timeline":
            Rows.begin(options.results, name)
        TABLES[name](lab, options)
        Rows.end()


if __name__ == "__main__":
    main()
