# generate-gpu.awk: the tables of docs/gpu-results.md, of what tests/gpu/run.sh printed: see docs/generate.
#
# `runs` has the paths of these files, oldest first: run N is the N-th. Nothing is rounded, and no row is left out that a
# table is for. Rows of several runs stand in the order of the latest.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

# numbers_of LINE: the figures at its end go to values[1...count]; what stands before them to label.
function numbers_of(line, fields, n, first, k) {
    n = split(line, fields, " ")
    for (first = n + 1; first > 1 && fields[first - 1] ~ /^(-|WRONG|-?[0-9]+\.[0-9]+)$/; first--) {
    }
    for (k = first; k <= n; k++) {
        values[k - first + 1] = fields[k]
    }
    label = ""
    for (k = 1; k < first; k++) {
        label = label (k > 1 ? " " : "") fields[k]
    }
    return n - first + 1
}

function heads(titles) {
    print cells(titles)
    print rule(titles)
}

# A row of a table whose rows have keys: they are printed in the order of the keys, and of the runs.
function keep(key, k, row) {
    if (!(key in positions)) {
        positions[key] = ++key_count
        keys_of[key_count] = key
    }
    if ((key, k) in kept) {
        row = kept[key, k] "\n" row
    }
    kept[key, k] = row
}

function print_kept(k, n) {
    for (n = 1; n <= key_count; n++) {
        for (k = 1; k <= run_count; k++) {
            if ((keys_of[n], k) in kept) {
                print kept[keys_of[n], k]
                found++
            }
        }
    }
}

# ------------------------------------------------------------ the runs and their steps

# Where a run says what it is and where: the step `node`, or without that step, the lines before the first one.
function origin(k) {
    return (k, "node") in lengths ? "node" : "before"
}

function gpu_runs(k) {
    heads("run\tfile\tbegun, UTC\tflash and what it was built with\tGPU; driver, MIG, compute mode, memory, PCIe\thost\tsteps")
    for (k = 1; k <= run_count; k++) {
        print cells(k "\t`" files[k] "`\t" begun[k] "\t" matching(k, origin(k), "^flash ") "\t" \
            told(k, origin(k), "GPU, driver, MIG, compute mode, memory, PCIe: ") "\t" \
            matching(k, origin(k), "^[0-9]+ cores, ") \
            "\t" totals[k])
        found++
    }
}

# How many tests passed, of a step that counts them.
function counted(k, step, i, line, text) {
    for (i = 1; i <= lengths[k, step]; i++) {
        line = texts[k, step, i]
        if (line ~ /^[0-9]+ of [0-9]+ tests pass$/ || line ~ /^[0-9]+ points pass, / || line ~ /^ERROR SUMMARY: / || \
            line ~ /stopped when the time was up$/) {
            sub(/^ERROR SUMMARY: /, "", line)
            text = text "; " line
        }
    }
    return text
}

function gpu_steps(k, n, row) {
    row = "step"
    for (k = 1; k <= run_count; k++) {
        row = row "\trun " k
    }
    heads(row)
    for (n = 1; n <= step_count; n++) {
        row = "`" steps[n] "`"
        for (k = 1; k <= run_count; k++) {
            row = row "\t" verdicts[k, steps[n]] counted(k, steps[n])
        }
        print cells(row)
        found++
    }
}

function gpu_failures(k, n, i, line) {
    heads("run\tstep\twhat failed")
    for (k = 1; k <= run_count; k++) {
        for (n = 1; n <= step_count; n++) {
            for (i = 1; i <= lengths[k, steps[n]]; i++) {
                line = texts[k, steps[n], i]
                if (line ~ /^(failed: |not ok |PROBLEM: )/) {
                    sub(/^failed: /, "", line)
                    print cells(k "\t`" steps[n] "`\t" plain(line))
                }
            }
        }
    }
    found++
}

# ------------------------------------------------------------ figures

# The latest run that has a step.
function latest(step, k) {
    for (k = run_count; k > 0 && lengths[k, step] == 0; k--) {
    }
    return k
}

function gpu_rates(k, i, n, line, row) {
    k = latest("rates")
    heads("GB/s, run " k "\tto the device\tfrom it\tboth at once")
    for (i = 1; i <= lengths[k, "rates"]; i++) {
        n = numbers_of(texts[k, "rates", i])
        if (n == 2) {
            row = "\t\t\t" values[1] " (" values[2] ")"
        } else if (n == 3) {
            row = "\t" values[1] "\t" values[2] "\t" values[3]
        } else if (n == 6) {
            row = "\t" values[1] " (" values[2] ")\t" values[3] " (" values[4] ")\t" values[5] " (" values[6] ")"
        } else {
            continue
        }
        print cells(label row)
        found++
    }
}

# titles_of LINE: the lengths of segments above columns, each of which has a place; title_at[1...]: these places.
function titles_of(line, words, n, k) {
    sub(/.*segments: */, "", line)
    gsub(/   */, "\t", line)
    n = split(line, words, "\t")
    for (k = 1; k <= n; k++) {
        words[k] = trim(words[k])
        if (!(words[k] in places)) {
            places[words[k]] = ++place_count
            titles[place_count] = words[k]
        }
        title_at[k] = places[words[k]]
    }
    return n
}

