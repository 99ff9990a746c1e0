/*
 * flash_operators.h: what a kernel does, for the device's compiler and for the host's.
 *
 * One thread's share of out[k] = in[k] op inout[k], with the operations of MPI 3.1, section 5.9.2,
 * in the forms that Open MPI's take: the same bits, wherever a sum is made. A signed number's sum
 * and product wrap, as its unsigned twin's do. Of fp16 and bf16 each result is made in fp32 and
 * rounded once.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_OPERATORS_H
#define FLASH_OPERATORS_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FLASH_BOTH __host__ __device__ __forceinline__
#else
#define FLASH_BOTH inline
#endif

/* Around each address that is loaded from or stored to, for who checks them. */
#ifndef FLASH_ACCESS
#define FLASH_ACCESS(place) (place)
#endif

/* ----------------------------------------------------- in which type one computes */

/* Not in int, which 16-bit factors would overflow. */
FLASH_BOTH uint32_t flash_widen(uint8_t x)
{
    return x;
}

FLASH_BOTH uint32_t flash_widen(uint16_t x)
{
    return x;
}

FLASH_BOTH float flash_widen(__half x)
{
    return __half2float(x);
}

FLASH_BOTH float flash_widen(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <class T> FLASH_BOTH T flash_widen(T x)
{
    return x;
}

template <class T> struct flash_narrow {
    template <class W> static FLASH_BOTH T of(W x)
    {
        return static_cast<T>(x);
    }
};

template <> struct flash_narrow<__half> {
    static FLASH_BOTH __half of(float x)
    {
        return __float2half_rn(x);
    }
};

template <> struct flash_narrow<__nv_bfloat16> {
    static FLASH_BOTH __nv_bfloat16 of(float x)
    {
        return __float2bfloat16_rn(x);
    }
};

/* ------------------------------------------------------------------- operations */

struct flash_sum {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return in + inout;
    }
};

struct flash_prod {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return in * inout;
    }
};

struct flash_max {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return inout > in ? inout : in;
    }
};

struct flash_min {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return inout < in ? inout : in;
    }
};

struct flash_land {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return in != 0 && inout != 0;
    }
};

struct flash_lor {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return in != 0 || inout != 0;
    }
};

struct flash_lxor {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return (in != 0) != (inout != 0);
    }
};

struct flash_band {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return in & inout;
    }
};

struct flash_bor {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return in | inout;
    }
};

struct flash_bxor {
    template <class W> static FLASH_BOTH W of(W in, W inout)
    {
        return in ^ inout;
    }
};

/* ---------------------------------------------------------------- a thread's share */

template <class Op, class T> FLASH_BOTH T flash_combine_one(T in, T inout)
{
    return flash_narrow<T>::of(Op::of(flash_widen(in), flash_widen(inout)));
}

/* 16 bytes, as many as a thread moves at a time. */
template <class T> struct alignas(16) flash_vector {
    T at[16 / sizeof(T)];
};

/* As many of them under way: what comes from the host's memory takes its time. */
enum { FLASH_AHEAD = 4 };

/* Vectors number first, first + stride, ... of `count`. `out` may be `inout`: all loads come first.
 */
template <class Op, class T>
FLASH_BOTH void flash_combine_vectors(const flash_vector<T> *in, const flash_vector<T> *inout,
                                      flash_vector<T> *out, size_t count, size_t first,
                                      size_t stride)
{
    for (size_t k = first; k < count; k += FLASH_AHEAD * stride) {
        flash_vector<T> a[FLASH_AHEAD], b[FLASH_AHEAD];

        for (int ahead = 0; ahead < FLASH_AHEAD; ahead++) {
            if (k + ahead * stride < count) {
                a[ahead] = *FLASH_ACCESS(in + k + ahead * stride);
                b[ahead] = *FLASH_ACCESS(inout + k + ahead * stride);
            }
        }
        for (int ahead = 0; ahead < FLASH_AHEAD && k + ahead * stride < count; ahead++) {
            for (size_t i = 0; i < 16 / sizeof(T); i++) {
                a[ahead].at[i] = flash_combine_one<Op, T>(a[ahead].at[i], b[ahead].at[i]);
            }
            *FLASH_ACCESS(out + k + ahead * stride) = a[ahead];
        }
    }
}

/* The share of thread `first` of `stride` threads. */
template <class Op, class T>
FLASH_BOTH void flash_combine_share(const T *in, const T *inout, T *out, size_t count, size_t first,
                                    size_t stride)
{
    size_t whole = 0;

    if ((reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(inout) |
         reinterpret_cast<uintptr_t>(out)) %
            16 ==
        0) {
        whole = count / (16 / sizeof(T));
        flash_combine_vectors<Op, T>(reinterpret_cast<const flash_vector<T> *>(in),
                                     reinterpret_cast<const flash_vector<T> *>(inout),
                                     reinterpret_cast<flash_vector<T> *>(out), whole, first,
                                     stride);
        whole *= 16 / sizeof(T);
    }
    for (size_t k = whole + first; k < count; k += stride) {
        *FLASH_ACCESS(out + k) =
            flash_combine_one<Op, T>(*FLASH_ACCESS(in + k), *FLASH_ACCESS(inout + k));
    }
}

/* ------------------------------------------------------------------------- which */

/* clang-format off */
/* Where the sign makes no difference, there are the unsigned ones. */
#define FLASH_UNSIGNED_KERNELS(each, operation) \
    each(operation, u8, uint8_t) \
    each(operation, u16, uint16_t) \
    each(operation, u32, uint32_t) \
    each(operation, u64, uint64_t)

#define FLASH_FLOATING_KERNELS(each, operation) \
    each(operation, f16, __half) \
    each(operation, bf16, __nv_bfloat16) \
    each(operation, f32, float) \
    each(operation, f64, double)

#define FLASH_ORDER_KERNELS(each, operation) \
    FLASH_UNSIGNED_KERNELS(each, operation) \
    FLASH_FLOATING_KERNELS(each, operation) \
    each(operation, i8, int8_t) \
    each(operation, i16, int16_t) \
    each(operation, i32, int32_t) \
    each(operation, i64, int64_t)

/* each(operation, type, C++ type) of all kernels: flash_<operation>_<type>. */
#define FLASH_KERNELS(each) \
    FLASH_UNSIGNED_KERNELS(each, sum) \
    FLASH_FLOATING_KERNELS(each, sum) \
    FLASH_UNSIGNED_KERNELS(each, prod) \
    FLASH_FLOATING_KERNELS(each, prod) \
    FLASH_ORDER_KERNELS(each, max) \
    FLASH_ORDER_KERNELS(each, min) \
    FLASH_UNSIGNED_KERNELS(each, land) \
    FLASH_UNSIGNED_KERNELS(each, lor) \
    FLASH_UNSIGNED_KERNELS(each, lxor) \
    FLASH_UNSIGNED_KERNELS(each, band) \
    FLASH_UNSIGNED_KERNELS(each, bor) \
    FLASH_UNSIGNED_KERNELS(each, bxor)
/* clang-format on */

#endif /* FLASH_OPERATORS_H */
