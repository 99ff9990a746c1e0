/*
 * flash_cuda_image.S: the kernels as the device's compiler left them, in the plugin.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
        .section .rodata
        .balign 64
        .globl flash_cuda_image
        .hidden flash_cuda_image
        .type flash_cuda_image, %object
flash_cuda_image:
        .incbin "flash_kernels.fatbin"
        .size flash_cuda_image, . - flash_cuda_image
        .section .note.GNU-stack, "", %progbits
