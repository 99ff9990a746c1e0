/*
 * test_segments.c: how long segments are, and that the model's choice is the best one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_segments.h"
#include "tap.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static uint32_t segments_of(flash_kind_t kind, size_t element, const flash_link_t *link,
                            size_t bytes)
{
    flash_schedule_t schedule = {.kind = kind,
                                 .ring = {.nranks = 4},
                                 .pieces = 1,
                                 .row = 1,
                                 .blocks = {.count = bytes / element}};

    flash_segments_cut(&schedule, element, link);
    return flash_schedule_max_segments(&schedule);
}

static void is_cut(const char *what, flash_kind_t kind, const flash_link_t *link,
                   const uint32_t expected[6])
{
    static const size_t bytes[6] = {8, 256 * KIB, 512 * KIB, 2 * MIB, 16 * MIB, 64 * MIB};

    for (int k = 0; k < 6; k++) {
        uint32_t found = segments_of(kind, 8, link, bytes[k]);

        if (!ok(found == expected[k], "%s: %zu bytes in %u segments", what, bytes[k],
                expected[k])) {
            diag("%u", found);
        }
    }
}

/* What the model says that a block takes, beside its bytes. */
static double cost(const flash_link_t *link, bool reduces, double bytes, double segments)
{
    double apart = link->handshake + (reduces ? bytes / link->combine_rate : 0);

    return segments * link->message + apart / segments;
}

/* Between the bounds no other number of segments is better by more than a tenth. */
static void is_best(const char *what, flash_kind_t kind, const flash_link_t *link)
{
    bool best = true;

    for (size_t bytes = FLASH_USUAL_SEGMENT; bytes <= 64 * MIB; bytes += 100 * KIB) {
        uint32_t chosen = segments_of(kind, 4, link, bytes);
        double paid = cost(link, flash_schedule_reduces(kind), (double) bytes, chosen);

        for (uint32_t other = 1; other <= 2 * chosen; other++) {
            size_t length = bytes / other;

            if (length >= FLASH_USUAL_SEGMENT && length <= FLASH_LONGEST_SEGMENT &&
                paid > 1.1 * cost(link, flash_schedule_reduces(kind), (double) bytes, other)) {
                best = false;
                diag("%zu bytes: %u segments cost %.1f us, %u cost %.1f us", bytes, chosen,
                     1e6 * paid, other,
                     1e6 * cost(link, flash_schedule_reduces(kind), (double) bytes, other));
            }
        }
    }
    ok(best, "%s: the model has no better choice", what);
}

static void elements_of_any_size(void)
{
    bool so = true;

    for (size_t element = 1; element <= KIB; element += 1 + element / 3) {
        uint32_t one = segments_of(FLASH_REDUCE_SCATTER, element, &flash_link_rdma, 8 * MIB);
        uint32_t other = segments_of(FLASH_REDUCE_SCATTER, 1, &flash_link_rdma, 8 * MIB);

        so &= one >= 1 && one <= other + 1 && other <= one + 2;
    }
    ok(so, "the size of the elements makes next to no difference");
    ok(segments_of(FLASH_ALLGATHER, 32 * MIB, &flash_link_rdma, 64 * MIB) == 2,
       "an element is not cut");
}

static void equal_segments(void)
{
    flash_schedule_t schedule = {.kind = FLASH_ALLGATHER,
                                 .ring = {.nranks = 4},
                                 .pieces = 1,
                                 .row = 1,
                                 .blocks = {.count = MIB}};

    flash_segments_cut_equal(&schedule, 8, 4096);
    ok(flash_schedule_max_segment(&schedule) == 512, "segments as long as asked for");
    flash_segments_cut_equal(&schedule, 8192, 4096);
    ok(flash_schedule_max_segment(&schedule) == 1, "one element at least");
}

int main(void)
{
    is_cut("TCP, allgather", FLASH_ALLGATHER, NULL, (uint32_t[]){1, 1, 2, 8, 8, 16});
    is_cut("TCP, reduce-scatter", FLASH_REDUCE_SCATTER, NULL, (uint32_t[]){1, 1, 2, 8, 8, 16});
    is_cut("RDMA, allgather", FLASH_ALLGATHER, &flash_link_rdma, (uint32_t[]){1, 1, 1, 1, 4, 16});
    is_best("RDMA, allgather", FLASH_ALLGATHER, &flash_link_rdma);
    is_best("RDMA, reduce-scatter", FLASH_REDUCE_SCATTER, &flash_link_rdma);
    is_best("RDMA, allreduce", FLASH_ALLREDUCE, &flash_link_rdma);
    is_best("a long handshake, allgather", FLASH_ALLGATHER,
            &(flash_link_t){.handshake = 4e-4, .message = 1e-5, .combine_rate = 1e9});
    elements_of_any_size();
    equal_segments();
    return tap_done();
}
