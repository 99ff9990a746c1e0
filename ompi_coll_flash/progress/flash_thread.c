/*
 * flash_thread.c: see flash_thread.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_thread.h"

#include <signal.h>

bool flash_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t others, before;
    int rc;

    sigfillset(&others);
    for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++) {
        sigdelset(&others, own[k]);
    }
    pthread_sigmask(SIG_SETMASK, &others, &before);
    rc = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        pthread_setname_np(*thread, name);
    }
    return rc == 0;
}
