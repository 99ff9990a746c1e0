# generate-costs.awk: the built-in costs, and which algorithm they choose: see docs/generate.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

# ------------------------------------------------------------ costs

# The rows of the built-in table, in the order of the source: costs[GROUP, ALGORITHM] is "FIXED RANK DOUBLING BYTE".
# A group is of a place and a call, and begins with the fallback's row. The groups of blocking calls are told by their
# name, all others by their order, which is that of the kinds: eight for each place.
function read_costs(line, inside, name, row, blocking, unnamed, words) {
    if (costs_read++) {
        return
    }
    while ((getline line <(sources "/settings/coll_flash_costs.c")) > 0) {
        inside = inside || line ~ /^static const table_t built_in/
        if (inside && match(line, /BLOCKING\(FLASH_[A-Z_]+\)/)) {
            blocking = tolower(substr(line, RSTART + 15, RLENGTH - 16))
        }
        while (inside && match(line, /\[FLASH_[A-Z]+\] = \{true[^}]*\}/)) {
            row = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            name = tolower(substr(row, 8, index(row, "]") - 8))
            if (name == "fallback") {
                split("scatter allgather reduce_scatter allreduce alltoall bcast reduce gather", words, " ")
                unnamed += blocking == ""
                groups++
                place_of[groups] = unnamed <= 8 ? "network" : "node"
                call_of[groups] = blocking == "" ? words[unnamed % 8 + 1] : "blocking_" blocking
                blocking = ""
            }
            gsub(/.*\{true, |[,}]/, "", row)
            costs[groups, name] = row
            rows_of[groups] = rows_of[groups] " " name
        }
        if (line ~ /;$/) {
            inside = 0
        }
        if (match(line, /^#define PAIRWISE_OF_THREE \(\(size_t\) /)) {
            pairwise_of_three = substr(line, RLENGTH + 1) * 2 ^ 10
        }
        if (line ~ /^#define BLOCKING_EXCHANGE_RANKS /) {
            blocking_exchange_ranks = substr(line, length("#define BLOCKING_EXCHANGE_RANKS ") + 1) + 0
        }
    }
    close(sources "/settings/coll_flash_costs.c")
    while ((getline line <(sources "/calls/coll_flash_path.h")) > 0) {
        if (line ~ /^#define FLASH_PAIRWISE_RANKS /) {
            sub(/.* /, "", line)
            pairwise_ranks = line + 0
        }
    }
    close(sources "/calls/coll_flash_path.h")
    if (unnamed != 16 || !pairwise_ranks || !pairwise_of_three || !blocking_exchange_ranks) {
        stop("no table of costs in the sources")
    }
}

function cost_rows(group, names, n, k, row) {
    print "| place | call | algorithm | a call, ns | each other rank, ns | each doubling of the ranks, ns | each byte sent, ps |"
    print "| --- | --- | --- | --- | --- | --- | --- |"
    for (group = 1; group <= groups; group++) {
        n = split(rows_of[group], names, " ")
        for (k = 1; k <= n; k++) {
            row = costs[group, names[k]]
            gsub(/ /, " | ", row)
            print "| " place_of[group] " | " call_of[group] " | " names[k] " | " row " |"
            found++
        }
    }
}

function cost_of(group, name, ranks, bytes, part, sent, rounds) {
    sent = (bytes - int(bytes / ranks)) * (call_of[group] ~ /allreduce$/ ? 2 : 1)
    while (2 ^ rounds < ranks) {
        rounds++
    }
    sent = call_of[group] ~ /^((blocking_)?bcast|reduce)$/ ? bytes * rounds : sent
    split(costs[group, name], part, " ")
    return part[1] + part[2] * (ranks - 1) + part[3] * rounds + int(sent * part[4] / 1000)
}

# As calls/coll_flash_path.c chooses; on a node, where the ring may be chosen.
function cheapest(group, ranks, bytes, names, n, k, cost, low, best) {
    n = split("fallback ring shm recdbl pairwise", names, " ")
    for (k = 1; k <= n; k++) {
        if (!((group, names[k]) in costs) || (names[k] == "recdbl" && (bytes > 2 ^ 20 || ranks == 3)) ||
            (names[k] == "ring" && call_of[group] ~ /^(alltoall|gather|scatter)$/ && ranks > pairwise_ranks) ||
            (names[k] == "ring" && call_of[group] ~ /^blocking_(allgather|allreduce|bcast)$/ && ranks == 2) ||
            (names[k] == "ring" && call_of[group] == "blocking_alltoall" && ranks > blocking_exchange_ranks) ||
            (names[k] == "pairwise" && (ranks > pairwise_ranks || (ranks == 3 && bytes < pairwise_of_three)))) {
            continue
        }
        cost = cost_of(group, names[k], ranks, bytes)
        if (best == "" || cost < low) {
            best = names[k]
            low = cost
        }
    }
    return best
}

function size_text(bytes) {
    if (bytes < 1024) {
        return bytes " B"
    }
    return bytes < 2 ^ 20 ? sprintf(bytes < 1000 * 2 ^ 10 ? "%.3g KiB" : "%.0f KiB", bytes / 2 ^ 10) : sprintf("%.3g MiB", bytes / 2 ^ 20)
}

# From which size on another algorithm is chosen: where a size and twice that differ, it is searched for.
function changes(group, ranks, text, last, from, low, high, middle) {
    last = cheapest(group, ranks, 1)
    text = last
    for (from = 1; from < 2 ^ 30; from = high) {
        high = from < 200 ? from + 1 : int(from * 1.01)
        if (cheapest(group, ranks, high) != last) {
            low = from
            while (high - low > 1) {
                middle = int((low + high) / 2)
                if (cheapest(group, ranks, middle) == last) {
                    low = middle
                } else {
                    high = middle
                }
            }
            last = cheapest(group, ranks, high)
            text = text "; from " size_text(high) " " last
        }
    }
    return text
}

function choices_made(group, sizes, n, k, line) {
    n = split("2 3 4 8 16 64", sizes, " ")
    line = "| place | call"
    for (k = 1; k <= n; k++) {
        line = line " | " sizes[k] " ranks"
    }
    print line " |"
    print "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for (group = 1; group <= groups; group++) {
        line = "| " place_of[group] " | " call_of[group]
        for (k = 1; k <= n; k++) {
            line = line " | " changes(group, sizes[k])
        }
        print line " |"
        found++
    }
}
