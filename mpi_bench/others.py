"""others.py: lines of goals.py about single calls: those that compare flash's with Open MPI's own and with MPICH's, size by
size, and what hides of the calls beside allgathers and reduce-scatters.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import statistics

MIB = 1 << 20


def listed(values, digits):
    return ", ".join("{:.{}f}".format(value, digits) for value in values)


def ratios(runs, measure, own):
    """Of a measure to Open MPI's own, for each size: the median over the runs."""
    found = {}
    for rows in runs:
        for row in rows:
            found.setdefault(row["Size"], []).append(float(row[measure]) / float(row[own]))
    return {size: statistics.median(values) for size, values in found.items()}


def worst(runs, measure, own):
    found = ratios(runs, measure, own)
    size = max(found, key=found.get)
    digits = 3 if AT_MOST < found[size] < AT_MOST + 0.005 else 2
    return "{:.{}f} at {} B".format(found[size], digits, size), found[size]


AGAINST_OWN = ((", alone", "Pure Comm.(us)", "Own comm."),
               (", overall", "Overall(us)", "Own overall"),
               (" blocking call, alone", "Pure Comm.(us)", "Own blocking"))
AT_MOST = 1.02


def compare(lab, title, run, counts, sizes, times=2, runs=5):
    """
    Of a call alone and under computation; the blocking form is another call, and told apart. What
    the same comparison says of Open MPI's own calls and themselves shows how far to trust it.
    """
    for program in ("flash_iallgather", "flash_ireduce_scatter_block"):
        for count in counts:
            arguments = ["-m", sizes, "--times={}".format(times), "--seconds=0.15", "--same-work",
                         "--csv=-"]
            flash, control = (
                [lab.rows(run(count, program, arguments, served=served))
                 for _ in range(lab.times(runs))]
                for served in (True, False))
            where = "{} {}, {} {}{}: worst / Open MPI's own".format(
                count, title, program[6:], sizes, " by {}".format(times) if times > 2 else "")
            for form, ours, own in AGAINST_OWN:
                figure, value = worst(flash, ours, own)
                yield (where + form, figure, "<= {}".format(AT_MOST), value <= AT_MOST,
                       "own / own: " + worst(control, ours, own)[0])


def slower(lab):
    yield from compare(lab, "hosts", lab.hosts, (2, 4), "8:4M")
    yield from compare(lab, "hosts", lab.hosts, (2, 4), "8M:16M", runs=3)
    yield from compare(lab, "hosts", lab.hosts, (3, 5, 6, 7, 8), "8:2M", times=8, runs=3)


def ranks(lab):
    """The same on one host."""
    yield from compare(lab, "ranks on a host", lab.here, (2, 4), "8:16M")
    yield from compare(lab, "ranks on a host", lab.here, (3, 5, 6, 7, 8), "8:16M", times=8, runs=3)


BESIDE = (("flash", "own"), ("flash-apart", "own-ucx"), ("flash-apart", "mpich"),
          ("flash-apart", "mpich-async"))


def beside_best(runs):
    """Of flash_compare's times by variant, in some runs, flash's to the best of others': who it took
    turns with call by call, and who was in a process of its own, as it was then, seconds apart: the
    median of the ratio, since in that of either the cores may have been near, or far. Blocking calls
    are others."""
    return max((statistics.median(times[ours] / times[other] for times in runs), other)
               for ours, other in BESIDE if other in runs[0])


def beside_peers(lab, call):
    """Two ranks of a node and all that there is on this machine; sizes are OSU's."""
    found = {}
    for run in range(lab.times(15)):
        for row in lab.compare(["--here", "2", "--calls", call, "-m", "8:4M", "--rounds", "1",
                                "--seconds", "0.1"]):
            runs = found.setdefault(int(row["size"]), [])
            if len(runs) == run:
                runs.append({})
            runs[run][row["variant"]] = float(row["alone_us"])
    for title, goal, sizes in (("below 64 KiB", 1.02, [size for size in found if size < 1 << 16]),
                               ("from 64 KiB on", 1, [size for size in found if size >= 1 << 16])):
        (ratio, best), size = max((beside_best(found[size]), size) for size in sizes)
        yield ("2 ranks on a host, {} {}: worst / the best of Open MPI's and MPICH's, alone".format(
            call, title), "{:.2f} at {} B".format(ratio, size), "<= {}".format(goal), ratio <= goal,
               "the best there: {}; of {}".format(best, ", ".join(
                   sorted(other for _, other in BESIDE if other in found[size][0]))))


def node(lab):
    """How near its two cores are to each other changes from job to job on a virtual machine."""
    yield from compare(lab, "ranks on a host", lab.here, (2,), "64K:4M", runs=15)
    for call in ("iallgather", "ireduce_scatter_block"):
        yield from beside_peers(lab, call)


FAMILY = ("iallreduce", "ialltoall", "ialltoallv", "ibcast", "ireduce", "igather", "igatherv", "iscatter", "iscatterv")


def under_sleep(lab, call, hosts, most):
    """One of the other calls, by size: hidden, %; alone / wire; exposed, us, and the same of a call that moves nothing."""
    runs = [lab.rows(lab.hosts(hosts, "flash_" + call, [
        "-m", "{}:{}".format(MIB, most), "--compute=sleep", "--ratio=2", "--no-own", "--floor", "--csv=-"],
                               ["-r", "2gbit", "-b"]))
            for _ in range(lab.times(3))]
    return [[statistics.median(value(row) for row in rows) for rows in zip(*runs)]
            for value in (lambda row: float(row["Overlap(%)"]),
                          lambda row: float(row["Pure Comm.(us)"]) / float(row["Wire(us)"]),
                          lambda row: float(row["Exposed(us)"]),
                          lambda row: float(row["Floor(us)"]))]


def besides(exposed_us, floor_us):
    return "exposed, us: {}; of a call that moves nothing: {}".format(listed(exposed_us, 0), listed(floor_us, 0))


def family(lab):
    """The other calls that flash serves by default: what hides, by OSU's definition, and alone. Two hosts have a core each."""
    for call in FAMILY:
        hid, alone, *microseconds = under_sleep(lab, call, 4, 16 * MIB)
        title = "4 hosts, MPI_{}".format(call.capitalize())
        yield (title + ": hidden, % (1 to 16 MiB)", listed(hid, 2), ">= 99.5", min(hid) >= 99.5, besides(*microseconds))
        yield (title + ": alone / wire (1 to 16 MiB)", listed(alone, 3), "<= 1.05", max(alone) <= 1.05)
        hid, _, *microseconds = under_sleep(lab, call, 2, 4 * MIB)
        yield ("2 hosts, MPI_{}: hidden, % (1 to 4 MiB)".format(call.capitalize()), listed(hid, 2), "(reported)", None,
               besides(*microseconds))
