/*
 * test_operators.cc: the kernels' arithmetic, by the host's compiler: fp16 and bf16 against
 * roundings worked out here, and all kernels' way through their elements against a plain loop.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "flash_operators.h"
#include "standin.h"

#include "../unit/tap.h"

namespace
{

/* Of a number with `bits` bits of fraction and an exponent of at most `largest`, by its encoding.
 */
struct format_t {
    int bits, bias;
};
const format_t fp16 = {10, 15}, bf16 = {7, 127};

double decode(format_t format, uint16_t code)
{
    int exponent_bits = 15 - format.bits;
    int exponent = code >> format.bits & ((1 << exponent_bits) - 1);
    int fraction = code & ((1 << format.bits) - 1);
    double sign = code >> 15 ? -1.0 : 1.0;

    if (exponent == (1 << exponent_bits) - 1) {
        return fraction != 0 ? NAN : sign * INFINITY;
    }
    return exponent == 0 ? sign * std::ldexp(fraction, 1 - format.bias - format.bits)
                         : sign * std::ldexp(fraction + (1 << format.bits),
                                             exponent - format.bias - format.bits);
}

/* To the nearest, of two as near the even one: by walking through the encodings, which are ordered.
 */
uint16_t encode(format_t format, double value)
{
    uint16_t sign = std::signbit(value) ? 0x8000 : 0, low = 0;
    uint16_t infinity = (uint16_t) (((1 << (15 - format.bits)) - 1) << format.bits),
             high = infinity;
    double size = std::fabs(value), below, above;

    if (std::isnan(value)) {
        return infinity + 1;
    }
    while (high - low > 1) {
        uint16_t middle = (uint16_t) ((low + high) / 2);

        (decode(format, middle) <= size ? low : high) = middle;
    }
    below = decode(format, low);
    /* What lies beyond the largest number is rounded as if there were one more. */
    above = high == infinity ? 2 * below - decode(format, low - 1) : decode(format, high);
    if (size - below > above - size || (size - below == above - size && low % 2 == 1)) {
        low = high;
    }
    return sign | low;
}

double apply(const char *operation, double in, double inout)
{
    return std::strcmp(operation, "sum") == 0    ? (double) ((float) in + (float) inout)
           : std::strcmp(operation, "prod") == 0 ? (double) ((float) in * (float) inout)
           : std::strcmp(operation, "max") == 0  ? (inout > in ? inout : in)
                                                 : (inout < in ? inout : in);
}

/* Each of many numbers with each of some. */
void half_precision(const char *type, format_t format)
{
    static const char *const operations[] = {"sum", "prod", "max", "min"};

    for (const char *operation : operations) {
        char name[32];
        unsigned wrong = 0;

        std::snprintf(name, sizeof(name), "flash_%s_%s", operation, type);
        for (unsigned a = 0; a < 0x10000; a += 7) {
            for (unsigned b = a % 64; b < 0x10000; b += 641) {
                uint16_t in = (uint16_t) a, inout = (uint16_t) b, out = 0, wanted;

                standin_find_kernel(name)->run(&in, &inout, &out, 1, 0, 1);
                wanted =
                    encode(format, apply(operation, decode(format, in), decode(format, inout)));
                wrong += std::isnan(decode(format, wanted)) ? !std::isnan(decode(format, out))
                                                            : out != wanted;
            }
        }
        ok(wrong == 0, "%s: %u are wrong", name, wrong);
    }
}

/*
 * Of any length, from any address and with any number of threads, an element is as it is alone, and
 * what lies around stays.
 */
bool walks(const standin_kernel_t *kernel, size_t count, size_t shift, size_t other_shift,
           size_t threads, bool in_place)
{
    size_t bytes = count * kernel->element, stride = (bytes + 31) / 16 * 16;
    std::vector<unsigned char> memory(3 * stride + 384), wanted(bytes + 1);
    unsigned char *base =
        memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16;
    unsigned char *in = base + shift * kernel->element;
    unsigned char *inout = base + stride + (shift + other_shift) * kernel->element;
    unsigned char *out = in_place ? inout : base + 2 * stride + 64 + shift * kernel->element;

    for (size_t k = 0; k < memory.size(); k++) {
        memory[k] = (unsigned char) (k * 37 % 251 % 64); /* no number that is not one */
    }
    for (size_t k = 0; k < count; k++) {
        kernel->run(in + k * kernel->element, inout + k * kernel->element,
                    wanted.data() + k * kernel->element, 1, 0, 1);
    }
    for (size_t thread = 0; thread < threads; thread++) {
        if (!kernel->run(in, inout, out, count, thread, threads)) {
            return false; /* an address was not aligned */
        }
    }
    return std::memcmp(out, wanted.data(), bytes) == 0 &&
           out[bytes] == (unsigned char) ((size_t) (out + bytes - memory.data()) * 37 % 251 % 64);
}

void all_walk()
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 64, 1000, 4099};
    static const size_t crowds[] = {1, 3, 32};

#define WALK(operation, kind, type)                                                         \
    {                                                                                       \
        const standin_kernel_t *found = standin_find_kernel("flash_" #operation "_" #kind); \
        unsigned wrong = 0;                                                                 \
                                                                                            \
        for (size_t length : lengths) {                                                     \
            for (size_t threads : crowds) {                                                 \
                for (size_t shift = 0; shift < 3; shift++) {                                \
                    wrong += !walks(found, length, shift, 0, threads, shift % 2 == 0);      \
                    wrong += !walks(found, length, shift, 0, threads, shift % 2 == 1);      \
                    wrong += !walks(found, length, shift, 1, threads, shift % 2 == 0);      \
                    wrong += !walks(found, length, shift, 2, threads, shift % 2 == 1);      \
                }                                                                           \
            }                                                                               \
        }                                                                                   \
        ok(wrong == 0, "%s: all elements, and no other (%u wrong)", found->name, wrong);    \
    }
    FLASH_KERNELS(WALK)
#undef WALK
}

/* Loads and stores of a sum of bytes, each address so many of them off 16. */
unsigned long accesses_of(size_t count, size_t in, size_t inout, size_t out)
{
    std::vector<uint8_t> memory(3 * count + 256);
    uint8_t *base = memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16;
    size_t apart = count / 16 * 16 + 32;
    unsigned long before = standin_accesses();

    standin_find_kernel("flash_sum_u8")
        ->run(base + in, base + apart + inout, base + 2 * apart + out, count, 0, 1);
    return standin_accesses() - before;
}

void words_are_wide()
{
    const size_t COUNT = 1024, VECTORS = COUNT / 16, ENDS = 3 * 32;

    ok(accesses_of(COUNT, 0, 0, 0) == 3 * VECTORS, "aligned, all moves by vectors");
    ok(accesses_of(COUNT, 1, 1, 1) <= 3 * VECTORS + ENDS, "and where all are off by as much");
    ok(accesses_of(COUNT, 0, 0, 1) <= 2 * VECTORS + COUNT + ENDS,
       "one that is off alone does not make the others slow");
    ok(accesses_of(COUNT, 0, 4, 0) <= 2 * VECTORS + COUNT / 4 + ENDS,
       "and is moved by the widest words that it is aligned for");
    ok(accesses_of(COUNT, 3, 3, 0) <= 2 * VECTORS + COUNT + ENDS, "whichever it is");
}

} // namespace

int main()
{
    half_precision("f16", fp16);
    half_precision("bf16", bf16);
    all_walk();
    words_are_wide();
    return tap_done();
}
