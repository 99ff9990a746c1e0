#!/usr/bin/env bash
# README.md and docs/: each command stands in a block of `sh`, or with its output in one of `console`, and is run here as it
# stands, in a folder that looks like one in which quickstart.sh has been; or a comment above it, `<!-- not run: WHY -->`,
# says why not. Generated parts are up to date, links lead somewhere, and all messages are explained.
#
# In `console` a line `...` stands for any lines.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154,SC2016 # variables of runner.bash; what is in single quotes is sed's, awk's or another shell's
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/benchmarks.bash"

unset OMPI_MCA_mtl # which tests/tap.mk sets; no user does
pages=(README.md)
for page in "$top_srcdir"/docs/*.md "$top_srcdir"/docs/internals/*.md; do
    pages+=("${page#"$top_srcdir/"}")
done

# ------------------------------------------------------------ the text

point 'generated parts are up to date' "$top_srcdir/docs/generate" --check

# PAGE TARGET ANCHOR of each link that is not to the network, with `-` for none, where the page has no such heading; and
# all that lead to files, whatever their anchor.
links() {
    (cd "$top_srcdir" && awk '
        function path_of(page, link) {
            if (link == "") {
                return page
            }
            sub(/[^\/]*$/, "", page)
            link = page link
            while (sub(/[^\/]+\/\.\.\//, "", link)) {
            }
            return link
        }
        FNR == 1 { inside = 0 }
        /^ *```/ { inside = !inside; next }
        inside { next }
        /^#+ / {
            heading = tolower($0)
            sub(/^#+ /, "", heading)
            gsub(/[^a-z0-9_ -]/, "", heading)
            gsub(/ /, "-", heading)
            headings[FILENAME "#" heading] = 1
        }
        {
            line = $0
            while (match(line, /\]\([^)]*\)/)) {
                link = substr(line, RSTART + 2, RLENGTH - 3)
                line = substr(line, RSTART + RLENGTH)
                if (link !~ /^https?:/) {
                    pages[++count] = FILENAME
                    anchors[count] = link ~ /#/ ? link : ""
                    sub(/^[^#]*/, "", anchors[count])
                    sub(/#.*/, "", link)
                    targets[count] = path_of(FILENAME, link)
                }
            }
        }
        END {
            for (k = 1; k <= count; k++) {
                known = anchors[k] == "" || ((targets[k] anchors[k]) in headings)
                print pages[k], targets[k], known ? "-" : anchors[k]
            }
        }' "${pages[@]}" CONTRIBUTING.md SECURITY.md packaging/README.md tests/cluster/README.md \
            tests/rdma/README.md)
}

leads_somewhere() {
    local page target anchor dead=0
    while read -r page target anchor; do
        if [[ ! -e $top_srcdir/$target ]]; then
            echo "$page: there is no $target"
            dead=1
        elif [[ $anchor != - ]]; then
            echo "$page: $target has no heading for $anchor"
            dead=1
        fi
    done < <(links | tee "$scratch/links")
    [[ -s $scratch/links ]] && ((dead == 0))
}
point 'links lead somewhere' leads_somewhere

# Files of the sources that a page names, from the top, or from the library's or the benchmarks' folder on. include/ is
# the installation's, and coll_flash_alltoallv.c an example of a file to be written.
names_files() {
    local page file missing=0
    for page in "${pages[@]}"; do
        while read -r file; do
            [[ -e $top_srcdir/$file || -e $top_srcdir/ompi_coll_flash/$file || -e $top_srcdir/mpi_bench/$file ]] && continue
            [[ $file != include/* && ${file##*/} != coll_flash_alltoallv.c ]] || continue
            echo "$page: there is no $file"
            missing=1
        done < <(grep -o -E '`[a-z_]+/[A-Za-z0-9_/.-]+\.(awk|bash|c|cu|h|py|sh|tsv)`' "$top_srcdir/$page" | tr -d '`' | sort -u)
    done
    ((missing == 0))
}
point 'the files that pages name are there' names_files

# Of the messages there is a section for each, and no other.
explains_messages() {
    sed -n 's/^\[\(.*\)\]$/\1/p' "$help_file" | sort >"$scratch/topics"
    sed -n '/^## Messages/,/^## [^M]/s/^### //p' "$top_srcdir/docs/troubleshooting.md" | sort >"$scratch/explained"
    [[ -s $scratch/topics ]] && diff "$scratch/topics" "$scratch/explained"
}
point 'troubleshooting.md has a section for each message' explains_messages

# No command is out of this script's sight: a block has a language, and none is merely indented.
tells_language() {
    local page
    for page in "${pages[@]}"; do
        awk -v page="$page" '
            /^ *```/ {
                inside = !inside
                if (inside && $0 !~ /^ *```(c|cmake|console|diff|fortran|sh)$/) {
                    print page ":" FNR ": a block without a language, or with one that documents.sh does not know"
                    bad = 1
                }
                next
            }
            !inside && /^    (\.\/|[a-z_]+=|cmake |docs\/|make |mpicc |mpirun |sudo |tests\/)/ {
                print page ":" FNR ": a command that is indented: let it stand in a block of sh"
                bad = 1
            }
            END { exit bad }' "$top_srcdir/$page" || return 1
    done
}
point 'commands stand in blocks' tells_language

# ------------------------------------------------------------ the commands

