# checks.bash: sourced by run.sh after kit.bash: the steps that tell whether the node serves, and flash on it.
#
# Each step is a function, which runs in a process of its own. Status 0: the step is well, 3: it is skipped, anything
# else: it failed.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of kit.bash

# ------------------------------------------------------------------ node

tell_kit() {
    tell_all <"$root/description"
    tell "$(nproc) cores, $(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo) GiB, $(uname -sr)"
}

tell_gpu() {
    local fields=name,driver_version,mig.mode.current,compute_mode,memory.total,pcie.link.gen.max,pcie.link.width.max
    if timeout 8 nvidia-smi --query-gpu="$fields" --format=csv,noheader >"$said" 2>&1; then
        sed 's/^/GPU, driver, MIG, compute mode, memory, PCIe: /' "$said" | tell_all
    else
        tell "nvidia-smi does not answer here"
        cat "$said"
        return 1
    fi
}

# Not in the list of steps: what precedes steps that are run without `node`.
step_origin() {
    tell_kit
    tell_gpu || :
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
    tell_kit
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
    if tell_gpu; then
        timeout 8 nvidia-smi || :
        timeout 8 nvidia-smi topo -m || :
    fi
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
    if ! by_ucx flash_iallgather -d cuda -m 1M:1M --alone; then
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

# The points of a job that was stopped: the job had told of them, and its script had not yet.
tell_unreported() {
    awk -F '\t' 'FNR == NR { points[$1] = $NF; next }
        { split($0, words, / /); number = words[1] == "not" ? words[3] : words[2] }
        /^(not )?ok / { sub(/ [0-9]+ [0-9]+$/, ""); print $0 " - " points[number] " (its job was stopped)" }' \
        "$1/points" "$1/results" 2>/dev/null | tee -a "$root/points"
}

# run_points NAME COMMAND...: until the time is up, which is no failure. False: it has not come to its end.
run_points() {
    local status=0 left=$((FLASH_KIT_LIMIT - 5 - SECONDS)) begun=$SECONDS
    if ((left <= 0)); then
        stopped=yes
        return 1
    fi
    export FLASH_TEST_SCRATCH=$root/scratch
    rm -rf "$FLASH_TEST_SCRATCH"
    mkdir "$FLASH_TEST_SCRATCH"
    timeout --kill-after 2 "$left" "${@:2}" 2>&1 </dev/null | tee -a "$root/points" || status=$?
    ((status != 0)) || return 0
    if ((SECONDS - begun >= left)); then
        stopped=yes
        tell_unreported "$FLASH_TEST_SCRATCH"
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
