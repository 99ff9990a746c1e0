/*
 * keep_libraries.h: for one source of each program, in builds with a sanitizer.
 *
 * Open MPI unloads its components before the sanitizers report, who could then neither name nor
 * suppress what happened in them: this stands in for libc's dlclose().
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifdef FLASH_SANITIZED
#include <dlfcn.h>

int dlclose(void *library)
{
    (void) library;
    return 0;
}
#endif
