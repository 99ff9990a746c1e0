#!/usr/bin/env bash
# What `make install` leaves: programs that are built against it, by CMake and by pkg-config, and
# run with its component; the symbols of the library; and that `make uninstall` takes all of it away.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"

no_fortran=${FLASH_NO_FORTRAN:-} # why the module is not built, if it is not
root=$scratch/root # a moved tree: nothing in it may rely on the prefix
make_quietly() {
    ${MAKE:-make} -s -C "$top_builddir" "$@" "DESTDIR=$root" TESTS=
}
point 'make install' make_quietly install
prefix=$root$(sed -n 's/^prefix=//p' "$top_builddir/mpix_flash.pc")
libdir=$(dirname "$(find "$root" -name libmpix_flash.so -print -quit)")
component=$(dirname "$(find "$root" -name mca_coll_flash.so -print -quit)")
FLASH_COMPONENT_PATH=$component:${FLASH_COMPONENT_PATH#*:}
options -x "LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

if ! command -v cmake >/dev/null; then
    skip 'examples by CMake' 'no cmake (Debian: cmake)'
elif sanitized; then
    skip 'examples by CMake' 'they would want the flags of the sanitizer'
else
    build_by_cmake() {
        cmake -S "$top_srcdir/examples" -B "$scratch/examples" -DCMAKE_PREFIX_PATH="$prefix" \
            -DCMAKE_C_FLAGS='-Wall -Wextra -Werror' -DMPI_C_COMPILER="$(command -v "${MPICC:-mpicc}")" \
            -DMPI_Fortran_COMPILER="$(command -v "${MPIFC:-mpifort}")" &&
            cmake --build "$scratch/examples" --parallel 2
    }
    too_new() {
        mkdir "$scratch/new" &&
            sed 's/mpix_flash 0.1/mpix_flash 99.0/' "$top_srcdir/examples/CMakeLists.txt" \
                >"$scratch/new/CMakeLists.txt" &&
            cp "$top_srcdir"/examples/*.c "$scratch/new" &&
            ! cmake -S "$scratch/new" -B "$scratch/new/build" -DCMAKE_PREFIX_PATH="$prefix" \
                >"$log" 2>&1 && holds 1 'requested version "99.0"'
    }
    point 'examples by CMake' build_by_cmake
    point 'CMake: a version that is not there' too_new
    example() { # PROGRAM NP
        point "np $2 $1" run "$2" -- "$scratch/examples/$1"
    }
    example tensor_parallel_mlp 3
    example summa 4
    example fft_transpose 4
    for np in 1 2 4 5; do
        long example tensor_parallel_mlp "$np"
    done
    long example summa 1
    long example summa 9
    for np in 1 2 8; do
        long example fft_transpose "$np"
    done
    if [[ ! $no_fortran ]]; then
        example gather_gemm 2
        long example gather_gemm 1
        long example gather_gemm 4
    fi
    point 'the examples are served by flash' \
        says 1 '4 ranks, by flash' 4 -- "$scratch/examples/tensor_parallel_mlp"
    select_coll ^flash
    point 'and give the same without' \
        says 1 '4 ranks, without flash' 4 -- "$scratch/examples/tensor_parallel_mlp"
    select_coll flash
fi

# As a program in Fortran is built without CMake.
build_by_pkg_config() {
    local flags=()
    read -ra flags < <(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$libdir/pkgconfig \
        pkg-config --cflags --libs mpix_flash_f08) &&
        (cd "$scratch" &&
            "${MPIFC:-mpifort}" -o gather_gemm "$top_srcdir/examples/gather_gemm.f90" "${flags[@]}") &&
        says 1 '4 ranks, by flash: error' 4 -- "$scratch/gather_gemm"
}
if [[ $no_fortran ]]; then
    skip 'Fortran by pkg-config' "configure: $no_fortran"
else
    point 'Fortran by pkg-config' build_by_pkg_config
    select_coll ^flash
    point 'and the same without flash' \
        says 1 '4 ranks, without flash: error' 4 -- "$scratch/gather_gemm"
    select_coll flash
fi

# of_moved_tree COMPONENTS [ARGUMENT]...: what ompi_info says. The library is not where it expects it.
of_moved_tree() {
    LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
        OMPI_MCA_opal_mca_base_component_path=$1 "$OMPI_INFO" "${@:2}"
}

# The module's settings, of the moved tree, as a shell would have them: what they name is there, and
# Open MPI finds the component by them alone.
loads() {
    local module name value
    module=$(find "$root" -path '*/modulefiles/mpix_flash/*' -type f)
    cat >"$scratch/module.tcl" <<'EOF'
foreach silent {module-whatis conflict} {
    proc $silent {args} {}
}
proc prepend-path {name value} {
    puts "$name $value"
}
source [lindex $argv 0]
EOF
    tclsh "$scratch/module.tcl" "$module" >"$scratch/settings" || return 1
    grep '^LD_LIBRARY_PATH ' "$scratch/settings" || return 1
    while read -r name value; do
        [[ ! -e $root$value && ! -e $value ]] || continue
        echo "$name: there is no $root$value"
        return 1
    done <"$scratch/settings"
    # Where the component is in Open MPI's own folder, nothing is to be set for it.
    grep -q '^OMPI_MCA' "$scratch/settings" || return 0
    value=$(sed -n 's/^OMPI_MCA_opal_mca_base_component_path //p' "$scratch/settings" | tail -n 1)
    of_moved_tree "$root$value" --param coll flash | grep 'coll: flash'
}
if sanitized; then
    skip 'the environment module' 'ompi_info cannot load a component with a sanitizer'
elif command -v tclsh >/dev/null; then
    point 'the environment module' loads
else
    skip 'the environment module' 'no tclsh (Debian: tcl)'
fi

# A site's tools see these, and no others.
exports() {
    {
        sed -n 's/^int \(MPIX_[A-Za-z_]*\)(.*/\1/p' "$top_srcdir/ompi_coll_flash/mpix_flash.h"
        sed -n 's/^ *\(mca_coll_flash_[a-z_]*\);$/\1/p' "$top_srcdir/ompi_coll_flash/libmpix_flash.map"
    } | sort >"$scratch/declared"
    nm -D --defined-only "$libdir/libmpix_flash.so" | awk '$2 != "A" { print $3 }' |
        sed 's/@.*//' | sort | diff "$scratch/declared" -
}
point 'the library exports what its header declares, and what the component needs' exports

