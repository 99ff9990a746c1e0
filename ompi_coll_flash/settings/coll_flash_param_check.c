/*
 * coll_flash_param_check.c: parameters that are misspelt, in the environment or on mpirun's command
 * line, which reaches processes through the environment.
 *
 * Open MPI itself refuses a word that a parameter does not take, and what does not fit into an
 * `unsigned`. But of a number it takes the digits that come first: 1x is 1, 9o is 9, abc is 0, and
 * a size of -1 is one that nothing reaches. And a name that nobody asks for is nobody's to refuse.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings/coll_flash_params.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "OMPI_MCA_coll_flash_"

/* As Open MPI reads it: digits, hexadecimal ones with 0x, and one of k, m and g. */
static bool is_number(const char *text, bool may_be_negative)
{
    char *end;

    text += strspn(text, " \t");
    if (*text == '\0') {
        return true; /* 0 */
    }
    text += text[0] == '+' || (may_be_negative && text[0] == '-');
    if (!isdigit((unsigned char) text[0])) {
        return false;
    }
    errno = 0;
    (void) strtoull(text, &end, 0);
    if (errno != 0) {
        return false;
    }
    if (*end != '\0' && strchr("kKmMgG", *end) != NULL) {
        end++;
        end += *end == 'i';
        end += *end == 'B' || *end == 'b';
    }
    return end[strspn(end, " \t")] == '\0';
}

static size_t size_of(mca_base_var_type_t type)
{
    return type == MCA_BASE_VAR_TYPE_SIZE_T ? sizeof(size_t) : sizeof(int);
}

static bool has_number(const mca_base_var_t *variable)
{
    return variable->mbv_enumerator == NULL &&
           (variable->mbv_type == MCA_BASE_VAR_TYPE_SIZE_T ||
            variable->mbv_type == MCA_BASE_VAR_TYPE_INT ||
            variable->mbv_type == MCA_BASE_VAR_TYPE_UNSIGNED_INT);
}

static void check_number(const mca_base_var_t *variable, const char *name, const char *text,
                         const mca_coll_flash_params_t *before)
{
    bool may_be_negative = variable->mbv_type == MCA_BASE_VAR_TYPE_INT;
    char *storage = (char *) variable->mbv_storage;
    ptrdiff_t offset = storage - (char *) &mca_coll_flash_params;

    if (is_number(text, may_be_negative)) {
        return;
    }
    memcpy(storage, (const char *) before + offset, size_of(variable->mbv_type));
    FLASH_HELP("parameter-ignored", name, text, opal_process_info.nodename, (int) getpid(),
               may_be_negative ? "a whole number"
                               : "a whole number, not below 0; 64k, 8m and 1g "
                                 "are numbers, too");
}

static void check(const char *name, const char *text, const mca_coll_flash_params_t *before)
{
    const mca_base_var_t *variable;
    int index = mca_base_var_find("ompi", "coll", "flash", name + strlen("coll_flash_"));

    if (index < 0 || mca_base_var_get(index, &variable) != OPAL_SUCCESS) {
        FLASH_HELP("parameter-unknown", name, text, opal_process_info.nodename, (int) getpid());
    } else if (has_number(variable) && variable->mbv_source != MCA_BASE_VAR_SOURCE_OVERRIDE) {
        check_number(variable, name, text, before);
    }
}

void mca_coll_flash_param_check(const mca_coll_flash_params_t *before)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        char name[64];
        size_t length;

        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0 || equals == NULL) {
            continue;
        }
        length = (size_t) (equals - *entry) - strlen("OMPI_MCA_");
        snprintf(name, sizeof(name), "%.*s", (int) length, *entry + strlen("OMPI_MCA_"));
        check(name, equals + 1, before);
    }
}
