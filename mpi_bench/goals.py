#!/usr/bin/env python3
"""Measures flash against its goals on emulated hosts, and prints a table: figure, goal, met or not,
and what else the same runs show.

  mpi_bench/goals.py [--prefix DIR] [--before DIR] [--only LINE[,LINE...]] [--runs N] [--json FILE]
                     [--tsv FILE]

--prefix is where flash is installed (default: install, as quickstart.sh leaves it). --before: where another
version of it is; the two take turns, row by row or line by line, and the table shows both figures. Lines: hidden, family,
transfer, eight, wire, layers, core, osu, slower, ranks, shapes, node, mapped, idle, scale (default: all).
--tsv writes the rows as docs/results/goals.tsv has them, from which docs/generate makes docs/performance.md:
causes of goals that are not met are added there by hand.
osu and node compare with MPICH, too, if it was there when flash was built in ./build.
Every figure is a median over iterations of the maximum over ranks, and a ratio within one run; osu
compares runs that take turns, by the medians of three of each; hidden, family, layers, core and shapes take the
median of three runs, node that of a ratio over fifteen, slower and ranks over five, or three; --runs N:
over N at most. With all their runs slower and ranks take two hours, the rest one and a half.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import argparse
import csv
import itertools
import json
import os
import statistics
import sys
import tempfile
import time

from lab import Lab, TOP, today_and_commit, where_and_when
from others import MIB, family, listed, node, ranks, slower


def case(result, name):
    return next(entry for entry in result["cases"] if entry["name"] == name)


def exposed(result, name):
    return case(result, name)["exposed_percent"]


OFFLOAD = ["--compute=offload", "--pieces=8", "--slices=2"]
OPERATIONS = {"ag": "AG", "rs": "RS"}
CASES = {"flash": "extension", "plain call, flash": "plain call"}


def hidden(lab):
    """Blocks of 1 to 16 MiB, the computation twice the transfer."""
    found, allowed = {}, {}
    sizes = (1, 2, 4, 8, 16)
    for size in sizes:
        runs = [lab.gemm(4, OFFLOAD + ["--no-others", "--bytes={}M".format(size)])["results"]
                for _ in range(lab.times(3))]
        for results in zip(*runs):
            for name in CASES:
                hid = statistics.median(100 - exposed(result, name) for result in results)
                found.setdefault((results[0]["op"], name), []).append(hid)
            allowed.setdefault(results[0]["op"], []).append(0.002e6 * results[0]["t_comm"])
    for (operation, name), values in found.items():
        yield ("4 hosts, {} {}: hidden, % (1 to 16 MiB)".format(OPERATIONS[operation], CASES[name]),
               listed(values, 2), ">= 99.8", min(values) >= 99.8,
               "0.2 % of the communication are {} us; the hosts share {} cores".format(
                   listed(allowed[operation], 0), os.cpu_count()))


def transfer(lab):
    run = lab.gemm(4, OFFLOAD + ["--no-others", "--bytes=8M", "--compute-ratio=0.5"])
    for result in run["results"]:
        value = case(result, "flash")["t_total_over_t_ring"]
        yield ("4 hosts, {}, transfer longer: T_total / T_ring".format(OPERATIONS[result["op"]]),
               listed([value], 3), "<= 1.01", value <= 1.01)


def eight(lab):
    """Eight hosts on few cores wake up late for small pieces: an allgather has two to a block."""
    for rate in ("1gbit", "2gbit"):
        run = lab.gemm(8, OFFLOAD + ["--no-others", "--bytes=4M", "--pieces=2,8"], ["-r", rate])
        for result in run["results"]:
            for name, title in CASES.items():
                value = 100 - exposed(result, name)
                yield ("8 hosts, {}, {} {}: hidden, % (4 MiB)".format(
                    rate, OPERATIONS[result["op"]], title),
                       listed([value], 2), ">= 99.3", value >= 99.3, cores(lab))


def cores(lab):
    return "the cores are {:.0f} % busy".format(lab.busy)


def wire(lab):
    options = ["--no-own", "--compute=sleep", "--seconds=3", "--csv=-"]
    for count, rate in ((4, "2gbit"), (8, "1gbit"), (8, "2gbit")):
        for program, scale in (("flash_iallgather", 1), ("flash_ireduce_scatter_block", count)):
            sizes = "{}:{}".format(scale * MIB, scale * 4 * MIB)
            rows = lab.rows(lab.hosts(count, program, ["-m", sizes] + options, ["-r", rate]))
            values = [float(row["Pure Comm.(us)"]) / float(row["Wire(us)"]) for row in rows]
            yield ("{} hosts, {}, {} alone / wire (1 to 4 MiB)".format(count, rate, program[6:]),
                   listed(values, 3), "<= 1.03", max(values) <= 1.03, cores(lab))
    yield from beside_sockets(lab)


SOCKET = "a plain socket"


def beside_sockets(lab):
    """Where the hosts have too few cores for the wire: how long a plain socket needs."""
    runs = [lab.tcp(8, ["-a", "-i", "10", "-m", str(mib)], ["-r", "2gbit"]) for mib in (1, 2, 4)]
    for mover, title in (("MPI_Iallgather", "AG"), ("MPI_Ireduce_scatter_block", "RS")):
        yield ("8 hosts, 2gbit, {} alone / a plain socket (1 to 4 MiB)".format(title),
               listed([run[mover]["alone"] / run[SOCKET]["alone"] for run in runs], 3),
               "(reported)", None, "a socket that sends as much, and waits for no block: {} ms".format(
                   listed([run[SOCKET]["alone"] for run in runs], 1)))


def layer_runs(lab, program, arguments, count=3, iterations=6):
    """Of so many runs on four hosts, each phase: the rows by variant."""
    phases = {}
    for _ in range(lab.times(count)):
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as file:
            lab.hosts(4, program, arguments + ["--pieces=8", "--compute=offload", "--slices=4,16,32",
                                               "--iterations={}".format(iterations),
                                               "--csv=" + file.name])
            for row in csv.DictReader(file):
                runs = phases.setdefault(row["phase"], [])
                if not runs or row["variant"] in runs[-1]:
                    runs.append({})
                runs[-1][row["variant"]] = row
    return phases


def layer_lines(title, phases, variant="flash"):
    """
    What flash leaves exposed of what no overlap exposes, by Open MPI's calls or by flash's, the
    less; and beside it what the best slicing does.
    """
    for phase, runs in phases.items():
        left, saved, sliced = [], [], []
        for times in runs:
            none = min((times[name] for name in ("no overlap", "no overlap ring") if name in times),
                       key=lambda row: float(row["total_s"]))
            share = {name: 100 * float(row["exposed_s"]) / float(none["exposed_s"])
                     for name, row in times.items()}
            left.append(share[variant])
            saved.append(100 - 100 * float(times[variant]["total_s"]) / float(none["total_s"]))
            sliced.append(min(share[name] for name in share if name.startswith("sliced")))
        value = statistics.median(left)
        yield ("4 hosts, {}, {}: exposed, % of what no overlap exposes".format(title, phase),
               listed([value], 2), "<= 0.2", -1 <= value <= 0.2,
               "slicing at best (of 4, 16, 32, Open MPI's or flash's calls): {:.1f}; end to end {:.1f} % less".format(
                   statistics.median(sliced), statistics.median(saved)))


def layers(lab):
    """Parts of a transformer on an accelerator as fast for its network as in the paper of the
    schedules (papers.py): 1.7 times as much computation as communication for the MLP, 4 for
    attention."""
    yield from layer_lines("MLP", layer_runs(lab, "flash_mlp", [
        "-m", "1024", "-k", "4096", "-n", "16384", "--rate=381G"]))
    heads = ["-m", "4096", "-k", "1024", "--heads=16", "--rate=64G"]
    attention = layer_runs(lab, "flash_attention", heads)
    yield from layer_lines("attention, query-split", attention, "flash queries")
    for phase, runs in attention.items():
        value = statistics.median(float(times["flash queries"]["total_s"]) /
                                  float(times["flash rows"]["total_s"]) for times in runs)
        yield ("4 hosts, attention, {}: query-split / row-parallel".format(phase),
               listed([value], 3), "< 1", value < 1)
    yield from layer_lines("attention by exchanged heads", layer_runs(lab, "flash_ulysses", heads))


def core(lab):
    """
    The CPU time of TCP, which only a sleeping computation hides. The product of a rank's own block
    takes longer than the other's block needs to arrive. getrusage counts nothing of what the kernel
    does while the core is idle: so a loop without memory says what the same call takes, too.
    """
    for operation, columns, mib, mover in (("ag", "2048", 16, "MPI_Iallgather"),
                                           ("rs", "1024", 8, "MPI_Ireduce_scatter_block")):
        shape = ["-m", "2048", "-n", columns, "-k", "2048", "--slices=2", "--op=" + operation]
        runs = [lab.gemm(2, shape, ["-c"])["results"][0] for _ in range(lab.times(3))]
        alone = lab.gemm(2, shape + ["--compute=offload"], ["-c"])["results"][0]
        cpu = case(alone, "plain call, flash")["cpu_seconds"]["median"]
        tcp = lab.tcp(2, ["-m", str(mib)], ["-c"])

        def exposed_of(name):
            return statistics.median(case(result, name)["exposed_seconds"] for result in runs)

        for name, title in CASES.items():
            value = exposed_of(name) / cpu
            yield ("2 hosts, GEMM on TCP's core, {} {}: exposed / CPU time alone ({:.1f} ms)".format(
                OPERATIONS[operation], title, 1e3 * cpu), listed([value], 2), "<= 1.1", value <= 1.1,
                   "a loop without memory loses {:.1f} ms to the call: {:.2f} of that; to a plain socket "
                   "{:.1f}, of which getrusage counts {:.1f}; Open MPI's own plain call: {:.2f}".format(
                       tcp[mover]["loop"], 1e3 * exposed_of(name) / tcp[mover]["loop"],
                       tcp[SOCKET]["loop"], tcp[SOCKET]["cpu"],
                       exposed_of("plain call, Open MPI") / cpu))


def osu(lab):
    """OSU's definition of overlap, beside what else there is on this machine."""
    for call in ("iallgather", "ireduce_scatter"):
        found = {row["variant"]: row for row in lab.compare(
            ["--hosts", "2", "--calls", call, "-m", "4M:4M", "--rounds", str(lab.times(3)),
             "--compute", "clock"])}
        flash = found.pop("flash")
        overlap, overall = float(flash["overlap_percent"]), float(flash["overall_us"])
        yield ("2 hosts, {} 4 MiB: overlap (OSU), %".format(call), listed([overlap], 1), ">= 80",
               overlap >= 80)
        # Overall times as OSU has them: each variant computes for as long as its own call takes
        # alone, so that a slow call also has more to hide behind. What is exposed tells them apart.
        for variant in ("own", "own-ucx", "mpich", "mpich-async"):
            title = "2 hosts, {} 4 MiB: overall, exposed / {}".format(call, variant)
            if variant not in found:
                yield title, "not measured", "overall < 1", None
                continue
            ratios = [overall / float(found[variant]["overall_us"]),
                      float(flash["exposed_us"]) / float(found[variant]["exposed_us"])]
            yield title, listed(ratios, 2), "overall < 1", ratios[0] < 1