# Fortran's: what the module gives names in C to, and what the compiler made of the module.
exports_of_module() {
    sed -n 's/.*bind(C, name="\(mpix_[a-z0-9_]*\)").*/\1/p' "$top_srcdir/fortran/mpix_flash_f08.f90" |
        sort >"$scratch/declared"
    nm -D --defined-only "$libdir/libmpix_flash_f08.so" | awk '$2 != "A" { print $3 }' |
        sed 's/@.*//' | grep -v '^__mpix_flash_f08_MOD_' | sort | diff "$scratch/declared" -
}
if [[ ! $no_fortran ]]; then
    point 'so does the one for Fortran' exports_of_module
fi
no_fortran_inside() {
    ! readelf -d "$libdir/libmpix_flash.so" | grep -E 'NEEDED.*(fortran|usempi|mpifh)'
}
point 'the library needs nothing of Fortran' no_fortran_inside

# Each function, and each parameter that flash has, is told of.
has_pages() {
    local name mandir missing=0
    mandir=$(dirname "$(find "$root" -name mpix_flash.3 -print -quit)")
    while read -r name; do
        grep -q "^int $name(" "$mandir/$name.3" && grep -q '^.SH DESCRIPTION' "$mandir/$name.3" &&
            continue
        echo "no page of $name"
        missing=1
    done < <(find "$root" -name 'mpix_flash*.h' -exec sed -n 's/^int \(MPIX_[A-Za-z_]*\)(.*/\1/p' {} +)
    of_moved_tree "$FLASH_COMPONENT_PATH" --param coll flash --level 9 --parsable |
        sed -n 's/.*param:\(coll_flash_[a-z_]*\):value:.*/\1/p' |
        sort >"$scratch/parameters"
    sed -n '/^.SH PARAMETERS/,/^.SH COUNTERS/s/^.B \(coll_flash_\)/\1/p' \
        "$mandir/../man7/coll_flash.7" | sort | diff "$scratch/parameters" - || missing=1
    [[ -s $scratch/parameters ]] && ((missing == 0))
}
if sanitized; then
    skip 'manual pages' 'ompi_info cannot load a component with a sanitizer'
else
    point 'manual pages' has_pages
fi

# What each program tells of itself, in a file of its own. Two take no options, and say how they are called.
ask_programs() {
    local program
    for program in "$prefix"/bin/*; do
        while (($(jobs -pr | wc -l) >= 4)); do
            wait -n || :
        done
        run 1 -- "$program" --help >"$scratch/help.${program##*/}" 2>&1 &
    done
    wait || :
}

# Each program, and each option that it tells of.
programs_have_pages() {
    local program page option missing=0
    ask_programs
    for program in "$prefix"/bin/*; do
        page=$(find "$root" -name "${program##*/}.1")
        [[ $page ]] || {
            echo "no page of ${program##*/}"
            missing=1
            continue
        }
        while read -r option; do
            sed 's/\\-/-/g' "$page" | grep -q -e "$option" && continue
            echo "$page does not tell of $option"
            missing=1
        done < <(grep -Eo -e '--[a-z][a-z-]+' "$scratch/help.${program##*/}" | grep -v -x -e --help | sort -u)
    done
    ((missing == 0))
}
point 'manual pages of the programs' programs_have_pages

# What packages are made with is what configure has.
packages_know_configure() {
    local option unknown=0
    "$top_srcdir/configure" --help >"$scratch/help"
    while read -r option; do
        grep -Eq -e "--((with|without|enable|disable)-)?$option\b" "$scratch/help" && continue
        echo "configure has no $option"
        unknown=1
    done < <(sed -n -e '/dh_auto_configure/,/[^\\]$/p' "$top_srcdir/packaging/debian/rules" |
        cat - "$top_srcdir/packaging/spack/packages/openmpi-coll-flash/package.py" |
        grep -Eo -e '--(with|without|enable|disable|doc)[a-z-]+|enable_or_disable\("[a-z]+' |
        sed -E 's/^--((with|without|enable|disable)-)?//; s/.*"//' | sort -u | tee "$scratch/options")
    [[ -s $scratch/options ]] && ((unknown == 0))
}
point 'packages give configure options that it has' packages_know_configure

uninstalls() {
    make_quietly uninstall || return 1
    find "$root" -not -type d
    [[ -z $(find "$root" -not -type d -print -quit) ]] && [[ ! -e $documents ]]
}
documents=$(find "$root" -name README.md -printf '%h' -quit)
point 'make uninstall leaves no file' uninstalls

plan
