/*
 * coll_flash_version.c: whether the MPI of this process is the Open MPI that flash was built for.
 *
 * Flash goes by structures of Open MPI's that change from one series to the next, and
 * libmpi.so.40 is the name of the library in all of them: the dynamic linker lets flash be loaded
 * into another one, and a program of another MPI may link flash's library. MPI_Get_library_version
 * is what all of them have and what may be called at any time.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_params.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TEXT = 16384 }; /* more than any MPI's; a series of Open MPI's own has 256 */

typedef struct library {
    bool fits;
    char name[64]; /* the first words that it says of itself */
} library_t;

static library_t ask_library(void)
{
    char text[MOST_TEXT];
    library_t library = {.fits = false};
    int major = -1, minor = -1, length = 0;

    PMPI_Get_library_version(text, &length);
    library.fits = sscanf(text, "Open MPI v%d.%d", &major, &minor) == 2 &&
                   major == OMPI_MAJOR_VERSION && minor == OMPI_MINOR_VERSION;
    text[strcspn(text, ",\n")] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '\t' ? ' ' : *c;
    }
    snprintf(library.name, sizeof(library.name), "%.63s", text);
    return library;
}

static void print_built_for(char *text, size_t size)
{
    snprintf(text, size, "Open MPI v%d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
             OMPI_RELEASE_VERSION);
}

/*
 * By nothing of the other one's: its structures and functions are not those that the compiler knew.
 */
bool mca_coll_flash_version_fits(void)
{
    library_t library = ask_library();
    char built_for[sizeof(library.name)], host[256] = "";

    if (!library.fits) {
        print_built_for(built_for, sizeof(built_for));
        gethostname(host, sizeof(host) - 1);
        fprintf(
            stderr,
            "coll/flash was built for %s, and on host %s it is loaded by %s: it is\n"
            "not used, and a job that asks for it alone (`--mca coll flash`) ends. Remedy: build\n"
            "coll/flash with the mpicc of the Open MPI found, or run with the mpirun, libraries "
            "and\n"
            "component folder of Open MPI %d.%d (is there another one in PATH or "
            "LD_LIBRARY_PATH?).\n",
            built_for, host, library.name, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    }
    return library.fits;
}

/*
 * A program that was linked with this library and runs with another MPI: a call would read that
 * one's handles as Open MPI's pointers. A program that calls nothing of flash's is not concerned.
 */
void mca_coll_flash_version_require(void)
{
    static atomic_bool fits; /* relaxed: a thread that does not see it yet finds it out as well */
    library_t library;
    char built_for[sizeof(library.name)];

    if (atomic_load_explicit(&fits, memory_order_relaxed)) {
        return;
    }
    library = ask_library();
    if (library.fits) {
        atomic_store_explicit(&fits, true, memory_order_relaxed);
        return;
    }
    print_built_for(built_for, sizeof(built_for));
    fprintf(stderr,
            "libmpix_flash was built for %s, and this program runs with another MPI: %s.\n"
            "The program ends here. Remedy: link and run it with the compiler wrapper, the\n"
            "libraries and the mpirun of one Open MPI, %d.%d (`ldd` tells which libraries it\n"
            "finds, `mpirun --version` what starts it), or build coll/flash for the other one.\n",
            built_for, library.name, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    _exit(EXIT_FAILURE);
}
