/*
 * test_recdbl.c: rounds of recursive doubling, for 1 to 70 ranks: who sends what is what the other
 * expects, all have all in the end, and each contribution is in its sum once.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "recdbl/flash_recdbl.h"
#include "tap.h"

enum { MOST = 70 };

static bool is_matched(uint32_t nranks, uint32_t rank, bool gathers, uint32_t round)
{
    flash_recdbl_round_t mine = flash_recdbl_round(nranks, rank, gathers, round);
    flash_recdbl_round_t other = flash_recdbl_round(nranks, mine.to, gathers, round);
    bool matched = other.from == rank && other.receives.count == mine.sends.count &&
                   mine.sends.count > 0 && mine.to != rank &&
                   mine.sends.first + mine.sends.count <= nranks;

    for (uint32_t k = 0; k < mine.sends.count; k++) {
        matched &= flash_recdbl_block(nranks, rank, mine.sends.first + k) ==
                   flash_recdbl_block(nranks, mine.to, other.receives.first + k);
    }
    return matched;
}

/* No tag tells rounds apart. */
static bool meets_nobody_twice(uint32_t nranks, uint32_t rank, bool gathers)
{
    bool met[MOST] = {false}, once = true;

    for (uint32_t round = 0; round < flash_recdbl_rounds(nranks); round++) {
        uint32_t to = flash_recdbl_round(nranks, rank, gathers, round).to;

        once &= !met[to];
        met[to] = true;
    }
    return once;
}

static bool all_matched(uint32_t nranks, bool gathers)
{
    bool matched = true;

    for (uint32_t rank = 0; rank < nranks; rank++) {
        for (uint32_t round = 0; round < flash_recdbl_rounds(nranks); round++) {
            matched &= is_matched(nranks, rank, gathers, round);
        }
        matched &= meets_nobody_twice(nranks, rank, gathers);
    }
    return matched;
}

/* holds[rank][block][from]: how often a rank's sum for a block has that one's contribution. */
static unsigned char holds[MOST][MOST][MOST], before[MOST][MOST][MOST];

static bool sums_are_right(uint32_t nranks)
{
    bool right = true;

    memset(holds, 0, sizeof(holds));
    for (uint32_t rank = 0; rank < nranks; rank++) {
        for (uint32_t block = 0; block < nranks; block++) {
            holds[rank][block][rank] = 1;
        }
    }
    for (uint32_t round = 0; round < flash_recdbl_rounds(nranks); round++) {
        memcpy(before, holds, sizeof(holds));
        for (uint32_t rank = 0; rank < nranks; rank++) {
            flash_recdbl_round_t mine = flash_recdbl_round(nranks, rank, false, round);

            for (uint32_t k = 0; k < mine.receives.count; k++) {
                uint32_t block = flash_recdbl_block(nranks, rank, mine.receives.first + k);

                for (uint32_t from = 0; from < nranks; from++) {
                    holds[rank][block][from] += before[mine.from][block][from];
                }
            }
        }
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        for (uint32_t from = 0; from < nranks; from++) {
            right &= holds[rank][rank][from] == 1;
        }
    }
    return right;
}

static bool all_have_all(uint32_t nranks)
{
    static bool has[MOST][MOST], had[MOST][MOST];
    bool right = true;

    memset(has, 0, sizeof(has));
    for (uint32_t rank = 0; rank < nranks; rank++) {
        has[rank][rank] = true;
    }
    for (uint32_t round = 0; round < flash_recdbl_rounds(nranks); round++) {
        memcpy(had, has, sizeof(has));
        for (uint32_t rank = 0; rank < nranks; rank++) {
            flash_recdbl_round_t mine = flash_recdbl_round(nranks, rank, true, round);

            for (uint32_t k = 0; k < mine.receives.count; k++) {
                uint32_t block = flash_recdbl_block(nranks, rank, mine.receives.first + k);

                right &= !has[rank][block] && had[mine.from][block];
                has[rank][block] = true;
            }
        }
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        for (uint32_t block = 0; block < nranks; block++) {
            right &= has[rank][block];
        }
    }
    return right;
}

int main(void)
{
    bool gathered = true, summed = true, matched = true;

    for (uint32_t nranks = 1; nranks <= MOST; nranks++) {
        matched &= all_matched(nranks, true) && all_matched(nranks, false);
        gathered &= all_have_all(nranks);
        summed &= sums_are_right(nranks);
    }
    ok(matched, "what a rank sends is what the other expects, and pairs meet once");
    ok(gathered, "allgathers: all have all, each block once");
    ok(summed, "reduce-scatters: each contribution is in its sum once");
    ok(flash_recdbl_rounds(1) == 0 && flash_recdbl_rounds(2) == 1 && flash_recdbl_rounds(5) == 3 &&
           flash_recdbl_rounds(64) == 6,
       "rounds");
    return tap_done();
}
