/*
 * messages.c: a library that is loaded before Open MPI's into each rank of a test: messages of help
 * files are written to the rank's own standard error, whole, before the call returns.
 *
 * With 4.1, components of Open MPI's own stay loaded: it unloads those of its runtime before it ends
 * the thread that runs their events, which in one job of a thousand jumps to where nothing is any more.
 *
 * FLASH_TEST_GPU in the environment: the host has a GPU, as far as a file in /dev tells.
 *
 * Open MPI hands them to mpirun, which prints each once a job, loses some that two ranks send at
 * once, and others of a process that ends soon after (4.1.4, 5.0.7): nothing that a test could
 * count.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

/*
 * Open MPI's libraries call by a pointer, opal_show_help. 4.1 sets it to a function of its runtime,
 * which this one replaces, and renders by a function that takes a bool. 5 begins with the right
 * value of the pointer, which is this library's then.
 */
#if OMPI_MAJOR_VERSION < 5
#define SHOW_HELP orte_show_help
typedef bool render_header_t;
#else
#define SHOW_HELP flash_test_show_help
typedef int render_header_t;
#endif

typedef char *render_fn(const char *file, const char *topic, render_header_t header,
                        va_list arguments);

int SHOW_HELP(const char *file, const char *topic, int header, ...);

int SHOW_HELP(const char *file, const char *topic, int header, ...)
{
    /* Looked up when it is needed: the shells that start a rank have this library as well. */
    render_fn *render = (render_fn *) (uintptr_t) dlsym(RTLD_DEFAULT, "opal_show_help_vstring");
    va_list arguments;
    char *text = NULL;

    if (render != NULL) {
        va_start(arguments, header);
        text = render(file, topic, header, arguments);
        va_end(arguments);
    }
    if (text == NULL || write(STDERR_FILENO, text, strlen(text)) < 0) {
        dprintf(STDERR_FILENO, "%s has no topic %s\n", file, topic);
    }
    free(text);
    return 0;
}

int access(const char *path, int mode)
{
    if (getenv("FLASH_TEST_GPU") != NULL && strcmp(path, "/dev/nvidiactl") == 0) {
        return 0;
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}

#if OMPI_MAJOR_VERSION < 5
static bool is_open_mpis(void *library)
{
    struct link_map *map = NULL;

    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && strstr(map->l_name, "/mca_") != NULL &&
           strstr(map->l_name, "/mca_coll_flash") == NULL;
}

int dlclose(void *library)
{
    int (*const next)(void *) = (int (*)(void *))(uintptr_t) dlsym(RTLD_NEXT, "dlclose");

    return is_open_mpis(library) ? 0 : next(library);
}
#endif

#if OMPI_MAJOR_VERSION >= 5
extern int (*opal_show_help)(const char *file, const char *topic, int header, ...);
int (*opal_show_help)(const char *file, const char *topic, int header, ...) = SHOW_HELP;
#endif
