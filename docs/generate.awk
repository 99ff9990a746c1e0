# generate.awk: prints a page with its generated parts made anew: see docs/generate.
#
#   awk -v sources=ompi_coll_flash -v folder=docs/results -v results='FILE...' -v runs='PATH...' -v listed='PATH...' \
#       -f generate-gpu.awk -f generate-parts.awk -f generate.awk PAGE
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

function stop(why) {
    print "generate.awk: " FILENAME ": " why >"/dev/stderr"
    failed = 1
    exit 1
}

function cells(line) {
    gsub(/\t/, " | ", line)
    return "| " line " |"
}

# As a cell: `<` would begin a tag.
function plain(text) {
    gsub(/\\"/, "\"", text)
    gsub(/</, "\\&lt;", text)
    gsub(/\|/, "\\|", text)
    return text
}

# ------------------------------------------------------------ tables of results

function chosen(line, columns, fields, wanted, n, k, text) {
    if (columns == "") {
        return line
    }
    split(line, fields, "\t")
    n = split(columns, wanted, ",")
    for (k = 1; k <= n; k++) {
        text = text (k > 1 ? "\t" : "") fields[wanted[k]]
    }
    return text
}

function rule(line) {
    gsub(/[^\t]+/, "", line)
    gsub(/\t/, " | ---", line)
    return "| ---" line " |"
}

function table(words, count, k, file, path, line, row, rows, columns, pattern, files, printed) {
    for (k = 1; k <= count; k++) {
        if (words[k] ~ /^rows=/) {
            rows = "," substr(words[k], 6) ","
        } else if (words[k] ~ /^columns=/) {
            columns = substr(words[k], 9)
        } else if (words[k] ~ /^match=/) {
            pattern = substr(words[k], 7)
        } else {
            file = words[k]
            path = folder "/" file
            row = -1
            printed = 0
            while ((getline line <path) > 0) {
                if (line ~ /^# /) {
                    continue
                }
                row++
                if (row > 0 && (rows != "" && index(rows, "," row ",") == 0 || line !~ pattern)) {
                    continue
                }
                printed += row > 0
                line = chosen(line, columns)
                if (row == 0 && files++) {
                    sub(/^[^\t]*/, "**&**", line)
                }
                print cells(line)
                if (row == 0 && files == 1) {
                    print rule(line)
                }
            }
            close(path)
            if (!printed) {
                stop("no table in " path ", or no such row")
            }
        }
    }
}

# How a table was measured: the lines of its file that begin with `# `.
function source(file, path, line, text) {
    path = folder "/" file
    while ((getline line <path) > 0 && line ~ /^# /) {
        text = text (text == "" ? "" : " ") substr(line, 3)
    }
    close(path)
    if (text == "") {
        stop(path " does not say how it was measured")
    }
    return text
}

function all_sources(files, n, k) {
    n = split(results, files, " ")
    print "| file | how, where and when it was measured |"
    print "| --- | --- |"
    for (k = 1; k <= n; k++) {
        print "| `" files[k] "` | " plain(source(files[k])) " |"
        found++
    }
}

# read_table FILE: table_rows[0...], the lines of a table, the titles first; how many stand behind these.
function read_table(file, path, line, count) {
    path = folder "/" file
    count = -1
    while ((getline line <path) > 0) {
        if (line !~ /^# /) {
            table_rows[++count] = line
        }
    }
    close(path)
    if (count < 1) {
        stop("no table in " path)
    }
    return count
}

# least NAMES FILE: of each cell `A, B...` the name whose figure is the least, or all of which are; `-`: no figure.
function least(names, file, count, row, fields, n, k, name, figures, m, j, low, text) {
    split(names, name, ",")
    count = read_table(file)
    print cells(table_rows[0])
    print rule(table_rows[0])
    for (row = 1; row <= count; row++) {
        n = split(table_rows[row], fields, "\t")
        text = fields[1]
        for (k = 2; k <= n; k++) {
            m = split(fields[k], figures, ", ")
            low = ""
            for (j = 1; j <= m; j++) {
                low = figures[j] != "-" && (low == "" || figures[j] + 0 < low) ? figures[j] + 0 : low
            }
            text = text "\t"
            for (j = 1; j <= m; j++) {
                if (figures[j] != "-" && figures[j] + 0 == low) {
                    text = text (text ~ /\t$/ ? "" : ", ") name[j]
                }
            }
        }
        print cells(text)
        found++
    }
}