# What quickstart.sh leaves: the sources, and ./install; and a user's program.
place=$scratch/place
prefix=$place/install
build_libraries=${FLASH_COMPONENT_PATH%%:*}
prepare() {
    local file
    mkdir -p "$prefix"/{bin,include,lib/mpix_flash,lib/openmpi,lib/pkgconfig}
    ln -s "$build_libraries"/mca_coll_flash.so "$prefix/lib/openmpi/"
    ln -s "$build_libraries"/libmpix_flash.so* "$prefix/lib/"
    ln -s "$build_libraries"/flash_ucx.so "$prefix/lib/mpix_flash/"
    ln -s "$top_srcdir/ompi_coll_flash/mpix_flash.h" "$prefix/include/"
    sed "s,^prefix=.*,prefix=$prefix," "$top_builddir/mpix_flash.pc" >"$prefix/lib/pkgconfig/mpix_flash.pc"
    for file in "$benchmarks"/flash_* "$top_srcdir"/mpi_bench/flash_{compare,info,plots,timeline}; do
        if [[ -f $file && -x $file && ! -e $prefix/bin/${file##*/} ]]; then
            ln -s "$file" "$prefix/bin/"
        fi
    done
    awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$top_srcdir/README.md" >"$place/sum.c"
    cp "$place/sum.c" "$place/app.c"
    # shellcheck disable=SC2046 # words
    "${MPICC:-mpicc}" -Wall -Wextra -Werror -o "$place/app" "$place/app.c" \
        $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs mpix_flash)
}

# cut_blocks PAGE: each block of commands as a file in $scratch/blocks, named by its line: the first line says of
# what kind it is, and why it is not run.
cut_blocks() {
    rm -rf "$scratch/blocks"
    mkdir "$scratch/blocks"
    awk -v folder="$scratch/blocks" '
        /^ *<!-- not run: .* -->$/ {
            why = $0
            sub(/^ *<!-- not run: /, "", why)
            sub(/ -->$/, "", why)
            next
        }
        !inside && /^ *```(sh|console)$/ {
            indent = $0
            sub(/```.*/, "", indent)
            kind = $0
            sub(/^ *```/, "", kind)
            file = sprintf("%s/%05d", folder, FNR)
            print kind " " why >file
            inside = 1
            next
        }
        inside && /^ *```$/ {
            close(file)
            inside = 0
            why = ""
            next
        }
        inside {
            print substr($0, length(indent) + 1) >file
        }
        !inside && NF {
            why = ""
        }' "$top_srcdir/$1"
}

# run_commands FILE: in the shell of the page: variables of the blocks before are there.
run_commands() {
    (
        cd "$place"
        PATH=$(dirname "$(command -v "$MPIRUN")"):$PATH OMPI_MCA_mpi_yield_when_idle=1 \
            OMPI_MCA_coll_flash_help_dir=$top_srcdir/ompi_coll_flash \
            timeout "$FLASH_TEST_TIMEOUT" bash -c 'state=$1 commands=$2
                [[ ! -e $state ]] || source "$state"
                set -aeo pipefail
                source "$commands"
                export -p >"$state"' bash "$scratch/state" "$1" </dev/null
    )
}

# holds_lines EXPECTED: whether the log is what the page shows.
holds_lines() {
    awk 'FILENAME == ARGV[1] { expected[wanted++] = $0; next }
        { found[lines++] = $0 }
        END {
            for (k = 0; k < wanted; k++) {
                if (expected[k] == "...") {
                    gap = 1
                    continue
                }
                for (line = at + 0; line < lines && found[line] != expected[k] && gap; line++);
                if (line >= lines || found[line] != expected[k]) {
                    print "there is no line \"" expected[k] "\" where it should be, but:"
                    exit 1
                }
                at = line + 1
                gap = 0
            }
            if (!gap && at < lines) {
                print "there is more than the page shows:"
                exit 1
            }
        }' "$1" "$log" || {
        cat "$log"
        return 1
    }
}

run_block() {
    local kind=$1 block=$2 line
    if [[ $kind == sh ]]; then
        run_commands "$block"
        return
    fi
    : >"$scratch/command"
    while IFS= read -r line || [[ $line ]]; do
        if [[ $line == '$ '* ]]; then
            run_console || return
            printf '%s\n' "${line#??}" >"$scratch/command"
            : >"$scratch/expected"
        else
            printf '%s\n' "$line" >>"$scratch/expected"
        fi
    done <"$block"
    run_console
}

run_console() {
    [[ -s $scratch/command ]] || return 0
    run_commands "$scratch/command" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
    holds_lines "$scratch/expected"
}

# Every block of a page, in order.
run_page() {
    local page=$1 block name kind why
    cut_blocks "$page"
    rm -f "$scratch/state"
    for block in "$scratch"/blocks/*; do
        [[ -e $block ]] || continue
        name="$page, line $((10#${block##*/}))"
        read -r kind why <"$block"
        sed -i 1d "$block"
        if [[ $why ]]; then
            skip "$name" "$why"
        elif [[ $without ]]; then
            skip "$name" "$without"
        else
            point "$name" run_block "$kind" "$block"
        fi
    done
}

without=
if sanitized; then
    without='programs would want the flags of the sanitizer'
elif [[ ! -x $benchmarks/flash_gemm ]]; then
    without='built without OpenBLAS, so without flash_gemm'
else
    point 'the complete program compiles' prepare
fi
for page in "${pages[@]}"; do
    run_page "$page"
done

plan
