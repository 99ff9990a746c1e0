# rehearsal.bash: sourced by rehearse.sh: the kits that are rehearsed, and the node, which is a minimal Debian in
# "$top/minimal" with what stands in for CUDA. The kit is of the build in the folder "$build".
#
#   pack KIT                  packs a kit
#   lists_kernels KIT         for which devices its kernels are
#   break_kit                 packs the kit `broken`, whose programs do what BREAK in the environment says
#   copy_driver, make_tools   what the node has
#   on_node RESULTS SCRIPT    runs a script there
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of rehearse.sh

# pack KIT: as it would be in a copy of it, in which no file's mode is what it was.
pack() {
    local most=$((60 << 20))
    remove "$top/packed" "$top/$1"
    tests/gpu/pack.sh --build "$build" "$top/packed" && mkdir "$top/$1" &&
        cp --no-preserve=mode "$top"/packed/* "$top/$1" &&
        [[ $(du --bytes --summarize "$top/$1" | cut -f 1) -le $most ]]
}

# lists_kernels KIT: for which devices each file of kernels in it is compiled, as nvcc's output says: its parts are of
# kind 1, PTX, or 2, a device's own code; each with the lengths of its header and contents, and a capability.
lists_kernels() {
    local file
    for file in cuda/flash_kernels.fatbin mpi_bench/layer_kernels.fatbin; do
        gzip --decompress --stdout "$top/$1/kit.tar.gz" | tar --extract --to-stdout "./flash/$file" >"$scratch/kernels"
        python3 - "$file" "$scratch/kernels" <<'END'
import struct, sys
data = open(sys.argv[2], "rb").read()
parts, at = [], 16
while at < len(data):
    kind, _, header, size = struct.unpack_from("<HHIQ", data, at)
    parts.append(("compute_" if kind == 1 else "sm_") + str(struct.unpack_from("<I", data, at + 28)[0]))
    at += header + size
print(sys.argv[1], *parts)
END
    done
}

# The same kit, but for programs that do what BREAK in the environment says, as in BREAK='rates=hangs'.
break_kit() {
    local place
    mkdir -p "$top/unpacked" "$top/broken"
    gzip --decompress --stdout "$top/kit/kit.tar.gz" | tar --extract --directory "$top/unpacked"
    cat >"$scratch/program" <<'END'
#!/bin/sh
for word in $BREAK; do
    case $word in
    "${0##*/}=fails") exit 1 ;;
    "${0##*/}=killed") kill -KILL $$ ;;
    "${0##*/}=ends") # the whole step
        session=$(awk '{ sub(/.*\) /, ""); print $4 }' /proc/$$/stat)
        kill -KILL $(cat /proc/[0-9]*/stat 2>/dev/null |
            awk -v session="$session" '{ pid = $1; sub(/.*\) /, ""); if ($2 == session) print pid }')
        sleep 1000
        ;;
    "${0##*/}=stays") # whatever signal it gets but SIGKILL
        trap '' TERM
        while :; do sleep 1; done
        ;;
    "${0##*/}=hangs") # after all that it prints
        "$0.real" "$@"
        sleep 1000
        ;;
    "${0##*/}=wrong")
        "$0.real" "$@" | sed 's/results agree/WRONG RESULTS/; s/^[0-9].*/&  WRONG/'
        exit 1
        ;;
    "${0##*/}=moved")
        "$0.real" "$@" 2>&1 | sed "s/staged through pinned memory/sent and received by UCX from the device's memory/"
        exit
        ;;
    "${0##*/}=cuda_copy")
        echo '#      Transport: cuda_copy'
        exit
        ;;
    esac
done
exec "$0.real" "$@"
END
    for place in mpi_bench/flash_{cublas,behind,iallgather,ireduce_scatter_block} tests/gpu/rates \
        tests/mpi/flash_device_tests ../ucx-cuda/libucx/bin/ucx_info; do
        place=$top/unpacked/flash/$place
        if [[ -e $place ]]; then
            mv "$place" "$place.real"
            cp "$scratch/program" "$place"
            chmod +x "$place"
        fi
    done
    cp "$top"/kit/{run.sh,*.bash} "$top/broken"
    tar --create --directory "$top/unpacked" . | gzip -1 >"$top/broken/kit.tar.gz"
    remove "$top/unpacked"
}

# What a node has: the driver and its libraries, by those that stand in for them.
copy_driver() {
    local file
    mkdir -p "$top/driver"
    for file in "$build"/tests/gpu/.libs/lib{cuda,cudart,cublas,cublasLt}.so.[0-9]*; do
        [[ $file =~ \.so\.[0-9]+$ ]] && cp --dereference "$file" "$top/driver"
    done
    [[ -e $top/driver/libcuda.so.1 ]] && compgen -G "$top/driver/libcublasLt.so.*"
}

# Programs of the toolkit that only look as if they were.
make_tools() {
    mkdir -p "$top/tools"
    cat >"$top/tools/nvidia-smi" <<'END'
#!/bin/sh
echo 'a stand-in, 1.0, [N/A], Default, 1 MiB, 1, 1'
END
    cat >"$top/tools/compute-sanitizer" <<'END'
#!/bin/sh
while case $1 in -*) ;; *) false ;; esac do shift 2; done
"$@"
status=$?
echo '========= ERROR SUMMARY: 0 errors'
exit $status
END
    cat >"$top/tools/nvidia-cuda-mps-control" <<'END'
#!/bin/sh
[ "$BREAK" != mps ] || exit 1
if [ "${1-}" = -f ]; then
    # It has CUDA's libraries.
    case :$LD_LIBRARY_PATH: in *:/driver:*) ;; *) exit 1 ;; esac
    : >"$CUDA_MPS_PIPE_DIRECTORY/control"
    while [ -e "$CUDA_MPS_PIPE_DIRECTORY/control" ]; do sleep 0.1; done
    exit
fi
read -r command
[ "$command" != quit ] || rm "$CUDA_MPS_PIPE_DIRECTORY/control"
END
    chmod +x "$top"/tools/*
}

# on_node RESULTS SCRIPT: the status of SCRIPT there; the kit is /elsewhere/kit, what it finds comes to RESULTS.
on_node() (
    mkdir -p "$top/results/$1"
    # shellcheck disable=SC2016 # expanded by the inner shells
    ROOT=$top/minimal TOP=$top KIT=${kit:-kit} RESULTS=$top/results/$1 SCRIPT=$2 unshare --net bash -euc '
        ip link set lo up
        source tests/debian.bash
        enter "$ROOT" "$TOP/$KIT:/elsewhere/kit:ro" "$TOP/driver:/driver:ro" "$TOP/tools:/tools:ro" \
            "$RESULTS:/results" -- bash -euc "
            export OUT=/results FLASH_TEST_DRIVER=/driver/libcuda.so.1 FLASH_KIT_SLOW=6
            run() { bash /elsewhere/kit/run.sh \"\$@\"; }
            $SCRIPT"'
)