# below FILE: for each call of a table of ratios, a row: from which size on all ratios of a column are below 1.
function below(file, count, row, fields, titles, n, k, call, size, from, text) {
    count = read_table(file)
    n = split(table_rows[0], titles, "\t")
    sub(/^[^\t]*/, "ratio below 1", table_rows[0])
    print cells(table_rows[0])
    print rule(table_rows[0])
    for (row = count; row > 0; row--) {
        split(table_rows[row], fields, "\t")
        size = fields[1]
        call = sub(/^[^,]*, /, "", size) ? substr(fields[1], 1, index(fields[1], ",") - 1) : ""
        for (k = 2; k <= n; k++) {
            from[k] = fields[k] + 0 < 1 ? (from[k] ~ /^!/ ? from[k] : size) : (from[k] == "" ? "!none" : "!" from[k])
        }
        if (call != "") {
            text = call
            for (k = 2; k <= n; k++) {
                sub(/^!+/, "", from[k])
                text = text "\t" (from[k] == "none" ? "at no size" : "from " from[k] " on")
                from[k] = ""
            }
            lines[++found] = cells(text)
        }
    }
    for (row = found; row > 0; row--) {
        print lines[row]
    }
}

# The goals of a table that has `yes` or `no` in its fourth column.
function goals(file, path, line, fields, met, missed) {
    path = folder "/" file
    while ((getline line <path) > 0) {
        split(line, fields, "\t")
        met += fields[4] == "yes"
        missed += fields[4] == "**no**"
    }
    close(path)
    print "Of the " met + missed " goals that `mpi_bench/goals.py` checks, this machine meets " met " and misses " missed "."
    found = met + missed
}

# ------------------------------------------------------------ parameters and counters

# 64 << 20 and 16 * 1024 as people write them.
function size_of(text, parts, value) {
    gsub(/\(size_t\)|[()]/, "", text)
    if (text ~ /<</) {
        split(text, parts, "<<")
        value = parts[1] * 2 ^ parts[2]
    } else if (text ~ /\*/) {
        split(text, parts, "*")
        value = parts[1] * parts[2]
    } else {
        gsub(/ /, "", text)
        return text
    }
    if (value >= 2 ^ 30) {
        return value / 2 ^ 30 " GiB"
    }
    return value >= 2 ^ 20 ? value / 2 ^ 20 " MiB" : value / 2 ^ 10 " KiB"
}

function default_of(name, text) {
    text = defaults[name]
    if (text in words_of) {
        return "`" words_of[text] "`"
    }
    if (text in constants) {
        text = constants[text]
    }
    if (text == "true" || text == "false") {
        return text == "true" ? "`yes`" : "`no`"
    }
    if (text == "NULL") {
        return "none"
    }
    if (text == "") {
        return first_word[name] == "" ? "0" : "`" first_word[name] "`"
    }
    if (text ~ /^FLASH_[A-Z_]+$/) {
        return name == "help_dir" ? "the data folder of the installation" : "in `LIBDIR/mpix_flash`"
    }
    return size_of(text)
}

function values_of(name, text) {
    text = choices[name]
    return text == "" ? "" : "<br>" text
}