def scale(lab):
    """The simulation against the emulated hosts, and beyond them."""
    for operation, program, factor in (("ag", "flash_iallgather", 1),
                                       ("rs", "flash_ireduce_scatter_block", None)):
        for count in (4, 8):
            size = (factor or count) * 4 * MIB
            row = lab.rows(lab.hosts(count, program, [
                "-m", "{0}:{0}".format(size), "--no-own", "--compute=sleep", "--csv=-"]))[0]
            besides = cores(lab)
            simulated = lab.simulate(operation, count, "4M")
            value = 1e-3 * float(row["Pure Comm.(us)"]) / float(simulated["alone_ms"])
            yield ("{} hosts, {} 4 MiB alone: measured / simulated".format(
                count, OPERATIONS[operation]), listed([value], 3), "0.95 to 1.05",
                   0.95 <= value <= 1.05, besides)
        row = lab.simulate(operation, 100000, "1M")
        yield ("100,000 ranks simulated, {} 1 MiB: time / wire; messages, KiB of memory a rank"
               .format(OPERATIONS[operation]),
               "{:.4f}; {}, {:.0f}".format(float(row["alone_over_wire"]), row["messages"],
                                           float(row["memory_bytes"]) / 1024),
               "(reported)", None)


def shapes(lab):
    """The extension against a blocking collective and an unsplit product."""
    sizes = (64, 512, 1024, 2048, 4096, 8192)
    for count in (2, 4):
        found, split = {}, {}
        for rows in sizes:
            runs = [lab.gemm(count, ["-m", str(rows), "-n", "1024", "-k", "1024", "--no-others"])
                    ["results"] for _ in range(lab.times(3))]
            for results in zip(*runs):
                found.setdefault(results[0]["op"], []).append(statistics.median(
                    case(result, "flash")["seconds"]["median"] /
                    case(result, "blocking")["seconds"]["median"] for result in results))
                split.setdefault(results[0]["op"], []).append(statistics.median(
                    result["t_split"] / result["t_comp"] for result in results))
        for operation, values in found.items():
            yield ("{} hosts, {} extension / blocking (m = {})".format(
                count, OPERATIONS[operation], ", ".join(map(str, sizes))),
                   listed(values, 2), "<= 1.02", max(values) <= 1.02,
                   "the product alone, in pieces / whole: " + listed(split[operation], 2))


