/*
 * lost_victim.h: a rank that dies, and others that see it, or release what is left of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LOST_VICTIM_H
#define LOST_VICTIM_H

enum { LOST_VICTIM = 1 }; /* its rank */

/*
 * The state of a process as the kernel has it: 'Z' has ended, and nobody has waited for it. 0:
 * none.
 */
char lost_state_of(int pid);

/*
 * Before MPI_Init. From here on the victim is a child of the process that mpirun has started. That
 * one leaves the victim dead and not waited for, until each other rank has released it, or mpirun
 * is gone. mpirun itself would wait for it at once.
 */
void lost_guard_victim(void);
/* Of a victim that is not guarded: nothing. */
void lost_release(void);

/* The victim dies when all others have come here, and they go on when it is dead. */
void lost_see_victim_die(void);

#endif /* LOST_VICTIM_H */
