# generate.awk: prints a page with its generated parts made anew: see docs/generate.
#
#   awk -v sources=ompi_coll_flash -v folder=docs/results -v results='FILE...' -v runs='PATH...' -v listed='PATH...' \
#       -f generate-results.awk -f generate-costs.awk -f generate-gpu.awk -f generate-parts.awk -f generate.awk PAGE
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
    } else if (words[1] == "needs") {
        needs(words[2], words[3])
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
    } else if (words[1] == "misses") {
        read_costs()
        misses(words[2])
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
