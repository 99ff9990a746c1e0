/*
 * coll_flash_debt.c: references to the communicators of requests that failed.
 *
 * A request holds its communicator. When one has failed, Open MPI frees it first and then calls the
 * communicator's error handler, in the same thread: the reference must outlast that, even if the
 * user has freed the communicator long before. It is released when that thread starts its next
 * operation.
 *
 * Each thread has its own list: no other one could know that the handler has returned.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#include <stdlib.h>

typedef struct debt {
    struct debt *next;
    ompi_communicator_t *comm;
} debt_t;

static _Thread_local debt_t *debts;

void mca_coll_flash_owe(ompi_communicator_t *comm)
{
    debt_t *debt = malloc(sizeof(*debt));

    if (debt != NULL) { /* else the communicator stays for good */
        *debt = (debt_t){.next = debts, .comm = comm};
        debts = debt;
    }
}

void mca_coll_flash_settle(void)
{
    while (debts != NULL) {
        debt_t *debt = debts;

        debts = debt->next;
        OBJ_RELEASE(debt->comm);
        free(debt);
    }
}
