# generate-parts.awk: the tables of docs/internals/parts.md, of the sources and of docs/results/selection-*.tsv: see
# docs/generate.
#
# `listed` has the paths of the library's sources.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

# ------------------------------------------------------------ lines

function lines_of(path, line, lines) {
    while ((getline line <path) > 0) {
        lines++
    }
    close(path)
    if (!lines) {
        stop("no lines in " path)
    }
    return lines
}

# Of the functions whose names match, with the comment above each.
function lines_of_functions(path, pattern, line, name, first, row, lines) {
    first = 1
    while ((getline line <path) > 0) {
        row++
        if (line == "" && !name) {
            first = row + 1
        } else if (line ~ /^[a-z_][^=;]*\(/ && line !~ /;$/ && !name) {
            sub(/^__attribute__\(\([a-z]*\)\) /, "", line)
            sub(/\(.*/, "", line)
            sub(/.*[ *]/, "", line)
            name = line
        } else if (line == "}") {
            lines += name ~ pattern ? row - first + 1 : 0
            name = ""
        }
    }
    close(path)
    if (!lines) {
        stop("no function " pattern " in " path)
    }
    return lines
}

# The rooms are those of the first table of architecture.md: room_files, room_lines, room_gives.
function read_rooms(paths, n, k, line, fields, room, folder) {
    if (room_count) {
        return
    }
    while ((getline line <"docs/internals/architecture.md") > 0 && line !~ /^## /) {
        if (line ~ /^\| `[a-z_]+` \|/) {
            split(line, fields, / *\| */)
            gsub(/`/, "", fields[2])
            sub(/\. .*/, ".", fields[3])
            rooms[++room_count] = fields[2]
            room_gives[fields[2]] = fields[3]
        }
    }
    close("docs/internals/architecture.md")
    n = split(listed, paths, " ")
    for (k = 1; k <= n; k++) {
        folder = paths[k]
        sub(/^ompi_coll_flash\//, "", folder)
        if (sub(/\/.*/, "", folder)) {
            room_files[folder]++
            room_lines[folder] += lines_of(paths[k])
        }
    }
}

function room_table(k, files, lines) {
    read_rooms()
    print "| room | what it holds | files | lines |"
    print "| --- | --- | --- | --- |"
    for (k = 1; k <= room_count; k++) {
        if (!room_files[rooms[k]]) {
            stop("no files in the room " rooms[k])
        }
        print "| `" rooms[k] "` | " room_gives[rooms[k]] " | " room_files[rooms[k]] " | " room_lines[rooms[k]] " |"
        files += room_files[rooms[k]]
        lines += room_lines[rooms[k]]
        found++
    }
    print "| all | | " files " | " lines " |"
}

# special NAME PART...: a part is a file, from the library's folder or the top on, or FILE:PATTERN, its functions whose
# names match.
function special(name, parts, words, path, n, k, lines, text) {
    n = split(parts, words, " ")
    for (k = 1; k <= n; k++) {
        path = words[k]
        sub(/:.*/, "", path)
        text = text (k > 1 ? ", " : "") "`" path "`"
        path = path ~ /^ucx_backend\// ? path : sources "/" path
        if (words[k] ~ /:/) {
            sub(/[^:]*:/, "", words[k])
            lines += lines_of_functions(path, words[k])
            text = text " (in part)"
        } else {
            lines += lines_of(path)
        }
    }
    print "| " name " | " text " | " lines " |"
    found++
}

function special_table() {
    print "| special case | where | lines |"
    print "| --- | --- | --- |"
    special("check of parameters", "settings/coll_flash_param_check.c")
    special("a call of the extension in a program that runs with another MPI ends it", \
        "settings/coll_flash_version.c:^mca_coll_flash_version_require$")
    special("version: a component that another Open MPI loads declines", \
        "settings/coll_flash_version.c:^(ask_library|print_built_for|mca_coll_flash_version_fits)$")
    special("probe of a process on another host", \
        "ucx_backend/flash_ucx_probe.c:(probe|^flash_ucx_new_worker$|^progress$|^tells_of_peer$) " \
        "job/coll_flash_peer.c:(probe|peers_judge)")
    special("ping", "ucx_backend/flash_ucx_ping.c")
    special("probe by TCP beside RDMA devices", "ucx_backend/flash_ucx_prober.c")
    special("a context for exchanges with all ranks", "ucx_backend/flash_ucx_exchange.c")
    special("segments for RDMA", "engine/flash_segments.h engine/flash_segments.c")
    special("loopback probe", "ucx_backend/flash_ucx_probe.c:loopback job/coll_flash_job.c:(loopback|^settle$) " \
        "ring/coll_flash_ring_watch.c:blocked_queue")
    special("unblocking", "job/coll_flash_peer.c:(suspect|unblock|^give_up$)")
    special("merged callbacks", "calls/coll_flash_path.c:merge extension/mpix_flash_call.c:merge " \
        "calls/flash_fallback_calls.c:^find_whole$")
    special("16-bit floats", "calls/coll_flash_float16.c")
    special("host bounces", "calls/coll_flash_bounce.h calls/coll_flash_bounce.c calls/coll_flash_bounce_calls.c")
    special("callback thread", "progress/flash_callback_thread.h progress/flash_callback_thread.c")
    special("trace", "engine/flash_trace.h engine/flash_trace.c job/coll_flash_trace.c")
    special("summary", "component/coll_flash_summary.c")
    special("hidden and exposed time", "engine/flash_meter.h engine/flash_meter.c")
}

# ------------------------------------------------------------ what algorithms gain

# 16 KiB
function bytes_of(text, parts) {
    split(text, parts, " ")
    return parts[1] * (parts[2] == "KiB" ? 2 ^ 10 : parts[2] == "MiB" ? 2 ^ 20 : 1)
}

function group_of(place, call, group) {
    for (group = 1; group <= groups; group++) {
        if (place_of[group] == place && call_of[group] == (call == "allgather" ? call : "reduce_scatter")) {
            break
        }
    }
    return group
}

# gained[WAY, 1...gains[WAY]], in order; way 1: a call alone, 2: under computation.
function gain(way, figure, k) {
    for (k = ++gains[way]; k > 1 && gained[way, k - 1] > figure + 0; k--) {
        gained[way, k] = gained[way, k - 1]
    }
    gained[way, k] = figure + 0
}

# A cell has the call alone and under computation, or the latter only; what stands behind `;` is of another call.
function gain_cell(cell, parts, n) {
    sub(/;.*/, "", cell)
    n = split(cell, parts, ", ")
    if (n == 2) {
        gain(1, parts[1])
    }
    gain(2, parts[n])
}

function forget_gains() {
    split("", gained)
    split("", gains)
    cell_count = 0
}

function best_to_worst(way, n, median) {
    n = gains[way]
    if (!n) {
        return ""
    }
    median = n % 2 ? gained[way, (n + 1) / 2] : (gained[way, n / 2] + gained[way, n / 2 + 1]) / 2
    return sprintf("%.2f, %.2f, %.2f", gained[way, 1], median, gained[way, n])
}

# Which file, and which commit it names.
function measured(file, text) {
    text = source(file)
    if (!match(text, /[Rr]ecorded by commit [0-9a-f]+, [0-9-]+/)) {
        stop(file " names no commit")
    }
    return "`" file "`, r" substr(text, RSTART + 1, RLENGTH - 1)
}

function print_gain(name, in_rooms, file) {
    gsub(/[a-z_]+/, "`&`", in_rooms)
    print "| " name " | " in_rooms " | " gains[2] + 0 " of " cell_count " | " best_to_worst(1) " | " best_to_worst(2) \
        " | " measured(file) " |"
    found++
}

# Whether shared memory reads the block of a call, or copies it, as shm_can and shm/coll_flash_shm_calls.c have it.
function is_read(ranks, bytes) {
    return ranks == 2 && bytes / 2 > bytes_of(size_of(constants["FLASH_SHM_READ_ABOVE"]))
}

# A table with sizes in its rows and ranks in its columns, relative to the fallback: its cells of calls for which the
# algorithm costs least. A row without a call has that of the row above.
function gains_by_size(name, in_rooms, file, place, call, path, line, row, fields, titles, n, k, label, of_block, ranks, bytes) {
    forget_gains()
    path = folder "/" file
    row = -1
    while ((getline line <path) > 0) {
        if (line ~ /^# /) {
            continue
        }
        n = split(line, fields, "\t")
        if (++row == 0) {
            split(line, titles, "\t")
            of_block = titles[1] == "a block"
            continue
        }
        label = fields[1]
        if (match(label, /^(allgather|reduce-scatter), /)) {
            call = label ~ /^a/ ? "allgather" : "reduce_scatter"
            label = substr(label, RLENGTH + 1)
            of_block = sub(/^blocks of /, "", label)
        }
        for (k = 2; k <= n; k++) {
            ranks = titles[k] + 0
            bytes = bytes_of(label) * (of_block ? ranks : 1) * (titles[k] ~ /three quarters/ ? 0.75 : 1)
            if (fields[k] !~ /^[0-9]/ || titles[k] ~ (is_read(ranks, bytes) ? "slots" : "reading")) {
                continue
            }
            cell_count++
            if (cheapest(group_of(place, call), ranks, bytes) == name) {
                gain_cell(fields[k])
            }
        }
    }
    close(path)
    print_gain(name, in_rooms, file)
}

# Merged callbacks, relative to the plain collective and the unsplit product, where the fallback costs no more than the
# ring; `by`: 0 for what is merged, 1 for the same calls by the ring.
function gains_merged(name, by, path, line, row, fields, parts, ranks, k, group) {
    forget_gains()
    path = folder "/selection-merge.tsv"
    row = -1
    while ((getline line <path) > 0) {
        if (line ~ /^# / || ++row == 0) {
            continue
        }
        split(line, fields, "\t")
        split(fields[1], parts, ", ")
        ranks = fields[6] == "" ? ranks : fields[6] + 0
        for (k = 1; k <= 2; k++) {
            group = group_of("network", k == 1 ? "allgather" : "reduce_scatter")
            cell_count++
            if (cost_of(group, "fallback", ranks, bytes_of(parts[2])) <= cost_of(group, "ring", ranks, bytes_of(parts[2]))) {
                gain(2, fields[2 * k + by])
            }
        }
    }
    close(path)
    print_gain(name, "", "selection-merge.tsv")
}

function gain_table() {
    read_costs()
    print "| algorithm | rooms | cells of the file for which it is chosen | alone: best, median, worst | " \
        "under computation: best, median, worst | measured |"
    print "| --- | --- | --- | --- | --- | --- |"
    gains_by_size("ring", "engine progress ucx_backend ring", "selection-ring.tsv", "network")
    gains_by_size("recdbl", "recdbl", "selection-recdbl.tsv", "network")
    gains_by_size("pairwise", "", "selection-pairwise.tsv", "network", "reduce_scatter")
    gains_by_size("shm", "shm", "selection-shm.tsv", "node", "allgather")
    gains_merged("hint `merge`", 0)
    gains_merged("the same calls by the ring", 1)
}
