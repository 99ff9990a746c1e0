# steps.bash: sourced by run.sh: a function for each step, which runs in a process of its own.
#
#   tell TEXT        a line of the summary
#   launch LIMIT NP [MPIRUN OPTION]... PROGRAM [ARGUMENT]...   a job of that many ranks, in that many seconds
#   attempt NAME COMMAND...   tells whether COMMAND fails, and counts
#
# Status 0: the step is well, 3: it is skipped, anything else: it failed. FLASH_TEST_DRIVER in the environment is the
# path of another driver than the system's, with its libraries beside it, for a rehearsal without a GPU: sizes are
# then small.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

root=$FLASH_KIT_ROOT
flash=$root/flash
traces=$root/traces
plugin=$flash/cuda/.libs/flash_cuda.so
bench=$flash/mpi_bench
said=$root/said
failures=0
export FLASH_TEST_DRIVER=${FLASH_TEST_DRIVER:-libcuda.so.1}
small=no
[[ $FLASH_TEST_DRIVER != */* ]] || small=yes

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
for library in libcuda.so.1 "libcudart.so.$cuda_major" "libcublasLt.so.$cuda_major" "libcublas.so.$cuda_major"; do
    find_library "$library" || missing+=("$library")
done
prefix=$root$(<"$root/prefix")
export OPAL_PREFIX=$prefix PMIX_INSTALL_PREFIX=$prefix PATH=$prefix/bin:$root/bin:$PATH
export LD_LIBRARY_PATH=$flash/ompi_coll_flash/.libs:$flash/cuda/.libs:$root/lib$cuda_path$inherited
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# One node, without ssh; no rank is bound to a core that flash's thread would share.
export OMPI_MCA_plm=isolated OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mca_base_component_show_load_errors=0
# Not the node's, which are of another hwloc.
export HWLOC_PLUGINS_PATH=$root/lib/hwloc
components=$root$(<"$root/pkglibdir")
export FLASH_COMPONENT_PATH=$flash/ompi_coll_flash/.libs:$components

job=(--oversubscribe --bind-to none --mca opal_mca_base_component_path "$FLASH_COMPONENT_PATH"
    --mca coll flash --mca coll_flash_on_node yes --mca coll_flash_cuda_plugin "$plugin"
    --mca coll_flash_help_dir "$flash/ompi_coll_flash")
# Ranks that poll keep each other from few cores.
(($(nproc) >= 4)) || job+=(--mca mpi_yield_when_idle 1)

launch() {
    timeout --foreground --kill-after 2 $(($1 * FLASH_KIT_SLOW)) mpirun -n "$2" "${job[@]}" "${@:3}" </dev/null
}

# with_cuda_ucx COMMAND...: with the UCX that knows CUDA.
with_cuda_ucx() {
    LD_LIBRARY_PATH=$root/ucx-cuda/lib:$LD_LIBRARY_PATH "$@"
}

attempt() {
    local status=0
    "${@:2}" >"$said" 2>&1 || status=$?
    cat "$said"
    ((status != 0)) || return 0
    failures=$((failures + 1))
    tell "failed: $1, status $status$( ((status != 124 && status != 137)) || echo ', time was up')"
    return 1
}

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

# ------------------------------------------------------------------ node

tell_gpu() {
    local fields=name,driver_version,mig.mode.current,compute_mode,memory.total,pcie.link.gen.max,pcie.link.width.max
    if timeout 8 nvidia-smi --query-gpu="$fields" --format=csv,noheader >"$said" 2>&1; then
        sed 's/^/GPU, driver, MIG, compute mode, memory, PCIe: /' "$said" | tell_all
        timeout 8 nvidia-smi
        timeout 8 nvidia-smi topo -m
    else
        tell "nvidia-smi does not answer here"
        cat "$said"
    fi
}

# transports COMMAND...: those that ucx_info, run so, tells of.
transports() {
    "$@" -d 2>&1 | tee -a "$root/transports" | awk '/Transport:/ { print $3 }' | sort -u | xargs
}

step_node() {
    local status=0
    tell_all <"$root/description"
    tell "$(nproc) cores, $(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo) GiB, $(uname -sr)"
    tell_gpu || :
    "$flash/tests/gpu/node" 2 >"$said" || status=$?
    tell_all <"$said"
    ((status != 2)) || : >"$root/no-device"
    ((status == 0)) || failures=1
    if ((${#missing[@]})); then
        tell "PROBLEM: CUDA's libraries are not found: ${missing[*]}. Remedy: install CUDA $cuda_major, or name \
its folder in LD_LIBRARY_PATH"
        failures=1
    fi
    tell "UCX: $(transports ucx_info)"
    if [[ -d $root/ucx-cuda ]]; then
        tell "UCX that knows CUDA: $(with_cuda_ucx transports "$root/ucx-cuda/bin/ucx_info")"
    else
        tell "this kit has no UCX that knows CUDA"
    fi
    cat "$root/transports"
    return "$failures"
}

# ------------------------------------------------------------------ smoke

step_smoke() {
    local tests=("flash_device_tests test_device many" "flash_device_tests test_device_stream many"
        "flash_device_tests test_device_both allreduce" "test_device_gemm allgather reduce_scatter")
    local test words
    for test in "${tests[@]}"; do
        read -ra words <<<"$test"
        attempt "$test" launch 14 2 --mca coll_flash_min_bytes 0 "$flash/tests/mpi/${words[0]}" "${words[@]:1}" || :
    done
    tell "$((${#tests[@]} - failures)) of ${#tests[@]} tests pass"
    return "$failures"
}

# ------------------------------------------------------------------ rates

step_rates() {
    local mib=256
    [[ $small == no ]] || mib=4
    attempt rates "$flash/tests/gpu/rates" "$plugin" "$mib" || return
    tell_all <"$said"
}

# ------------------------------------------------------------------ collectives

# milliseconds COLLECTIVE BYTES [MPIRUN OPTION]... -- [ARGUMENT]...: of a call alone.
milliseconds() {
    local collective=$1 bytes=$2 options=()
    shift 2
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    launch 15 2 "${options[@]}" "$bench/flash_$collective" -m "$bytes:$bytes" --seconds=0.4 -x 2 --compute=sleep \
        --no-own "$@" >"$said" 2>&1 || echo "$collective: status $?" >>"$said"
    cat "$said" >>"$root/tables"
    # Wrong results, or none, leave no figure.
    awk '/WRONG/ { exit } /^[0-9]/ { printf "%.2f", $4 / 1000; found = 1; exit }
        END { if (!found) printf "failed" }' "$said"
}

# A row: buffers of the host; of a device, staged; of a device, by the UCX that knows CUDA.
collective_row() {
    local collective=$1 bytes=$2 segment=$3 host staged direct=-
    host=$(milliseconds "$collective" "$bytes" --mca coll_flash_segment_bytes "$segment" --)
    staged=$(milliseconds "$collective" "$bytes" --mca coll_flash_segment_bytes "$segment" -- -d cuda)
    [[ ! -d $root/ucx-cuda ]] || direct=$(with_cuda_ucx milliseconds "$collective" "$bytes" --mca \
        coll_flash_segment_bytes "$segment" -- -d cuda)
    tell "$(printf '%-28s %5s %8s %10s %10s %12s' \
        "$collective" "$bytes" $((segment >> 10)) "$host" "$staged" "$direct")"
    [[ " $host $staged $direct " != *' failed '* ]] || failures=$((failures + 1))
}

step_collectives() {
    local segment size=64M
    [[ $small == no ]] || size=1M
    : >"$root/tables"
    tell "ms of a call, 2 ranks         bytes  seg. KiB   T(host)  T(device)  by CUDA's UCX"
    for segment in $((256 << 10)) $((1 << 20)) $((4 << 20)); do
        collective_row iallgather "$size" "$segment"
        collective_row ireduce_scatter_block "$size" "$segment"
    done
    cat "$root/tables"
    ((failures == 0))
}

# ------------------------------------------------------------------ efficiency

# efficiency NAME CALL TYPE M N K PIECES [MPIRUN OPTION]...: the rows of that shape.
efficiency() {
    local name=$1 call=$2 type=$3 shape=(-m "$4" -n "$5" -k "$6") pieces=$7 iterations=15
    if [[ $small == yes ]]; then
        shape=(-m 64 -n 48 -k 32) iterations=2
    fi
    attempt "$name" launch 55 2 "${@:8}" "$bench/flash_cublas" -c "$call" -t "$type" "${shape[@]}" -p "$pieces" \
        -i "$iterations" || return 0
    grep '^AG \|^RS ' "$said" | sed "s/  results agree\$//; s/\$/ $name/" | tell_all || :
}

step_efficiency() {
    mkdir -p "$traces"
    tell "ms    m x   n x   k       p   T_gemm   T_comm  T_apart   T_tog.      E  bound E/bound"
    efficiency staged allgather fp32 8192 8192 4096 1,8,16
    efficiency staged reduce_scatter fp32 8192 4096 16384 8,16
    efficiency staged allgather bf16 8192 49152 12288 8,16
    efficiency '1 MiB' allgather fp32 8192 8192 4096 8 --mca coll_flash_segment_bytes 1048576
    [[ ! -d $root/ucx-cuda ]] || with_cuda_ucx efficiency "CUDA's UCX" allgather fp32 8192 8192 4096 8
    efficiency traced allgather fp32 8192 8192 4096 8 --mca coll_flash_trace "$traces/allgather"
    ((failures == 0))
}

# ------------------------------------------------------------------ behind

step_behind() {
    local arguments=()
    [[ $small == no ]] || arguments=(65536 20)
    attempt behind launch 15 2 "$bench/flash_behind" "${arguments[@]}" || return
    grep 'allgather of\|^behind' "$said" | tell_all || :
}

# ------------------------------------------------------------------ mps

# The figures that a shared GPU makes a difference to.
shared_figures() {
    local size=64M
    [[ $small == no ]] || size=1M
    : >"$root/tables"
    tell "$1: allgather of $size on the device: $(milliseconds iallgather "$size" -- -d cuda) ms"
    efficiency "$1" allgather fp32 8192 8192 4096 8
}

step_mps() {
    local control
    if ! control=$(tool nvidia-cuda-mps-control); then
        tell "there is no nvidia-cuda-mps-control here"
        return 3
    fi
    shared_figures 'without MPS'
    export CUDA_MPS_PIPE_DIRECTORY=$root/mps CUDA_MPS_LOG_DIRECTORY=$root/mps
    mkdir -p "$root/mps"
    # In the foreground, so that it ends with the step, however the step ends.
    LD_LIBRARY_PATH=${inherited#:} "$control" -f &
    sleep 1
    if echo get_server_list | timeout 5 "$control"; then
        shared_figures 'with MPS'
    else
        tell "the daemon of MPS does not start"
        failures=$((failures + 1))
    fi
    echo quit | timeout 5 "$control" || :
    cat "$root"/mps/*.log || :
    ((failures == 0))
}

# ------------------------------------------------------------------ sanitizer

# Errors of calls are none of its business: asking of which kind an address is is answered by one.
step_sanitizer() {
    local sanitizer
    if ! sanitizer=$(tool compute-sanitizer); then
        tell "there is no compute-sanitizer here"
        return 3
    fi
    attempt compute-sanitizer launch "$((FLASH_KIT_LIMIT / FLASH_KIT_SLOW - 3))" 2 \
        --mca coll_flash_min_bytes 0 "$sanitizer" --error-exitcode 9 --print-limit 20 --report-api-errors no \
        "$flash/tests/mpi/flash_device_tests" test_device_stream many || :
    grep 'ERROR SUMMARY' "$said" | sed 's/^=* *//' | tell_all || tell "compute-sanitizer gives no summary"
    ((failures == 0))
}

# ------------------------------------------------------------------ device

# The scripts of tests/mpi, which find sources and build in one folder.
step_device() {
    local script status limit=$((FLASH_KIT_LIMIT - 3)) begun=$SECONDS good bad
    export top_srcdir=$flash top_builddir=$flash MPIRUN=mpirun OMPI_INFO=ompi_info FLASH_TEST_TIMEOUT=60
    : >"$root/points"
    for script in device.sh device_paths.sh device_layers.sh; do
        status=0
        ((limit - (SECONDS - begun) > 0)) || break
        timeout --kill-after 2 $((limit - (SECONDS - begun))) bash "$flash/tests/mpi/$script" 2>&1 |
            tee -a "$root/points" || status=$?
        ((status != 124 && status != 137)) || tell "$script: stopped when the time was up"
        ((status == 0 || status == 124 || status == 137)) || failures=1
    done
    good=$(grep -c '^ok ' "$root/points" || :)
    bad=$(grep -c '^not ok ' "$root/points" || :)
    tell "$good points pass, $bad fail"
    grep '^not ok ' "$root/points" | sed -n "s, coll_flash_cuda_plugin $plugin,,; 1,5p" | tell_all || :
    ((failures == 0 && bad == 0 && good > 0))
}
