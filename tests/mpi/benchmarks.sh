#!/usr/bin/env bash
# The benchmarks of collectives run, on the paths they name, and check what they measure. No figure is judged.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/runner.bash"
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/benchmarks.bash"

short=(-i 2 -x 1)

# A row for each size, by the path that costs least.
for name in iallgather iallgatherv ireduce_scatter ireduce_scatter_block iallreduce ialltoall ialltoallv; do
    beside point "np 2 flash_$name: large sizes by the ring" \
        measures 2 '  ring$' 2 "flash_$name" -m 1M:2M "${short[@]}"
    beside long point "np 3 flash_$name: large sizes by the ring" \
        measures 2 '  ring$' 3 "flash_$name" -m 1M:2M "${short[@]}"
    path=fallback
    [[ $name != ireduce* ]] || path=pairwise
    more=() # those whose code the others run, too
    [[ $name != *v && $name != *block && $name != ialltoall ]] || more=(long)
    beside "${more[@]}" point "np 2 flash_$name: small sizes by no ring" \
        measures 3 "  $path\$" 2 "flash_$name" -m 64K:256K "${short[@]}" -t 3 -f --compute=sleep
    [[ $name == iall[rt]* ]] || algorithm=recdbl long point "np 2 flash_$name: smaller ones by recursive doubling" \
        measures 3 '  recdbl$' 2 "flash_$name" -m 64:256 "${short[@]}"
    beside "${more[@]}" point "np 1 flash_$name" measures 1 '^1024 .*  -$' 1 "flash_$name" -m 1K:1K "${short[@]}"
done
for name in ibcast ireduce igather igatherv iscatter iscatterv; do
    way=chain more=()
    [[ $name != i[gs]* ]] || way=exchange
    [[ $name != iscatter && $name != i*v ]] || more=(long)
    beside "${more[@]}" point "np 2 flash_$name: large sizes by the $way" \
        measures 2 '  ring$' 2 "flash_$name" -m 1M:2M "${short[@]}"
    beside long point "np 3 flash_$name: large sizes by the $way" \
        measures 2 '  ring$' 3 "flash_$name" -m 1M:2M "${short[@]}"
    beside long point "np 2 flash_$name: small sizes by none" \
        measures 3 '  fallback$' 2 "flash_$name" -m 64K:256K "${short[@]}" -t 3 -f --compute=sleep
    beside long point "np 1 flash_$name" measures 1 '^1024 .*  -$' 1 "flash_$name" -m 1K:1K "${short[@]}"
done
algorithm=recdbl point 'np 2 flash_ireduce_scatter: by recursive doubling' \
    measures 3 '  recdbl$' 2 flash_ireduce_scatter -m 64:256 "${short[@]}"
# What does not divide: rows for sizes with an element at least.
beside point 'np 3 flash_ireduce_scatter: sizes that leave ranks without elements' \
    measures 5 '  fallback$' 3 flash_ireduce_scatter -m 4:64 "${short[@]}"
beside point 'np 3 flash_ireduce_scatter_block: sizes without a block are left out' \
    measures 3 '  fallback$' 3 flash_ireduce_scatter_block -m 4:64 "${short[@]}"

mpi 1 -- test_coll_data

# A ring is as far off as one that adds in 16 bits, the pairwise schedule no farther than one must be.
rounds() {
    run 4 -- "$benchmarks/flash_float16" 500 >"$log" 2>&1 || return 1
    holds 12 '^| [bf]p*f*16 | -*[01] to 1 | [234] |' &&
        awk -F ' *[|] *' '/^. [bf]p?f?16/ && ($9 <= 0 || $7 > 1.01 * $9 || $7 < $9 || $5 < $9 ||
                $6 < $9 || ($4 > 2 && $6 < 1.05 * $9)) { print "not so:", $0; exit 1 }' "$log"
}
point 'flash_float16: the pairwise schedule rounds once' rounds

