/*
 * lost_late.h: a rank that is late.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LOST_LATE_H
#define LOST_LATE_H

enum { LOST_LATE_SECONDS = 6 };

/*
 * Returns FLASH_TEST_LINGER seconds after each of the others has said what FLASH_TEST_UNTIL holds;
 * without that in the environment, after LOST_LATE_SECONDS.
 */
void lost_come_late(void);

/* How many files the process has open, more or less. */
int lost_open_files(void);

#endif /* LOST_LATE_H */