function read_source(path, line, name, parts) {
    while ((getline line <path) > 0) {
        if (match(line, /^    \.[a-z_]+ = [^,]+,/)) {
            name = line
            sub(/^    \./, "", name)
            sub(/ = .*/, "", name)
            sub(/^[^=]*= /, "", line)
            sub(/,.*/, "", line)
            defaults[name] = line
        } else if (match(line, /^    mca_coll_flash_params\.[a-z_]+ = [^;]+;/)) {
            name = line
            sub(/^    mca_coll_flash_params\./, "", name)
            sub(/ = .*/, "", name)
            sub(/^[^=]*= /, "", line)
            sub(/;.*/, "", line)
            defaults[name] = line
        } else if (match(line, /^    \{FLASH_[A-Z_]+, "[a-z]+"\}/)) {
            split(line, parts, /[{}," ]+/)
            words_of[parts[2]] = parts[3]
            list = list (list == "" ? "" : ", ") "`" parts[3] "`"
        } else if (match(line, /^static mca_base_var_enum_value_t [a-z_]+_values/)) {
            list = ""
            array = line
            sub(/^static mca_base_var_enum_value_t /, "", array)
            sub(/\[.*/, "", array)
        } else if (line ~ /^};/ && array != "") {
            lists[array] = list
            array = ""
        } else if (match(line, /^#define FLASH_[A-Z_]+ +/)) {
            split(line, parts, / +/)
            name = parts[2]
            sub(/^#define FLASH_[A-Z_]+ +/, "", line)
            sub(/ *\/\*.*/, "", line)
            constants[name] = line
        } else if (match(line, /^    KEY\([a-z_]+/)) {
            keys[substr(line, 9, RLENGTH - 8)] = 1
        } else if (match(line, /^    \{\.name = PREFIX "[a-z_]+"/)) {
            split(line, parts, "\"")
            keys[parts[2]] = 1
        }
    }
    close(path)
}

function read_sources() {
    if (sources_read++) {
        return
    }
    read_source(sources "/settings/coll_flash_params.c")
    read_source(sources "/settings/coll_flash_params.h")
    read_source(sources "/settings/coll_flash_params_paths.c")
    read_source(sources "/settings/coll_flash_params_tuning.c")
    read_source(sources "/settings/coll_flash_params_devices.c")
    read_source(sources "/engine/flash_pool.h")
    read_source(sources "/component/coll_flash_info.c")
}

# The string literals of a line: the name, then the text; and what else is told of a parameter.
function take(line, text) {
    while (match(line, /"([^"\\]|\\.)*"/)) {
        text = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, 1, RSTART - 1) " " substr(line, RSTART + RLENGTH)
        if (name == "") {
            name = text
        } else {
            help = help text
        }
    }
    if (match(line, /[a-z_]+_values/)) {
        choices[name] = lists[substr(line, RSTART, RLENGTH)]
        first_word[name] = choices[name]
        sub(/^`/, "", first_word[name])
        sub(/`.*/, "", first_word[name])
    }
    if (line ~ /VAR_TYPE_BOOL/) {
        choices[name] = "`yes`, `no`"
    }
    if (match(line, /INFO_LVL_[0-9]/)) {
        level = substr(line, RSTART + 9, 1)
    }
    if (line ~ /SCOPE_ALL_EQ/) {
        same = 1
    }
}

# calls PATH KIND: of each call register_...(...) of a source, a row.
function calls(path, kind, line, inside) {
    while ((getline line <path) > 0) {
        if (line ~ /^ *(mca_coll_flash_)?register_[a-z]+\($/ || line ~ /^ *(mca_coll_flash_)?register_[a-z]+\("/) {
            inside = 1
            name = help = level = ""
            same = 0
        }
        if (inside) {
            take(line)
        }
        if (inside && line ~ /\);$/) {
            inside = 0
            found++
            if (kind == "counters") {
                print "| `coll_flash_" name "` | " plain(help) ". |"
            } else {
                print "| `coll_flash_" name "`" values_of(name) " | " default_of(name) " | " \
                    (name in keys ? "yes" : "") " | " (same ? "job" : "rank") " | " level " | " plain(help) ". |"
            }
        }
    }
    close(path)
}

# ------------------------------------------------------------ costs

# The rows of the built-in table, in the order of the source: costs[GROUP, ALGORITHM] is "FIXED RANK DOUBLING BYTE".
function read_costs(line, inside, group, name, row) {
    if (costs_read++) {
        return
    }
    while ((getline line <(sources "/settings/coll_flash_costs.c")) > 0) {
        inside = inside || line ~ /^static const table_t built_in/
        while (inside && match(line, /\[FLASH_[A-Z]+\] = \{true[^}]*\}/)) {
            row = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            name = tolower(substr(row, 8, index(row, "]") - 8))
            group += name == "fallback"
            gsub(/.*\{true, |[,}]/, "", row)
            costs[group, name] = row
            rows_of[group] = rows_of[group] " " name
        }
        if (line ~ /;$/) {
            inside = 0
        }
    }
    close(sources "/settings/coll_flash_costs.c")
    while ((getline line <(sources "/calls/coll_flash_path.c")) > 0) {
        if (line ~ /^#define PAIRWISE_RANKS /) {
            sub(/.* /, "", line)
            pairwise_ranks = line + 0
        }
    }
    close(sources "/calls/coll_flash_path.c")
    if (group != 4 || !pairwise_ranks) {
        stop("no table of costs in the sources")
    }
}

# The four groups: which place and call they are of.
function place_of(group) {
    return group <= 2 ? "network" : "node"
}
function call_of(group) {
    return group % 2 == 1 ? "allgather" : "reduce_scatter"
}

function cost_rows(group, names, n, k, row) {
    print "| place | call | algorithm | a call, ns | each other rank, ns | each doubling of the ranks, ns | each byte sent, ps |"
    print "| --- | --- | --- | --- | --- | --- | --- |"
    for (group = 1; group <= 4; group++) {
        n = split(rows_of[group], names, " ")
        for (k = 1; k <= n; k++) {
            row = costs[group, names[k]]
            gsub(/ /, " | ", row)
            print "| " place_of(group) " | " call_of(group) " | " names[k] " | " row " |"
            found++
        }
    }
}

function cost_of(group, name, ranks, bytes, part, sent, rounds) {
    sent = bytes - int(bytes / ranks)
    while (2 ^ rounds < ranks) {
        rounds++
    }
    split(costs[group, name], part, " ")
    return part[1] + part[2] * (ranks - 1) + part[3] * rounds + int(sent * part[4] / 1000)
}

# As calls/coll_flash_path.c chooses; on a node, where the ring may be chosen.
function cheapest(group, ranks, bytes, names, n, k, cost, low, best) {
    n = split("fallback ring shm recdbl pairwise", names, " ")
    for (k = 1; k <= n; k++) {
        if (!((group, names[k]) in costs) || (names[k] == "recdbl" && (bytes > 2 ^ 20 || ranks == 3)) ||
            (names[k] == "pairwise" && ranks > pairwise_ranks)) {
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
    n = split("2 4 8 16 64", sizes, " ")
    line = "| place | call"
    for (k = 1; k <= n; k++) {
        line = line " | " sizes[k] " ranks"
    }
    print line " |"
    print "| --- | --- | --- | --- | --- | --- | --- |"
    for (group = 1; group <= 4; group++) {
        line = "| " place_of(group) " | " call_of(group)
        for (k = 1; k <= n; k++) {
            line = line " | " changes(group, sizes[k])
        }
        print line " |"
        found++
    }
}

function generated(words, count, k) {
    found = 0
    if (words[1] == "table") {
        for (k = 2; k <= count; k++) {
            words[k - 1] = words[k]
        }
        table(words, count - 1)
        return
    }
    read_sources()
    if (words[1] == "source") {
        print source(words[2])
        found++
    } else if (words[1] == "sources") {
        all_sources()
    } else if (words[1] == "goals") {
        goals(words[2])
    } else if (words[1] == "least") {
        least(words[2], words[3])
    } else if (words[1] == "below") {
        below(words[2])
    } else if (words[1] == "rooms") {
        room_table()
    } else if (words[1] == "special") {
        special_table()
    } else if (words[1] == "gains") {
        gain_table()
    } else if (words[1] == "gpu") {
        gpu(words[2])
    } else if (words[1] == "parameters") {
        print "| parameter and its words | default | info key | scope | level | meaning |"
        print "| --- | --- | --- | --- | --- | --- |"
        calls(sources "/settings/coll_flash_params_" words[2] ".c", words[1])
    } else if (words[1] == "counters") {
        print "| variable | meaning |"
        print "| --- | --- |"
        calls(sources "/component/coll_flash_pvars.c", words[1])
    } else if (words[1] == "costs") {
        read_costs()
        cost_rows()
    } else if (words[1] == "choices") {
        read_costs()
        choices_made()
    } else {
        stop("nothing makes " words[1])
    }
    if (!found) {
        stop("nothing found for " words[1] " " words[2])
    }
}

/^<!-- begin .* -->$/ {
    if (inside_part) {
        stop("line " FNR ": a part in a part")
    }
    print
    part = $0
    sub(/^<!-- begin /, "", part)
    sub(/ -->$/, "", part)
    count = split(part, words, " ")
    inside_part = 1
    # Any change to a source would make these wrong, and every change need a run of docs/generate.
    stays = check == "yes" && (words[1] == "rooms" || words[1] == "special")
    if (!stays) {
        generated(words, count)
    }
    next
}
/^<!-- end -->$/ {
    inside_part = stays = 0
}
!inside_part || stays {
    print
}
END {
    if (inside_part && !failed) {
        stop("a part that does not end")
    }
}
