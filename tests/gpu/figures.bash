# figures.bash: sourced by run.sh after kit.bash: the steps that measure.
#
# Each step is a function, which runs in a process of its own. Status 0: the step is well, 3: it is skipped, anything
# else: it failed.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2034,SC2154 # variables of kit.bash

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

# milliseconds FILE COLUMN: the figures that a benchmark has printed, one for each of the segments.
milliseconds() {
    awk -v segments="$segments" -v column="$2" 'BEGIN { left = split(segments, words, ",") }
        /^[0-9]/ { printf " %9s", /WRONG/ ? "WRONG" : sprintf("%.2f", $column / 1000); left-- }
        END { while (left-- > 0) printf " %9s", "-" }' "$1"
}

# Seconds that the job of a row has. Rows of host memory had too few where each length of segments was measured under
# computation, too, and beside Open MPI's own calls (docs/gpu-results.md, run 3): filling and checking the buffers takes
# most of the time.
row_limit=25

# row NAME LAUNCH'S ARGUMENT...: runs the job of a row, and prints how long that took.
row() {
    local begun=$SECONDS
    attempt "$1" launch "$row_limit" 2 "${@:2}" --seconds=0.2 -x 0 --alone || :
    echo "the row $1 took $((SECONDS - begun)) s of $row_limit"
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
    row "$name" "${options[@]}" "$program" -m "$bytes:$bytes" --segment="$segments" --no-own "${@:2}"
    tell "$(printf '%-48s' "$name")$(milliseconds "$said" 4)"
}

# own_row COLLECTIVE BYTES: Open MPI's own call, which has no segments of flash's, and takes no memory of a device.
own_row() {
    local segments=0 name="$1, Open MPI's own"
    row "$name" "$bench/flash_$1" -m "$2:$2" --segment=0 -i 5
    tell "$(printf '%-48s' "$name")$(milliseconds "$said" 10)"
}

step_collectives() {
    local collective size=$large
    tell_segments
    for collective in iallgather ireduce_scatter_block; do
        # At its full size without a GPU, too: the host is the same.
        collective_row 'T(host)' "$collective" 64M -- -i 10
        own_row "$collective" 64M
        collective_row 'T(device), staged' "$collective" "$size" "${staged[@]}" -- -d cuda
        if by_ucx "flash_$collective" -d cuda -m "$size:$size" --alone; then
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

# ------------------------------------------------------------------ facts, waits

# run_here PROGRAM: tells what it prints.
run_here() {
    local status=0
    "$flash/tests/gpu/$1" 2>&1 | tee "$said" || status=$?
    tell_all <"$said" >/dev/null
    return "$status"
}

step_facts() {
    run_here facts
}

step_waits() {
    run_here waits
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
    if by_ucx flash_iallgather -d cuda -m "$size:$size" --alone; then
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
