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

#include <link.h>
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
    static char text[MOST_TEXT]; /* asked by one thread at a time: at the start, and in MPI_Init */
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

static int is_component(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void) size, (void) arg;
    return strstr(info->dlpi_name, "mca_coll_flash.so") != NULL;
}

/*
 * A program that was linked with this library and runs with another MPI: its first call here would
 * read that one's handles as Open MPI's pointers. To find out in each call would cost each call. A
 * component is not the program's doing: it declines when Open MPI asks it.
 */
__attribute__((constructor)) static void refuse_other_mpi(void)
{
    library_t library = ask_library();
    char built_for[sizeof(library.name)];

    if (library.fits || dl_iterate_phdr(is_component, NULL) != 0) {
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