def mapped(lab):
    """Ranks that are dealt out to the hosts: a ring by the machine, and by rank."""
    options = ["-p", "2", "--map-by", "node"]
    for program, size in (("flash_iallgather", "8M"), ("flash_ireduce_scatter_block", "32M")):
        machine, rank = (
            float(lab.rows(lab.hosts(2, program, ["-m", size + ":" + size, "--no-own",
                                                  "--compute=sleep", "--csv=-"],
                                     options + order))[0]["Pure Comm.(us)"])
            for order in ([], ["--mca", "coll_flash_ring_order", "rank"]))
        yield ("2 hosts x 2 ranks, mapped in turn, {} of 8 MiB blocks: ring by rank / by the machine"
               .format(program[6:]), listed([rank / machine], 2), ">= 1.9", rank / machine >= 1.9,
               "{:.0f} and {:.0f} ms".format(1e-3 * rank, 1e-3 * machine))


def idle(lab):
    run = lab.gemm(2, OFFLOAD + ["--no-others", "--bytes=1M"])
    value = 1e3 * run["idle_cpu_seconds_per_second"]
    yield ("idle after use: CPU ms a second, all threads", listed([value], 3), "< 0.1", value < 0.1)
    row = lab.rows(lab.hosts(4, "flash_iallgather", ["-m", "8M:8M", "--no-own", "--compute=sleep",
                                                     "-f", "--csv=-"]))[0]
    yield ("4 hosts, iallgather 8 MiB in flight: wake-ups, CPU ms of the progress thread a call",
           "{:.0f}, {:.1f}".format(float(row["Wake-ups"]), float(row["Thread(us)"]) / 1e3),
           "(reported)", None)


