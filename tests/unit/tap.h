/*
 * tap.h: the Test Anything Protocol, as much of it as the unit tests need. The plan comes last,
 * so that a test need not count its points beforehand; a test that dies prints no plan and fails.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned tap_count, tap_failed;

__attribute__((format(printf, 2, 3))) static inline bool ok(bool cond, const char *name, ...)
{
    va_list args;

    printf("%sok %u - ", cond ? "" : "not ", ++tap_count);
    va_start(args, name);
    vprintf(name, args);
    va_end(args);
    printf("\n");
    fflush(stdout); /* what was reached is seen even if the next point crashes */
    tap_failed += !cond;
    return cond;
}

__attribute__((format(printf, 1, 2))) static inline void diag(const char *text, ...)
{
    va_list args;

    printf("# ");
    va_start(args, text);
    vprintf(text, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

/* Ends the program unless that is so: without it there is nothing to test. */
static inline void must(bool well, const char *what)
{
    if (!well) {
        printf("Bail out! %s\n", what);
        exit(EXIT_FAILURE);
    }
}

/* Prints the plan; what main() returns. */
static inline int tap_done(void)
{
    printf("1..%u\n", tap_count);
    if (tap_failed > 0) {
        diag("%u of %u failed", tap_failed, tap_count);
    }
    return tap_failed > 0;
}

/* The optional argument of each test: where its random numbers begin. */
static inline unsigned long tap_seed(int argc, char **argv)
{
    unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;

    diag("seed %lu", seed);
    return seed;
}

/* Whether only the short tier is wanted, as it is unless FLASH_TEST_TIER says long or all. */
static inline bool tap_is_short(void)
{
    const char *tier = getenv("FLASH_TEST_TIER");

    return tier == NULL || strcmp(tier, "short") == 0;
}

/* FLASH_TEST_STRIDE in the environment, for slow tools; 1: there is none. */
static inline uint32_t tap_given_stride(void)
{
    const char *value = getenv("FLASH_TEST_STRIDE");
    unsigned long stride = value == NULL ? 1 : strtoul(value, NULL, 0);

    return stride > 0 ? (uint32_t) stride : 1;
}

/*
 * Of many random or enumerated cases, only each so many-th is tried: in the short tier, and as
 * FLASH_TEST_STRIDE says. A prime number takes all of what cases are made of.
 */
static inline uint32_t tap_stride(void)
{
    return tap_given_stride() > 1 ? tap_given_stride() : tap_is_short() ? 19 : 1;
}

/*
 * FLASH_TEST_PART=K/N in the environment: whether the case of that number is of the Kth part of N;
 * without it, yes.
 */
static inline bool tap_is_in_part(unsigned long number)
{
    const char *value = getenv("FLASH_TEST_PART");
    unsigned long part, parts;

    return value == NULL || sscanf(value, "%lu/%lu", &part, &parts) != 2 || parts == 0 ||
           number % parts == part;
}

#endif /* TAP_H */
