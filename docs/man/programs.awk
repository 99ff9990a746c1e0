# programs.awk: makes the manual page of an installed program of the text that it prints for --help,
# which stands in its source: a C program's string, else its first comment; a Python program's
# docstring; a shell script's first comment.
#
#   awk -v version=V -v program=NAME -v list=programs.list -v top=FOLDER -f programs.awk
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

BEGIN {
    while ((getline line <list) > 0) {
        if (split(line, field, "|") >= 3 && field[1] == program) {
            ARGV[1] = top "/" field[2]
            ARGC = 2
            summary = field[3]
            call = field[4]
        }
    }
    if (ARGC != 2) {
        print "programs.awk: " program " is not in " list >"/dev/stderr"
        exit 1
    }
}

# As it is shown: no dot or quote of a line's begin is for roff, and hyphens are to be copied.
function put(line) {
    gsub(/\\/, "\\e", line)
    gsub(/-/, "\\-", line)
    gsub(/%s/, call, line)
    gsub(/%%/, "%", line)
    sub(/^[.']/, "\\\\\\&&", line)
    body = body line "\n"
}

# The string literals of a line of C, joined to those before; whole lines are put.
function literals(line, text) {
    while (match(line, /"([^"\\]|\\.)*"/)) {
        text = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        gsub(/\\"/, "\"", text)
        while (match(text, /\\n/)) {
            put(pending substr(text, 1, RSTART - 1))
            pending = ""
            text = substr(text, RSTART + 2)
        }
        pending = pending text
    }
}

/^Copyright/ || /Copyright \(c\)/ {
    if (inside == "comment" || inside == "docstring") {
        inside = "done"
    }
}

FILENAME ~ /\.c$/ && /^static const char help(_text)?\[\]/ {
    body = "" # better than the comment
    inside = "string"
    next
}
inside == "string" {
    literals($0)
    if (/;$/) {
        inside = "done"
    }
    next
}

FNR == 1 && /^\/\*$/ {
    inside = "comment"
    next
}
inside == "comment" && FNR == 2 {
    sub(/^ \* [a-z_]*\.c: /, " * ")
}
inside == "comment" && /^ \*\// {
    inside = "done"
}
inside == "comment" {
    sub(/^ \* ?/, "")
    put($0)
}

FNR == 1 && /bash$/ {
    inside = "script"
    next
}
inside == "script" && !/^#/ {
    inside = "done"
}
inside == "script" && !/Copyright/ {
    sub(/^# ?/, "")
    put($0)
}

FNR == 2 && /^"""/ {
    inside = "docstring"
    sub(/^"""/, "")
}
inside == "docstring" {
    put($0)
}

END {
    gsub(/^\n+|\n+$/, "", body)
    if (body == "") {
        print "programs.awk: no text in " FILENAME >"/dev/stderr"
        exit 1
    }
    printf ".TH %s 1 \"\" \"coll/flash %s\" \"Programs of coll/flash\"\n", program, version
    gsub(/-/, "\\-", summary)
    print ".SH NAME\n" program " \\- " summary
    print ".SH SYNOPSIS\n.B " program "\n.RI [ option ]..."
    print ".SH DESCRIPTION\n.nf\n" body "\n.fi"
    print ".SH SEE ALSO\n.BR mpix_flash (3),\n.BR coll_flash (7),\n.BR mpirun (1)"
}
