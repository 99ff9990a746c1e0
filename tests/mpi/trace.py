#!/usr/bin/env python3
"""Checks the traces of a job's ranks: trace.py RANKS BYTES KINDS FILE...

Every FILE is a rank's, in order. With BYTES, each operation received and sent that much. KINDS, with
commas between them, is exactly what each rank's lanes show.

Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
"""
import collections
import json
import sys

SLACK = 1.0  # us; times of the day in microseconds do not fit a double to the last digit
failures = []


def check(good, text):
    if not good:
        failures.append(text)


def pairs(events):
    """Begin and end of all that is marked by two events, by category and name."""
    found = collections.defaultdict(dict)
    for event in events:
        if event["ph"] in "be":
            ends = found[event["cat"], event["id"]]
            check(event["ph"] not in ends, "{} {} twice".format(event["cat"], event["id"]))
            ends[event["ph"]] = event
    for name, ends in found.items():
        check(len(ends) == 2, "{} has no other end".format(name))
        check(len(ends) < 2 or ends["b"]["ts"] <= ends["e"]["ts"], "{} ends first".format(name))
    return found


def check_lanes(rank, events):
    until = collections.defaultdict(float)
    for event in events:
        if event["ph"] == "X":
            lane = event["tid"]
            check(event["dur"] >= 0, "rank {}: negative duration".format(rank))
            check(event["ts"] >= until[lane] - SLACK,
                  "rank {}: two things at a time in lane {}".format(rank, lane))
            until[lane] = event["ts"] + event["dur"]


def check_operations(rank, events, ranks, wanted):
    marked = pairs(events)
    operations = {ends["b"]["args"]["operation"]: ends for (name, _), ends in marked.items()
                  if name in ("allgather", "reduce-scatter")}
    check(operations, "rank {}: no operations".format(rank))
    moved = {"receive": collections.Counter(), "send": collections.Counter()}
    for event in events:
        if event["ph"] == "X" and "args" in event:
            ends = operations.get(event["args"]["operation"])
            check(ends, "rank {}: a span of no operation".format(rank))
            check(ends is None or (ends["b"]["ts"] - SLACK <= event["ts"] and
                                   event["ts"] + event["dur"] <= ends["e"]["ts"] + SLACK),
                  "rank {}: a {} outside of its operation".format(rank, event["name"]))
            if event["name"] in moved:
                moved[event["name"]][event["args"]["operation"]] += event["args"]["bytes"]
            check(event["args"]["block"] < ranks, "rank {}: no such block".format(rank))
    for name, count in moved.items():
        for operation in operations if wanted else ():
            check(count[operation] == wanted, "rank {}: {}: {} bytes, not {}".format(
                rank, name, count[operation], wanted))


def main():
    ranks, wanted, kinds = int(sys.argv[1]), int(sys.argv[2]), set(sys.argv[3].split(","))
    check(len(sys.argv) == 4 + ranks, "not a file for each rank")
    for rank, path in enumerate(sys.argv[4:]):
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        check(all(event["pid"] == rank for event in events), "rank {}: others'".format(rank))
        check(events[0]["args"]["missing"] == 0, "rank {}: spans are missing".format(rank))
        found = {event["name"] for event in events if event["ph"] == "X"}
        check(found == kinds, "rank {}: shows {}".format(rank, sorted(found)))
        check_lanes(rank, events)
        check_operations(rank, events, ranks, wanted)
    print("\n".join(sorted(set(failures))))
    sys.exit(1 if failures else 0)


main()