def word_of(met):
    return "" if met is None else "yes" if met else "**no**"


def write_tsv(options, source, table):
    """As docs/results has it."""
    asked = ["--{} {}".format(name, value) for name, value in (("only", options.only), ("runs", options.runs))
             if value and value != ",".join(LINES)]
    with open(options.tsv, "w") as file:
        file.write("# {}. {}\n".format(" ".join(["mpi_bench/goals.py", *asked]), source))
        file.write("\tfigure\tgoal\tmet\tcause, or seen besides\n")
        for row in table:
            file.write("\t".join((row["what"], row["figure"], row["goal"], word_of(row["met"]), row["besides"])) + "\n")


LINES = {line.__name__: line
         for line in (hidden, family, transfer, eight, wire, layers, core, osu, slower, ranks, shapes, node,
                      mapped, idle, scale)}


def lab_of(prefix, runs):
    if not os.path.exists(os.path.join(prefix, "bin", "flash_gemm")):
        sys.exit("goals.py: no flash_gemm in {}: run ./quickstart.sh, or give --prefix".format(prefix))
    return Lab(os.path.abspath(prefix), runs)


def in_turn(line, lab, before):
    """The rows of a line, each with the figure of the version before, if there is one, of runs beside."""
    rows = line(lab)
    earlier = line(before) if before else itertools.repeat((None, None))
    for row, (_, figure, *_) in zip(rows, earlier):
        yield row, figure


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default=os.path.join(TOP, "install"))
    parser.add_argument("--before")
    parser.add_argument("--only", default=",".join(LINES))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--json")
    parser.add_argument("--tsv")
    options = parser.parse_args()
    if options.runs is not None and options.runs < 1:
        parser.error("--runs {}: give 1 or more".format(options.runs))
    names = options.only.split(",")
    for name in names:
        if name not in LINES:
            parser.error("--only {}: no such line; give some of {}".format(name, ", ".join(LINES)))
    lab = lab_of(options.prefix, options.runs)
    before = lab_of(options.before, options.runs) if options.before else None
    source = where_and_when([today_and_commit()])  # of the tree, before a table is written there
    table = []
    begun = time.monotonic()
    print("| | {}figure | goal | met | seen besides |".format("before | " if before else ""))
    print("| --- " * (6 if before else 5) + "|")
    for name in names:
        print("{} ({:.0f} s so far)".format(name, time.monotonic() - begun), file=sys.stderr)
        for (title, figure, goal, met, *besides), earlier in in_turn(LINES[name], lab, before):
            besides = besides[0] if besides else ""
            print("| {} |{} {} | {} | {} | {} |".format(
                title, " {} |".format(earlier) if before else "", figure, goal, word_of(met), besides), flush=True)
            table.append({"line": name, "what": title, "figure": figure, "goal": goal, "met": met,
                          "besides": besides, "before": earlier})
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(table, file, indent=1)
            if options.tsv:
                write_tsv(options, source, table)
    if options.runs:
        print("\n--runs {}".format(options.runs))
    missed = sum(row["met"] is False for row in table)
    print("\n{} of {} goals met".format(sum(row["met"] is True for row in table),
                                        missed + sum(row["met"] is True for row in table)))


if __name__ == "__main__":
    main()
