# generate-results.awk: tables of docs/results, and what follows from them: see docs/generate.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

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
