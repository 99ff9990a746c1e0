# device.bash: sourced behind runner.bash by the scripts about the memory of devices: by the stand-in for CUDA's driver,
# or by the driver that FLASH_TEST_DRIVER names. Ends the script where there is no plugin.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
# shellcheck disable=SC2154 # variables of runner.bash

standin=$top_builddir/tests/gpu/.libs/libcuda.so.1
export FLASH_TEST_DRIVER=${FLASH_TEST_DRIVER:-$standin}
plugin=$top_builddir/cuda/.libs/flash_cuda.so

if [[ ! -e $plugin ]]; then
    skip 'buffers in the memory of devices' 'built without CUDA'
    plan
    exit
fi

# Beside the stand-in for the driver are those for its libraries.
if [[ $FLASH_TEST_DRIVER == "$standin" ]]; then
    export LD_LIBRARY_PATH=$top_builddir/tests/gpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

# stands_in FILE: is what the stand-in needs for this built? A real driver needs nothing.
stands_in() {
    [[ $FLASH_TEST_DRIVER != "$standin" || -e $top_builddir/tests/gpu/$1 ]]
}