# Of each call its time, and what the process has taken since it began.
starts_up() {
    run 3 -- "$benchmarks/flash_startup" 1024 >"$log" 2>&1 &&
        holds 1 '^call,ms,cpu_ms,private_kib$' && holds 5 '^MPI_[A-Za-z_]*,[0-9.]*,[0-9.]*,[0-9]*$' &&
        ! ldd "$top_builddir/mpi_bench/flash_startup" | grep -q mpix_flash
}
point 'flash_startup: what MPI_Init and the first calls cost' starts_up

# Buffers of a device, by what stands in for its driver.
on_device() {
    LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} measures "$@" &&
        holds 1 'on CUDA devices'
}
if [[ -e $top_builddir/cuda/.libs/flash_cuda.so ]]; then
    options --mca coll_flash_cuda_plugin "$top_builddir/cuda/.libs/flash_cuda.so"
    for name in iallgather iallgatherv ireduce_scatter ireduce_scatter_block; do
        long point "np 3 flash_$name -d cuda" on_device 2 '  ring$' 3 "flash_$name" -m 1M:2M "${short[@]}" -d cuda
        more=()
        [[ $name == iallgather ]] || more=(long)
        algorithm=recdbl "${more[@]}" point "np 2 flash_$name -d cuda: small sizes" \
            on_device 2 '  recdbl$' 2 "flash_$name" -m 64:128 "${short[@]}" -d cuda
    done
    long point 'np 3 flash_iallreduce -d cuda' on_device 2 '  ring$' 3 flash_iallreduce -m 1M:2M "${short[@]}" -d cuda
    long point 'np 3 flash_ialltoall -d cuda' on_device 2 '  ring$' 3 flash_ialltoall -m 1M:2M "${short[@]}" -d cuda
    point 'np 2 flash_iallgather -d cuda' on_device 2 '  ring$' 2 flash_iallgather -m 1M:2M "${short[@]}" -d cuda
    options
else
    skip 'benchmarks with buffers of a device' 'built without CUDA'
fi

# Into a file: mpirun may mix the lines of the standard output and the standard error output.
csv_is_complete() {
    measures 2 '  fallback$' 2 flash_iallgather -m 1K:2K "${short[@]}" --csv="$scratch/rows" &&
        awk -F, '/^Call,/ { columns = NF }
            /^MPI_Iallgather,2,1,/ { rows += NF == columns } END { exit rows != 2 }' "$scratch/rows"
}
point 'np 2 flash_iallgather --csv' csv_is_complete
sizes_multiply() {
    measures 3 '  fallback$' 2 flash_iallgather -m 4:64 --times=4 "${short[@]}" --csv="$scratch/rows" &&
        awk -F, '/^MPI_Iallgather,/ { sizes = sizes " " $4 } END { print sizes; exit sizes != " 4 16 64" }' \
            "$scratch/rows"
}
point 'np 2 flash_iallgather --times' sizes_multiply
# A number in a column of its own.
has_floor() {
    measures 1 '  fallback$' 2 flash_iallgather -m 1K:1K "${short[@]}" --compute=sleep --floor --csv="$scratch/rows" &&
        awk -F, '/^Call,/ { for (k = 1; k <= NF; k++) if ($k == "Floor(us)") at = k }
            /^MPI_Iallgather,/ { number = at && $at ~ /^-?[0-9]+[.][0-9]+$/ } END { exit !number }' "$scratch/rows"
}
point 'np 2 flash_iallgather --floor' has_floor

