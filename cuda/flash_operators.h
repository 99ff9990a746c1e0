/*
 * flash_operators.h: what a kernel does, for the device's compiler and for the host's.
 *
 * One thread's share of out[k] = in[k] op inout[k], with the operations of MPI 3.1, section 5.9.2,
 * in the forms that Open MPI's take: the same bits, wherever a sum is made, but of a NaN, of which
 * there are many, and a device has its own. Of a NaN and a number, or of zeros of both signs, MAX
 * and MIN give the first operand; Open MPI's vector instructions give the second. A signed number's
 * sum and product wrap, as its unsigned twin's do. Of fp16 and bf16 each result is made in fp32 and
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

/* 16 bytes, as many as a thread moves at a time, and the words that it is moved in. */
template <class T> struct alignas(16) flash_vector {
    T at[16 / sizeof(T)];
};

/* As many of them under way: what comes from the host's memory takes its time. */
enum { FLASH_AHEAD = 4 };

template <class T> FLASH_BOTH size_t flash_phase(const T *place)
{
    return reinterpret_cast<uintptr_t>(place) % 16;
}

/* The widest word that all vectors from there on are aligned for, in bytes; at least an element. */
template <class T> FLASH_BOTH unsigned flash_width(const T *place)
{
    size_t phase = flash_phase(place);

    return phase == 0                        ? 16u
           : phase % 4 == 0 && sizeof(T) < 4 ? 4u
                                             : static_cast<unsigned>(sizeof(T));
}

template <class W, class T> FLASH_BOTH void flash_load_words(flash_vector<T> *vector, const T *from)
{
    W *words = reinterpret_cast<W *>(vector);

    for (unsigned i = 0; i < 16 / sizeof(W); i++) {
        words[i] = *FLASH_ACCESS(reinterpret_cast<const W *>(from) + i);
    }
}

template <class W, class T> FLASH_BOTH void flash_store_words(T *to, const flash_vector<T> *vector)
{
    const W *words = reinterpret_cast<const W *>(vector);

    for (unsigned i = 0; i < 16 / sizeof(W); i++) {
        *FLASH_ACCESS(reinterpret_cast<W *>(to) + i) = words[i];
    }
}

/* All threads take the same way. */
template <class T>
FLASH_BOTH void flash_load(flash_vector<T> *vector, const T *from, unsigned width)
{
    if (width == 16) {
        *vector = *FLASH_ACCESS(reinterpret_cast<const flash_vector<T> *>(from));
    } else if (sizeof(T) < 4 && width == 4) {
        flash_load_words<uint32_t, T>(vector, from);
    } else {
        flash_load_words<T, T>(vector, from);
    }
}

template <class T> FLASH_BOTH void flash_store(T *to, const flash_vector<T> *vector, unsigned width)
{
    if (width == 16) {
        *FLASH_ACCESS(reinterpret_cast<flash_vector<T> *>(to)) = *vector;
    } else if (sizeof(T) < 4 && width == 4) {
        flash_store_words<uint32_t, T>(to, vector);
    } else {
        flash_store_words<T, T>(to, vector);
    }
}

/* Vectors number first, first + stride, ... of `count`. `out` may be `inout`: all loads come first.
 */
template <class Op, class T>
FLASH_BOTH void flash_combine_vectors(const T *in, const T *inout, T *out, size_t count,
                                      size_t first, size_t stride)
{
    const size_t length = 16 / sizeof(T);
    const unsigned in_width = flash_width(in), inout_width = flash_width(inout);
    const unsigned out_width = flash_width(out);

    for (size_t k = first; k < count; k += FLASH_AHEAD * stride) {
        flash_vector<T> a[FLASH_AHEAD], b[FLASH_AHEAD];

        for (int ahead = 0; ahead < FLASH_AHEAD; ahead++) {
            if (k + ahead * stride < count) {
                flash_load(&a[ahead], in + (k + ahead * stride) * length, in_width);
                flash_load(&b[ahead], inout + (k + ahead * stride) * length, inout_width);
            }
        }
        for (int ahead = 0; ahead < FLASH_AHEAD && k + ahead * stride < count; ahead++) {
            for (size_t i = 0; i < length; i++) {
                a[ahead].at[i] = flash_combine_one<Op, T>(a[ahead].at[i], b[ahead].at[i]);
            }
            flash_store(out + (k + ahead * stride) * length, &a[ahead], out_width);
        }
    }
}

template <class Op, class T>
FLASH_BOTH void flash_combine_each(const T *in, const T *inout, T *out, size_t begin, size_t end,
                                   size_t first, size_t stride)
{
    for (size_t k = begin + first; k < end; k += stride) {
        *FLASH_ACCESS(out + k) =
            flash_combine_one<Op, T>(*FLASH_ACCESS(in + k), *FLASH_ACCESS(inout + k));
    }
}

/*
 * The share of thread `first` of `stride` threads. Each address is a multiple of an element's size.
 * Elements before a multiple of 16 bytes are taken off, where two addresses, or all, share it; one
 * that does not is read or written by the widest words that it is aligned for.
 */
template <class Op, class T>
FLASH_BOTH void flash_combine_share(const T *in, const T *inout, T *out, size_t count, size_t first,
                                    size_t stride)
{
    const size_t length = 16 / sizeof(T);
    size_t phase = flash_phase(in) == flash_phase(inout) ? flash_phase(in) : flash_phase(out);
    size_t head = (16 - phase) % 16 / sizeof(T), vectors;

    if (head > count) {
        head = count;
    }
    vectors = (count - head) / length;
    flash_combine_each<Op, T>(in, inout, out, 0, head, first, stride);
    flash_combine_vectors<Op, T>(in + head, inout + head, out + head, vectors, first, stride);
    flash_combine_each<Op, T>(in, inout, out, head + vectors * length, count, first, stride);
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
