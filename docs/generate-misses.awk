# generate-misses.awk: where the algorithm that the built-in costs choose was measured to cost more than another one: see
# docs/generate.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

# The group of generate-costs.awk that a row's name means, as "reduce-scatter" or "blocking bcast".
function group_named(place, name, group) {
    gsub(/[ -]/, "_", name)
    for (group = 1; group <= groups; group++) {
        if (place_of[group] == place && call_of[group] == name) {
            return group
        }
    }
    stop("no costs of a " name " in a " place)
}

function bytes_in(text, parts) {
    split(text, parts, " ")
    return parts[1] * (parts[2] == "MiB" ? 2 ^ 20 : 2 ^ 10)
}

# A cell: microseconds of each algorithm in turn, or "-".
function compare_times(name, size, title, cell, names, ratio, words, group, ranks, times, n, k, ours, lowest) {
    split(title, words, " ")
    ranks = words[1]
    group = group_named(words[2] == "hosts" ? "network" : "node", name)
    n = split(cell, times, ", ")
    for (k = 1; k <= n; k++) {
        if (names[k] == cheapest(group, ranks, bytes_in(size))) {
            ours = k
        }
        if (times[k] != "-" && (!lowest || times[k] < times[lowest])) {
            lowest = k
        }
    }
    found++
    if (ours && times[ours] != "-" && times[ours] >= ratio * times[lowest]) {
        printf "| %s | %s | %s | %s, %s | %s, %s | %.2f |\n", name, size, title, names[ours], times[ours], names[lowest],
            times[lowest], times[ours] / times[lowest]
    }
}

function misses_of(path, ratio, line, names, titles, row, words, n, k, name) {
    while ((getline line <path) > 0) {
        if (match(line, /of the rounds: [^.]*/)) {
            line = substr(line, RSTART + 15, RLENGTH - 15)
            gsub(/ \([^)]*\)/, "", line)
            split(line, names, ", ")
        } else if (line ~ /^all blocks together/) {
            split(line, titles, "\t")
        } else if (line !~ /^#/) {
            n = split(line, row, "\t")
            if (split(row[1], words, ", ") == 2) {
                name = words[1]
                row[1] = words[2]
            }
            for (k = 2; k <= n; k++) {
                compare_times(name, row[1], titles[k], row[k], names, ratio)
            }
        }
    }
    close(path)
}

# Between nodes: within one, whether the ring may be chosen depends on the hardware threads of the machine.
function misses(ratio, files, n, k) {
    print "| call | all blocks together | between | chosen, us | least, us | ratio |"
    print "| --- | --- | --- | --- | --- | --- |"
    n = split("network middle calls sixteen blocking alltoall-bcast", files, " ")
    for (k = 1; k <= n; k++) {
        misses_of(folder "/costs-" files[k] ".tsv", ratio)
    }
}
