/*
 * standin_kernels.cc: flash's kernels for the stand-in driver: the same code, by the host's
 * compiler.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

/* A device does not load or store what is not aligned. */
static thread_local bool aligned;
static thread_local unsigned long accesses;

template <class T> static inline T *accessed(T *place)
{
    static thread_local std::remove_const_t<T> nothing;

    accesses++;
    aligned = aligned && reinterpret_cast<uintptr_t>(place) % sizeof(T) == 0;
    return aligned ? place : &nothing;
}

#define FLASH_ACCESS(place) accessed(place)
#include "flash_operators.h"

#define DEFINE(operation, name, type)                                                          \
    static bool operation##_##name(const void *in, const void *inout, void *out, size_t count, \
                                   size_t first, size_t stride)                                \
    {                                                                                          \
        aligned = true;                                                                        \
        flash_combine_share<flash_##operation, type>(                                          \
            static_cast<const type *>(in), static_cast<const type *>(inout),                   \
            static_cast<type *>(out), count, first, stride);                                   \
        return aligned;                                                                        \
    }
FLASH_KERNELS(DEFINE)

static const standin_kernel_t kernels[] = {
#define ENTRY(operation, name, type) \
    {"flash_" #operation "_" #name, operation##_##name, sizeof(type), nullptr},
    FLASH_KERNELS(ENTRY)
#undef ENTRY
};

unsigned long standin_accesses(void)
{
    return accesses;
}

const standin_kernel_t *standin_find_kernel(const char *name)
{
    for (const standin_kernel_t &kernel : kernels) {
        if (std::strcmp(kernel.name, name) == 0) {
            return &kernel;
        }
    }
    return nullptr;
}
