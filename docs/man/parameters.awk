# parameters.awk: makes the manual page coll_flash(7) of the sources that register flash's parameters
# and counters: of each call register_...("name", ..., "text" ...), the name and the text.
#
#   awk -v version=V -f parameters.awk SOURCE...
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

function escaped(text) {
    gsub(/\\"/, "\"", text)
    gsub(/\\/, "\\e", text)
    return text
}

# The string literals of a line, joined; the first of a call is the name.
function literals(line, text) {
    while (match(line, /"([^"\\]|\\.)*"/)) {
        text = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        if (name == "") {
            name = text
        } else {
            help = help text
        }
    }
}

BEGIN {
    printf ".TH coll_flash 7 \"\" \"coll/flash %s\" \"Open MPI component\"\n", version
    print ".SH NAME\ncoll_flash \\- collectives that hide under computation, for Open MPI"
    print ".SH SYNOPSIS\n.B mpirun --mca coll flash\n.I program"
    print ".SH DESCRIPTION"
    print "A component of Open MPI that serves MPI_Iallgather(v), MPI_Ireduce_scatter(_block), MPI_Iallreduce,"
    print "MPI_Ialltoall(v), MPI_Ibcast, MPI_Ireduce, MPI_Igather(v), MPI_Iscatter(v) and their persistent forms, large ones as rings of messages over UCX, with asynchronous progress, small ones by"
    print "what costs less, blocking calls where that takes less time than Open MPI's calls, and the calls of"
    print ".BR mpix_flash (3)."
    print "Alone on the list, it comes first, and everything else is as usual. UCX reads"
    print ".I UCX_*"
    print "as in any program, and"
    print ".I UCX_FLASH_*"
    print "for flash's own context alone."
    print ".SH PARAMETERS"
    print "Given as"
    print ".B --mca"
    print ".I name value"
    print "or by"
    print ".I OMPI_MCA_name"
    print "in the environment;"
    print ".B ompi_info --param coll flash --level 9"
    print "shows their values and what they can be."
}

/^ *(mca_coll_flash_)?register_[a-z]+\($/ || /^ *(mca_coll_flash_)?register_[a-z]+\("/ {
    inside = 1
    name = help = ""
    counter = /register_(one|count)/
}

inside {
    literals($0)
}

inside && /\);$/ {
    inside = 0
    if (counter && !counters++) {
        print ".SH COUNTERS\nPerformance variables of MPI_T, of each process."
    }
    print ".TP\n.B coll_flash_" name "\n" escaped(help) "."
}

END {
    print ".SH SEE ALSO\n.BR mpix_flash (3),\n.BR mpirun (1),\n.BR ompi_info (1)"
}
