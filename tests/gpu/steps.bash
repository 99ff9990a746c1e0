# steps.bash: sourced by run.sh: a function for each step, which runs in a process of its own.
#
#   tell TEXT        a line of the summary
#   launch LIMIT NP [MPIRUN OPTION]... PROGRAM [ARGUMENT]...   a job of that many ranks, in that many seconds
#   attempt NAME COMMAND...   tells whether COMMAND fails, and counts. What it prints is in "$said", and at once in the
#                             details; lines that match the pattern "$rows" are lines of the summary, with "$label"
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

# with_cuda_ucx COMMAND...: with the UCX that knows CUDA.
with_cuda_ucx() {
    LD_LIBRARY_PATH=$cuda_ucx/lib:$LD_LIBRARY_PATH "$@"
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

# Of the UCX that knows CUDA, which is asked once.
cuda_transports() {
    [[ -e $root/cuda-transports ]] || with_cuda_ucx transports "$cuda_ucx/bin/ucx_info" >"$root/cuda-transports"
    cat "$root/cuda-transports"
}

# What a job takes before and after it does anything.
tell_job() {
    local begun
    begun=$(date +%s%N)
    attempt 'a job that does nothing' launch 10 2 "$bench/flash_iallgather" --help || return
    tell "$(awk "BEGIN { printf \"a job of 2 ranks that does nothing: %.1f s\", ($(date +%s%N) - $begun) / 1e9 }")"
}

# What may hang comes last.
step_node() {
    local status=0
    tell_all <"$root/description"
    tell "$(nproc) cores, $(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo) GiB, $(uname -sr)"
    "$flash/tests/gpu/node" 2 >"$said" || status=$?
    tell_all <"$said"
    ((status != 2)) || : >"$root/no-device"
    ((status == 0)) || failures=$((failures + 1))
    if ((${#missing[@]})); then
        tell "PROBLEM: CUDA's libraries are not found: ${missing[*]}. Remedy: install CUDA $cuda_major, or name \
its folder in LD_LIBRARY_PATH"
        failures=$((failures + 1))
    fi
    tell "UCX: $(transports ucx_info)"
    if [[ -d $cuda_ucx ]]; then
        tell "UCX that knows CUDA: $(cuda_transports)"
    else
        tell "this kit has no UCX that knows CUDA"
    fi
    cat "$root/transports"
    tell_job || :
    tell_gpu || :
    ((failures == 0))
}

# ------------------------------------------------------------------ smoke

step_smoke() {
    local tests=("flash_device_tests test_device many" "flash_device_tests test_device_stream many"
        "flash_device_tests test_device_two_callbacks allreduce" "test_device_gemm allgather reduce_scatter")
    local test words
    for test in "${tests[@]}"; do
        read -ra words <<<"$test"
        attempt "$test" launch 14 2 --mca coll_flash_algorithm ring "$flash/tests/mpi/${words[0]}" "${words[@]:1}" || :
    done
    tell "$((${#tests[@]} - failures)) of ${#tests[@]} tests pass"
    ((failures == 0))
}

# ------------------------------------------------------------------ direct

# A program before others: UCX moves the device's memory on ranks of odd numbers; on the others it is staged.
# shellcheck disable=SC2016 # the ranks' shells expand that
on_odd_ranks=(bash -c '((OMPI_COMM_WORLD_RANK % 2)) && direct=yes || direct=no
    OMPI_MCA_coll_flash_cuda_gpudirect=$direct exec "$@"' on_odd_ranks)

step_direct() {
    local tests=("test_device allgather reduce_scatter many users_operation"
        "test_device_stream allgather reduce_scatter many own" "test_device_two_callbacks allreduce alltoall"
        "test_device_errors gaps freed streams")
    local program=$flash/tests/mpi/flash_device_tests test np words count=0
    if ! by_ucx flash_iallgather -d cuda -m 1M:1M --compute=sleep; then
        tell "there is no UCX here that knows CUDA and moves the device's memory"
        return 3
    fi
    for np in 2 3; do
        for test in "${tests[@]}"; do
            read -ra words <<<"$test"
            count=$((count + 2))
            with_cuda_ucx attempt "by UCX, np $np: $test" launch 14 "$np" --mca coll_flash_algorithm ring "${direct[@]}" \
                "$program" "${words[@]}" || :
            with_cuda_ucx attempt "by UCX on odd ranks, np $np: $test" launch 14 "$np" --mca coll_flash_algorithm ring \
                "${on_odd_ranks[@]}" "$program" "${words[@]}" || :
        done
    done
    tell "$((count - failures)) of $count tests pass"
    ((failures == 0))
}

# ------------------------------------------------------------------ rates

step_rates() {
    local mib=256
    [[ $small == no ]] || mib=4
    rows=. attempt rates "$flash/tests/gpu/rates" "$plugin" "$mib"
}

# ------------------------------------------------------------------ collectives

segments=0,262144,1048576,4194304

# What stands above the columns.
tell_segments() {
    tell "$(printf '%-48s %9s %9s %9s %9s' "ms, 2 ranks, $large; segments:" 'default' '256 KiB' '1 MiB' '4 MiB')"
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

# milliseconds FILE COLUMN: the figures that a benchmark has printed, one for each of the segments.
milliseconds() {
    awk -v segments="$segments" -v column="$2" 'BEGIN { left = split(segments, words, ",") }
        /^[0-9]/ { printf " %9s", /WRONG/ ? "WRONG" : sprintf("%.2f", $column / 1000); left-- }
        END { while (left-- > 0) printf " %9s", "-" }' "$1"
}

# collective_row LABEL COLLECTIVE BYTES [MPIRUN OPTION]... -- [ARGUMENT]...: a call alone, with each of the segments;
# of those that had no time, none.
collective_row() {
    local name="$2, $1" program=$bench/flash_$2 bytes=$3 options=()
    shift 3
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    attempt "$name" launch 25 2 "${options[@]}" "$program" -m "$bytes:$bytes" --segment="$segments" --seconds=0.2 -x 0 \
        --compute=sleep "${@:2}" || :
    tell "$(printf '%-48s' "$name")$(milliseconds "$said" 4)"
    # Those calls do not take a device's memory.
    [[ $name != *'(host)' ]] || tell "$(printf '%-48s' "${name%,*}, Open MPI's own")$(milliseconds "$said" 10)"
}

step_collectives() {
    local collective size=$large
    tell_segments
    for collective in iallgather ireduce_scatter_block; do
        collective_row 'T(host)' "$collective" "$size" --
        collective_row 'T(device), staged' "$collective" "$size" "${staged[@]}" -- -d cuda
        if by_ucx "flash_$collective" -d cuda -m "$size:$size" --compute=sleep; then
            with_cuda_ucx collective_row "T(device), by CUDA's UCX" "$collective" "$size" "${direct[@]}" -- -d cuda
        else
            tell "$(printf '%-48s %9s %9s %9s %9s' "$collective, T(device), by CUDA's UCX" - - - -)"
        fi
    done
    ((failures == 0))
}

# ------------------------------------------------------------------ efficiency

# efficiency NAME CALL TYPE M N K PIECES [MPIRUN OPTION]...: the rows of that shape.
efficiency() {
    local name=$1 call=$2 type=$3 shape=(-m "$4" -n "$5" -k "$6") pieces=$7 iterations=15
    if [[ $small == yes ]]; then
        shape=(-m 64 -n 48 -k 32) iterations=2
    fi
    rows='^(AG|RS) ' label=" $name" attempt "$name" launch 55 2 "${@:8}" "$bench/flash_cublas" -c "$call" -t "$type" \
        "${shape[@]}" -p "$pieces" -i "$iterations" || :
}

step_efficiency() {
    mkdir -p "$traces"
    tell "ms    m x   n x   k       p   T_gemm  T_split   T_comm  T_apart   T_tog. IQR%      E  bound E/bound"
    efficiency staged allgather fp32 8192 8192 4096 1,8,16 "${staged[@]}"
    efficiency staged reduce_scatter fp32 8192 4096 16384 8,16 "${staged[@]}"
    efficiency staged allgather bf16 8192 49152 12288 8,16 "${staged[@]}"
    efficiency '1 MiB' allgather fp32 8192 8192 4096 8 "${staged[@]}" --mca coll_flash_segment_bytes 1048576
    if by_ucx flash_cublas -c allgather -m 512 -n 512 -k 512; then
        with_cuda_ucx efficiency "CUDA's UCX" allgather fp32 8192 8192 4096 8 "${direct[@]}"
        with_cuda_ucx efficiency "CUDA's UCX" reduce_scatter fp32 8192 4096 16384 8 "${direct[@]}"
        with_cuda_ucx efficiency "CUDA's UCX" allgather bf16 8192 49152 12288 8 "${direct[@]}"
    else
        tell "no efficiency by CUDA's UCX"
    fi
    efficiency traced allgather fp32 8192 8192 4096 8 "${staged[@]}" --mca coll_flash_trace "$traces/allgather"
    ((failures == 0))
}

# ------------------------------------------------------------------ waits

step_waits() {
    local status=0
    "$flash/tests/gpu/waits" 2>&1 | tee "$said" || status=$?
    tell_all <"$said" >/dev/null
    return "$status"
}

# ------------------------------------------------------------------ behind

step_behind() {
    local arguments=()
    [[ $small == no ]] || arguments=(65536 20)
    rows='allgather of|^behind' attempt behind launch 15 2 "$bench/flash_behind" "${arguments[@]}"
}

# ------------------------------------------------------------------ mps

# The figures that a shared GPU makes a difference to.
shared_figures() {
    local size=$large
    collective_row "$1, staged" iallgather "$size" "${staged[@]}" -- -d cuda
    if by_ucx flash_iallgather -d cuda -m "$size:$size" --compute=sleep; then
        with_cuda_ucx collective_row "$1, by CUDA's UCX" iallgather "$size" "${direct[@]}" -- -d cuda
    fi
    efficiency "$1" allgather fp32 8192 8192 4096 8 "${staged[@]}"
}

# starts CONTROL: whether the daemon answers within a few seconds.
starts() {
    local turn
    for ((turn = 0; turn < 5; turn++)); do
        sleep 1
        ! echo get_server_list | timeout 5 "$1" || return 0
    done
    return 1
}

step_mps() {
    local control path=$cuda_path$inherited
    if ! control=$(tool nvidia-cuda-mps-control); then
        tell "there is no nvidia-cuda-mps-control here"
        return 3
    fi
    tell_segments
    shared_figures 'without MPS'
    export CUDA_MPS_PIPE_DIRECTORY=$root/mps CUDA_MPS_LOG_DIRECTORY=$root/mps
    mkdir -p "$root/mps"
    # In the foreground, so that it ends with the step, however the step ends.
    LD_LIBRARY_PATH=${path#:} "$control" -f &
    if starts "$control"; then
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

# No errors of calls: asking of which kind an address is is answered by one.
step_sanitizer() {
    local sanitizer limit=$((FLASH_KIT_LIMIT / FLASH_KIT_SLOW - 3))
    if ! sanitizer=$(tool compute-sanitizer); then
        tell "there is no compute-sanitizer here"
        return 3
    fi
    attempt compute-sanitizer launch $((limit > 1 ? limit : 1)) 2 \
        --mca coll_flash_algorithm ring "$sanitizer" --error-exitcode 9 --print-limit 20 --report-api-errors no \
        "$flash/tests/mpi/flash_device_tests" test_device_stream many || :
    grep 'ERROR SUMMARY' "$said" | sed 's/^=* *//' | tell_all || tell "compute-sanitizer gives no summary"
    ((failures == 0))
}

# ------------------------------------------------------------------ device

stopped=no

# run_points NAME COMMAND...: until the time is up, which is no failure. False: it has not come to its end.
run_points() {
    local status=0 left=$((FLASH_KIT_LIMIT - 5 - SECONDS)) begun=$SECONDS
    if ((left <= 0)); then
        stopped=yes
        return 1
    fi
    timeout --kill-after 2 "$left" "${@:2}" 2>&1 </dev/null | tee -a "$root/points" || status=$?
    ((status != 0)) || return 0
    if ((SECONDS - begun >= left)); then
        stopped=yes
        tell "$1: stopped when the time was up"
    else
        failures=$((failures + 1))
        tell "failed: $1, status $status"
    fi
    return 1
}

# Points as the scripts of tests/mpi have them: first of devices' memory alone and of longest blocks, which are what
# such a node is for.
step_device() {
    local operation script good bad
    export top_srcdir=$flash top_builddir=$flash MPIRUN=mpirun OMPI_INFO=ompi_info FLASH_TEST_TIMEOUT=60
    export FLASH_TEST_TIER=all
    : >"$root/points"
    for operation in allgather reduce_scatter; do
        if run_points "all places, all lengths: $operation" mpirun -n 2 "${job[@]}" --mca coll_flash_algorithm ring \
            "$flash/tests/mpi/flash_device_tests" test_device "$operation"; then
            echo "ok - all places, all lengths: $operation" | tee -a "$root/points"
        fi
    done
    for script in device.sh device_scratch.sh device_paths.sh device_layers.sh; do
        run_points "$script" bash "$flash/tests/mpi/$script" || :
    done
    good=$(grep -c '^ok ' "$root/points" || :)
    bad=$(grep -c '^not ok ' "$root/points" || :)
    tell "$good points pass, $bad fail"
    grep '^not ok ' "$root/points" | sed -n "s, coll_flash_cuda_plugin $plugin,,; 1,5p" | tell_all || :
    if ((failures == 0 && bad == 0 && good == 0)) && [[ $stopped == yes ]]; then
        tell "there was no time for a point"
        return 3
    fi
    ((failures == 0 && bad == 0 && good > 0))
}
