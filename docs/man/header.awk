# header.awk: makes manual pages, section 3, of a header: of each function, type and constant
# MPIX_... that a comment stands right above, that comment; of the comment that the file begins with,
# a page of the header's name, which ends with the comments that nothing follows.
#
#   awk -v folder=OUT -v version=V -v header=NAME.h -f header.awk HEADER
#
# In a comment: `name   text` is an item, as are lines that begin with `- `; what is indented by more
# than one column is as it is.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

BEGIN {
    base = header
    sub(/\.h$/, "", base)
    overview = folder "/" base ".3"
}

function escaped(line) {
    gsub(/\\/, "\\e", line)
    sub(/^[.']/, "\\\\\\&&", line)
    return line
}

# The text up to the first full stop, colon or semicolon.
function summary(lines, count, text, k) {
    for (k = 1; k <= count && lines[k] != ""; k++) {
        text = text (k > 1 ? " " : "") lines[k]
    }
    sub(/[.:;]( .*)?$/, "", text)
    if (match(text, /\. /)) {
        text = substr(text, 1, RSTART - 1)
    }
    return text
}

# Paragraphs, items and examples.
function body(lines, count, page, k, line, item) {
    for (k = 1; k <= count; k++) {
        line = lines[k]
        if (line == "") {
            if (literal) {
                print ".fi" > page
            }
            literal = 0
            print ".PP" > page
        } else if (line ~ /^  +[^ ]/ && !item && (literal || k == 1 || lines[k - 1] == "")) {
            if (!literal) {
                print ".nf" > page
            }
            literal = 1
            print escaped(line) > page
        } else if (line ~ /^- /) {
            print ".IP \\(bu 2" > page
            print escaped(substr(line, 3)) > page
        } else if (match(line, /^[A-Za-z_]+(, [A-Za-z_]+)*  +/)) {
            print ".TP\n.I " escaped(substr(line, 1, RLENGTH)) > page
            print escaped(substr(line, RLENGTH + 1)) > page
            item = 1
        } else {
            sub(/^ +/, "", line)
            print escaped(line) > page
        }
        if (line == "") {
            item = 0
        }
    }
    if (literal) {
        print ".fi" > page
    }
    literal = 0
}

function begin(page, name, what) {
    print ".\\\" made of " header " by header.awk" > page
    printf ".TH %s 3 \"\" \"coll/flash %s\" \"MPI extension\"\n", name, version > page
    print ".SH NAME\n" name " \\- " escaped(what) > page
    print ".SH SYNOPSIS\n.nf\n#include <" header ">" > page
}

function end(page) {
    print ".SH SEE ALSO\n.BR " base " (3),\n.BR coll_flash (7)" > page
    close(page)
}

function write_page(name, declaration, page) {
    if (name in written) {
        return
    }
    written[name] = 1
    page = folder "/" name ".3"
    begin(page, name, summary(comment, comments))
    print "\n" escaped(declaration) "\n.fi" > page
    print ".SH DESCRIPTION" > page
    body(comment, comments, page)
    end(page)
}

# What has been declared under the comment: each function by itself; or the first name, of a type.
function declared(text, parts, n, k, name) {
    if (text !~ /MPIX_/) {
        return 0
    }
    n = text ~ /^int / ? split(text, parts, /;\n/) : 1
    if (n == 1) {
        parts[1] = text
    }
    for (k = 1; k <= n; k++) {
        if (match(parts[k], /MPIX_[A-Za-z_]+/)) {
            name = substr(parts[k], RSTART, RLENGTH)
            if (parts[k] ~ /^enum/ && match(parts[k], /int MPIX_[A-Za-z_]+\(/)) {
                name = substr(parts[k], RSTART + 4, RLENGTH - 5)
            }
            write_page(name, parts[k] (n > 1 ? ";" : ""))
        }
    }
    return 1
}

function finish() {
    sub(/\n$/, "", text)
    if (first) {
        for (k = 1; k <= comments && comment[k] !~ /^Copyright/; k++) {
            opening[++openings] = comment[k]
        }
        first = 0
    } else if (comments > 0 && !declared(text)) {
        loose[++looses] = ""
        for (k = 1; k <= comments; k++) {
            loose[++looses] = comment[k]
        }
    }
    comments = 0
    text = ""
}

NR == 1 {
    first = 1
}

/^\/\*( |$)/ && !inside {
    if (comments > 0) {
        finish()
    }
    inside = 1
    line = $0
    sub(/^\/\* ?/, "", line)
    if (line ~ /\*\/$/) {
        sub(/ *\*\/$/, "", line)
        inside = 0
    }
    if (line != "") {
        comment[++comments] = line
    }
    next
}

inside {
    if ($0 ~ /^ \*\//) {
        inside = 0
        next
    }
    line = $0
    sub(/^ \* ?/, "", line)
    comment[++comments] = line
    next
}

comments > 0 {
    if ($0 == "") {
        finish()
    } else {
        text = text $0 "\n"
    }
}

END {
    sub("^" header ": *", "", opening[1])
    begin(overview, base, summary(opening, openings))
    opening[1] = ""
    print ".fi\n.SH DESCRIPTION" > overview
    body(opening, openings, overview)
    body(loose, looses, overview)
    print ".SH PAGES" > overview
    for (name in written) {
        print ".BR " name " (3)\n.br" | ("sort >>\"" overview "\"")
    }
    close(overview)
    close("sort >>\"" overview "\"")
}