segments() {
    measures 4 '  \(ring\|fallback\)$' 2 flash_iallgather -m 1K:2K "${short[@]}" --segment=64K,1M --csv="$scratch/rows" &&
        holds 1 '^# segments of 65536 bytes' && holds 1 '^# segments of 1048576 bytes' &&
        awk -F, '/^Call,/ { column = $NF } /^MPI_Iallgather,/ { segments = segments " " $NF }
            END { print column, segments; exit column != "Segment" || segments != " 65536 65536 1048576 1048576" }' \
            "$scratch/rows"
}
point 'np 2 flash_iallgather --segment' segments
# Nothing under computation, and the path is that of the calls alone.
alone() {
    measures 1 '^# MPI_Iallgather, 2 ranks on 1 host, alone$' 2 flash_iallgather -m 1M:1M "${short[@]}" --alone --no-own &&
        holds 1 '^1048576  *-  *-  *[1-9][0-9.]*  *-  *-  *-  ring$'
}
beside point 'np 2 flash_iallgather --alone' alone
# flash's blocking calls: by the ring, or Open MPI's.
blocking() { # PATH MPIRUN-OPTION...
    measures 1 '^# MPI_Iallreduce, 2 ranks on 1 host, flash.s blocking calls, alone$' "${@:2}" 2 flash_iallreduce -m 1M:1M \
        "${short[@]}" --blocking && holds 1 "^1048576  *-  *-  *[1-9][0-9.]* .*  $1\$"
}
beside point 'np 2 flash_iallreduce --blocking: Open MPI'"'"'s' blocking fallback
costs=$costs_folder/blocking beside point 'np 2 flash_iallreduce --blocking: by the ring' blocking ring
beside point 'flash_iallgather: no segments' refuses 'give up to 8 numbers' flash_iallgather --segment=64K,1
beside point 'flash_iallgather: sizes that are none' refuses 'MAX not less than MIN' flash_iallgather -m 4:2
beside point 'flash_iallgather: sizes that do not grow' refuses 'from 2 to' flash_iallgather --times=1
beside point 'flash_float16: no elements' refuses 'usage: flash_float16' flash_float16 0
beside point 'flash_iallgather: no such device' refuses 'give host or cuda' flash_iallgather -d opencl
without_driver() {
    ! LD_LIBRARY_PATH=$(no_driver) run 1 -- "$benchmarks/flash_iallgather" -d cuda >"$log" 2>&1 &&
        holds 1 'there is no CUDA driver'
}
point 'flash_iallgather: no driver' without_driver
beside point 'np 2 flash_iallgather --offset=16' measures 1 '^65536 ' 2 flash_iallgather -m 64K:64K "${short[@]}" \
    --offset=16
beside point 'flash_iallgather: an offset that no element has' refuses 'give a multiple of 8' flash_iallgather --offset=12
beside point 'flash_iallgather: no such option' refuses 'no option of this program' flash_iallgather -z
beside point 'flash_iallgather: no such folder' refuses 'cannot write' flash_iallgather --csv=/nowhere/a.csv

# Panels, which arrive whole in each way.
algorithm=ring beside point 'np 3 flash_panels' works '0 wrong bytes$' 3 flash_panels -m 64K -p 4 -n 4 -i 1
beside long point 'np 2 flash_panels -c sleep' works '0 wrong bytes$' 2 flash_panels -m 1M -p 8 -n 3 -i 1 -c sleep -r 0.5
beside point 'flash_panels: more pieces than it has requests for: said' refuses 'usage: flash_panels' flash_panels -p 65

# What a plain socket gives.
if [[ -x $benchmarks/flash_tcp ]]; then
    for np in 2 3; do
        beside point "np $np flash_tcp" works "MPI_Ireduce_scatter_block$(printf '  *[-0-9.]*%.0s' 1 2 3 4)\$" \
            "$np" flash_tcp -m 1 -i 2
        more=()
        ((np == 2)) || more=(long)
        beside "${more[@]}" point "np $np flash_tcp -a -f" works 'a plain socket,1,'"$np,$(((np - 1) << 20)),[0-9.]*\$" \
            "$np" flash_tcp -m 1 -i 2 -a -f
    done
    beside point 'flash_tcp: no block: said' refuses 'usage: mpirun' flash_tcp -m 0
else
    skip 'flash_tcp' 'built without OpenBLAS'
fi

plan