# Calls with several lengths of segments. Early runs did not print the lengths in each step: those figures share a column.
function gpu_calls(step, k, i, n, j, known, others, row, cell, line) {
    titles_of("segments: default  256 KiB  1 MiB  4 MiB")
    for (k = 1; k <= run_count; k++) {
        line = matching(k, step, "segments: ")
        if (line != "") {
            titles_of(line)
        } else if (lengths[k, step]) {
            others = 1
        }
    }
    row = "ms\trun"
    for (j = 1; j <= place_count; j++) {
        row = row "\t" titles[j]
    }
    heads(row (others ? "\tlengths that the run did not print" : ""))
    for (k = run_count; k > 0; k--) {
        line = matching(k, step, "segments: ")
        known = line == "" ? 0 : titles_of(line)
        for (i = 1; i <= lengths[k, step]; i++) {
            line = texts[k, step, i]
            if (line ~ /segments: |^failed: |^(AG|RS) / || (n = numbers_of(line)) == 0) {
                continue
            }
            split("", cell)
            for (j = 1; j <= n; j++) {
                if (known) {
                    cell[title_at[j]] = values[j]
                } else {
                    cell[place_count + 1] = cell[place_count + 1] (j > 1 ? ", " : "") values[j]
                }
            }
            row = label "\t" k
            for (j = 1; j <= place_count + others; j++) {
                row = row "\t" cell[j]
            }
            keep(label, k, cells(row))
        }
    }
    print_kept()
}

# How many figures a row of flash_cublas has: by the titles of its step, since what stands behind may begin with a number.
# Before T_split was measured there were eight.
function figures_of(k, step, fields, n, titles, j) {
    titles = matching(k, step, "T_gemm")
    if (titles != "") {
        return titles ~ /T_split/ ? 9 : 8
    }
    for (j = 5; j <= n && fields[j] ~ /^(-|-?[0-9.]+)$/; j++) {
    }
    return j - 5
}

function gpu_products(k, i, j, n, s, line, fields, count, key, row) {
    heads("call and product\tp\tmemory, or what is special\trun\tT_gemm\tT_split\tT_comm\tT_apart\tT_together\tIQR %\t" \
        "E\tbound\tE / bound")
    for (k = run_count; k > 0; k--) {
        for (s = 1; s <= step_count; s++) {
            for (i = 1; i <= lengths[k, steps[s]]; i++) {
                line = texts[k, steps[s], i]
                if (line !~ /^(AG|RS) [a-z0-9]+ +[0-9]+x *[0-9]+x *[0-9]+ /) {
                    continue
                }
                gsub(/x +/, "x", line)
                n = split(line, fields, " ")
                count = figures_of(k, steps[s], fields, n)
                if (count != 8 && count != 9) {
                    stop(files[k] ": a row of other columns: " line)
                }
                gsub(/x/, " x ", fields[3])
                key = fields[1] " " fields[2] " " fields[3] "\t" fields[4] "\t"
                for (j = 5 + count; j <= n; j++) {
                    key = key fields[j] (j < n ? " " : "")
                }
                row = key "\t" k "\t" fields[5] (count == 8 ? "\t" : "")
                for (j = 6; j < 5 + count; j++) {
                    row = row "\t" fields[j]
                }
                keep(key, k, cells(row))
            }
        }
    }
    print_kept()
}

# What each run says of the same, side by side: lines `what: figure`, or with blanks between.
function gpu_lines(step, k, i, n, line, what, row) {
    row = step == "behind" ? "a call" : "what is waited for"
    for (k = 1; k <= run_count; k++) {
        if (lengths[k, step]) {
            row = row "\trun " k
        }
    }
    heads(row)
    for (k = run_count; k > 0; k--) {
        for (i = 1; i <= lengths[k, step]; i++) {
            line = texts[k, step, i]
            what = "streams that wait"
            if (match(line, /(: |   *)[0-9]/)) {
                what = substr(line, 1, RSTART - 1)
                line = trim(substr(line, RSTART + 1))
            }
            keep(what, k, line)
        }
    }
    for (n = 1; n <= key_count; n++) {
        row = keys_of[n]
        for (k = 1; k <= run_count; k++) {
            if (lengths[k, step]) {
                row = row "\t" kept[keys_of[n], k]
            }
        }
        print cells(row)
        found++
    }
}

function gpu_messages(k, i, fields) {
    heads("bytes of a message\trun\tmessages\tus a message\tMB/s")
    for (k = 1; k <= run_count; k++) {
        for (i = 1; i <= lengths[k, "probe"]; i++) {
            if (texts[k, "probe", i] ~ /^tag_bw [0-9]+: Final:/) {
                split(texts[k, "probe", i], fields, " ")
                sub(/:/, "", fields[2])
                print cells(fields[2] "\t" k "\t" fields[4] "\t" fields[7] "\t" fields[9])
                found++
            }
        }
    }
}

function gpu_probe(k, i, j, n, row) {
    heads("call, and lengths of its segments\trun\tms")
    for (k = 1; k <= run_count; k++) {
        for (i = 1; i <= lengths[k, "probe"]; i++) {
            if (texts[k, "probe", i] ~ /^(tag_bw|failed:) / || (n = numbers_of(texts[k, "probe", i])) == 0) {
                continue
            }
            row = label "\t" k "\t" values[1]
            for (j = 2; j <= n; j++) {
                row = row ", " values[j]
            }
            print cells(row)
            found++
        }
    }
}

function gpu(name) {
    read_runs()
    split("", positions)
    split("", keys_of)
    split("", kept)
    split("", places)
    split("", titles)
    key_count = place_count = 0
    if (name == "runs") {
        gpu_runs()
    } else if (name == "steps") {
        gpu_steps()
    } else if (name == "failures") {
        gpu_failures()
    } else if (name == "rates") {
        gpu_rates()
    } else if (name == "collectives" || name == "mps") {
        gpu_calls(name)
    } else if (name == "products") {
        gpu_products()
    } else if (name == "behind" || name == "waits") {
        gpu_lines(name)
    } else if (name == "messages") {
        gpu_messages()
    } else if (name == "probe") {
        gpu_probe()
    } else {
        stop("no table of a GPU is called " name)
    }
}
