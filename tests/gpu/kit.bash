# kit.bash: sourced by run.sh before the steps: where the node's CUDA and the kit's MPI are, jobs, and what is told.
#
#   tell TEXT        a line of the summary
#   launch LIMIT NP [MPIRUN OPTION]... PROGRAM [ARGUMENT]...   a job of that many ranks, in that many seconds
#   attempt NAME COMMAND...   tells whether COMMAND fails, and counts. What it prints is in "$said", and at once in the
#                             details; lines that match the pattern "$rows" are lines of the summary, with "$label"
#
# FLASH_TEST_DRIVER in the environment is the path of another driver than the system's, with its libraries beside it,
# for a rehearsal without a GPU: sizes are then small.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034 # variables of the steps

root=$FLASH_KIT_ROOT
flash=$root/flash
traces=$root/traces
plugin=$flash/cuda/.libs/flash_cuda.so
bench=$flash/mpi_bench
said=$root/said
failures=0
export FLASH_TEST_DRIVER=${FLASH_TEST_DRIVER:-libcuda.so.1}
rows='' label=''
staged=(--mca coll_flash_cuda_gpudirect no)
direct=(--mca coll_flash_cuda_gpudirect yes)
small=no large=64M
[[ $FLASH_TEST_DRIVER != */* ]] || small=yes large=1M

tell() {
    printf '%s\n' "$1" | tee -a "$FLASH_KIT_SUMMARY"
}

# Each line of what a command prints.
tell_all() {
    local line
    while IFS= read -r line; do
        tell "$line"
    done
}

# ------------------------------------------------------------------ the node's CUDA, and the kit's MPI

# Folders that may have CUDA's libraries: the driver's, the toolkit's, those of Python's packages.
cuda_folders() {
    local place
    if [[ $small == yes ]]; then
        dirname "$FLASH_TEST_DRIVER"
        return
    fi
    printf '%s\n' /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda*/lib64 \
        /usr/local/cuda*/targets/x86_64-linux/lib
    for place in "${CUDA_HOME:-}" "${CUDA_PATH:-}"; do
        [[ ! $place ]] || echo "$place/lib64"
    done
    tr : '\n' <<<"$inherited"
    { python3 -c 'import sys; print("\n".join(sys.path))' 2>/dev/null || :; } | while IFS= read -r place; do
        [[ ! -d $place/nvidia ]] || printf '%s\n' "$place"/nvidia/*/lib
    done
}

# Those of these folders that have such a library; none where the linker finds it anyway.
folders_with() {
    local folder
    while IFS= read -r folder; do
        [[ ! -e $folder/$1 ]] || echo "$folder"
    done < <(cuda_folders)
}

# find_library NAME: the first folder with that library is where programs find it; false: there is none.
find_library() {
    local folder
    if [[ $small == no ]] && /sbin/ldconfig -p 2>/dev/null | grep -F "$1 " >/dev/null; then
        return
    fi
    folder=$(folders_with "$1" | sed -n 1p)
    [[ $folder ]] || return 1
    [[ :$cuda_path: == *:$folder:* ]] || cuda_path+=:$folder
}

inherited=${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
cuda_path=
cuda_major=$(<"$root/cuda-major")
missing=()
find_library libcuda.so.1 || : # the driver's, of which the program node tells
for library in "libcudart.so.$cuda_major" "libcublasLt.so.$cuda_major" "libcublas.so.$cuda_major"; do
    find_library "$library" || missing+=("$library")
done
# UCX's, which flash does without.
find_library libnvidia-ml.so.1 || :
cuda_ucx=$root/ucx-cuda/libucx
prefix=$root$(<"$root/prefix")
# PMIx has a folder of its own, where Debian has put it.
export OPAL_PREFIX=$prefix PMIX_DESTDIR=$root PATH=$prefix/bin:$root/bin:$PATH
export LD_LIBRARY_PATH=$flash/ompi_coll_flash/.libs:$flash/cuda/.libs:$root/lib$cuda_path$inherited
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# One node, without ssh; no rank is bound to a core that flash's thread would share.
export OMPI_MCA_plm=isolated OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mca_base_component_show_load_errors=0
# Not the node's, which are of another hwloc.
export HWLOC_PLUGINS_PATH=$root/lib/hwloc
components=$root$(<"$root/pkglibdir")
export FLASH_COMPONENT_PATH=$flash/ompi_coll_flash/.libs:$components

# Where the toolkit's tools are.
tool() {
    local place
    for place in "$(command -v "$1" || :)" /usr/local/cuda*/bin/"$1" /usr/local/cuda*/compute-sanitizer/"$1" \
        /usr/bin/"$1"; do
        if [[ $place && -x $place ]]; then
            echo "$place"
            return
        fi
    done
    return 1
}

# ------------------------------------------------------------------ jobs

job=(--oversubscribe --bind-to none --mca opal_mca_base_component_path "$FLASH_COMPONENT_PATH"
    --mca coll flash --mca coll_flash_on_node yes --mca coll_flash_cuda_plugin "$plugin"
    --mca coll_flash_help_dir "$flash/ompi_coll_flash")
# Ranks that poll keep each other from few cores.
(($(nproc) >= 4)) || job+=(--mca mpi_yield_when_idle 1)

# Status 124: the time was up, and nothing else.
launch() {
    local limit=$(($1 * FLASH_KIT_SLOW)) begun=$SECONDS status=0
    timeout --foreground --kill-after 2 "$limit" mpirun -n "$2" "${job[@]}" "${@:3}" </dev/null || status=$?
    if ((status == 124 || status == 137)); then
        status=$((SECONDS - begun >= limit ? 124 : status == 124 ? 1 : 137))
    fi
    return "$status"
}

# Prints its input, line by line, as it comes: a step that is stopped keeps what there was.
show() {
    local line
    while IFS= read -r line || [[ $line ]]; do
        printf '%s\n' "$line" >&3
        printf '%s\n' "$line"
        if [[ $rows && $line =~ $rows ]]; then
            printf '%s\n' "${line%  results agree}$label" >>"$FLASH_KIT_SUMMARY"
        fi
    done 3>"$said"
}

attempt() {
    local status=0
    "${@:2}" 2>&1 | show || status=$?
    ((status != 0)) || return 0
    failures=$((failures + 1))
    tell "failed: $1, status $status$( ((status != 124)) || echo ', time was up')"
    return 1
}

# ------------------------------------------------------------------ the UCX that knows CUDA

# with_cuda_ucx COMMAND...: with the UCX that knows CUDA.
with_cuda_ucx() {
    LD_LIBRARY_PATH=$cuda_ucx/lib:$LD_LIBRARY_PATH "$@"
}

# transports COMMAND...: those that ucx_info, run so, tells of.
transports() {
    "$@" -d 2>&1 | tee -a "$root/transports" | awk '/Transport:/ { print $3 }' | sort -u | xargs
}

# Of the UCX that knows CUDA, which is asked once.
cuda_transports() {
    [[ -e $root/cuda-transports ]] || with_cuda_ucx transports "$cuda_ucx/bin/ucx_info" >"$root/cuda-transports"
    cat "$root/cuda-transports"
}

# by_ucx PROGRAM [ARGUMENT]...: whether the UCX that knows CUDA moves the device's memory in that program, as its
# transports and flash itself tell. A figure that is called UCX's is none otherwise.
by_ucx() {
    local program=$1
    if [[ ! -e $root/by-ucx-$program ]]; then
        echo no >"$root/by-ucx-$program"
        if [[ ! -d $cuda_ucx ]]; then
            return 1
        elif [[ " $(cuda_transports) " != *' cuda_copy '* ]]; then
            tell "no figures of $program by CUDA's UCX: it has no transport cuda_copy here"
        elif ! with_cuda_ucx attempt "$program by CUDA's UCX" launch 12 2 "${direct[@]}" --mca coll_flash_verbose 2 \
            "$bench/$program" "${@:2}" -i 1 -x 0; then
            :
        elif ! grep "sent and received by UCX from the device's memory" "$said" >/dev/null ||
            grep 'staged through pinned memory' "$said" >/dev/null; then
            tell "no figures of $program by CUDA's UCX: flash does not tell that UCX moves the device's memory"
        else
            echo yes >"$root/by-ucx-$program"
        fi
    fi
    [[ $(<"$root/by-ucx-$program") == yes ]]
}
