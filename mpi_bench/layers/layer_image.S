/*
 * layer_image.S: the kernels as the device's compiler left them, in the program.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
        .section .rodata
        .balign 64
        .globl layer_image
        .hidden layer_image
        .type layer_image, %object
layer_image:
        .incbin "layer_kernels.fatbin"
        .size layer_image, . - layer_image
        .section .note.GNU-stack, "", %progbits
