/*
 * coll_flash_board_watch.c: ranks of a node that fall silent.
 *
 * Who is on a board is kept waiting while a message about one is shown.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_silence.h"
#include "shm/coll_flash_board.h"

/* Whoever it is: others may wait for each other, because it has not taken what they posted. */
static void lose_who_is_gone(flash_board_t *board, ompi_group_t *group)
{
    for (uint32_t rank = 0; rank < flash_board_ranks(board); rank++) {
        if (mca_coll_flash_board_rank_is_gone(ompi_group_get_proc_name(group, (int) rank).vpid)) {
            flash_board_lose(board, rank);
        }
    }
}

/* Under the boards' lock. Whom this rank shares memory with is on its node: the kernel knows. */
static void look_at_board(flash_board_t *board)
{
    flash_silence_t silence;
    mca_coll_flash_report_t report;

    if (!flash_board_watch(board, &silence)) {
        return;
    }
    mca_coll_flash_silence_describe(&report, 0, &silence);
    if (report.stuck) {
        mca_coll_flash_silence_warn(&silence, &report);
    }
    if (report.gives_up) {
        flash_board_lose(board, silence.rank);
    }
    if (report.asks) {
        lose_who_is_gone(board, report.group);
    }
    OBJ_RELEASE(report.group);
}

void mca_coll_flash_boards_watch(void)
{
    mca_coll_flash_boards_each(look_at_board);
}
