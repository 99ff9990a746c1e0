/*
 * settings.c: see settings.h. Stands in for the functions of MPI that make communicators.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "settings.h"

#include <stdio.h>

#include "mpitest.h"

/* The environment's name of a parameter, and the key's. */
#define VARIABLE "OMPI_MCA_coll_flash_"
#define KEY      "mpix_flash_"

enum { MOST_LENGTH = 256, MOST_SETTINGS = 64 };

static MPI_Info usual = MPI_INFO_NULL;    /* the keys that MPI_COMM_WORLD began with */
static MPI_Info of_point = MPI_INFO_NULL; /* and those that hold for the point */

/* The variable of a setting: its own, or the parameter's. */
static void name_of(const char *setting, char name[MOST_LENGTH])
{
    bool own = strncmp(setting, "FLASH_TEST_", 11) == 0;

    snprintf(name, MOST_LENGTH, "%s%.*s", own ? "" : VARIABLE, (int) strcspn(setting, "="),
             setting);
}

static char *before[MOST_SETTINGS]; /* the variables' values outside of a point; NULL: none */

static void set_key(const char *setting)
{
    char key[MPI_MAX_INFO_KEY + 1];
    size_t length = strcspn(setting, "=");

    if (strncmp(setting, "FLASH_TEST_", 11) != 0) {
        snprintf(key, sizeof(key), KEY "%.*s", (int) length, setting);
        MPI_Info_set(of_point, key, setting + length + 1);
    }
}

static void put(const char *setting, char **old)
{
    char name[MOST_LENGTH];
    const char *value;

    name_of(setting, name);
    value = getenv(name);
    *old = value == NULL ? NULL : strdup(value);
    setenv(name, strchr(setting, '=') + 1, 1);
}

static void put_back(const char *setting, char *old)
{
    char name[MOST_LENGTH];

    name_of(setting, name);
    if (old == NULL) {
        unsetenv(name);
    } else {
        setenv(name, old, 1);
        free(old);
    }
}

/* The last setting of a variable holds: they are taken back in reverse order. */
void settings_export(char *const settings[], bool on)
{
    size_t count = 0;

    while (settings[count] != NULL && count < MOST_SETTINGS) {
        count++;
    }
    for (size_t k = 0; k < count && on; k++) {
        put(settings[k], &before[k]);
    }
    while (count > 0 && !on) {
        count--;
        put_back(settings[count], before[count]);
    }
}

void settings_begin(void)
{
    MPI_Comm_get_info(MPI_COMM_WORLD, &usual);
}

void settings_end(void)
{
    MPI_Info_free(&usual);
}

void settings_apply(char *const settings[])
{
    settings_export(settings, true);
    MPI_Info_dup(usual, &of_point);
    for (char *const *setting = settings; *setting != NULL; setting++) {
        set_key(*setting);
    }
    MPI_Comm_set_info(MPI_COMM_WORLD, of_point);
}

void settings_take_back(char *const settings[])
{
    MPI_Info_free(&of_point);
    MPI_Comm_set_info(MPI_COMM_WORLD, usual);
    settings_export(settings, false);
}

/* ------------------------------------------------- communicators that a point makes */

void settings_inherit(MPI_Comm comm)
{
    if (of_point != MPI_INFO_NULL) {
        MPI_Comm_set_info(comm, of_point);
    }
}

static int inherit(int error, const MPI_Comm *comm)
{
    if (error == MPI_SUCCESS && *comm != MPI_COMM_NULL) {
        settings_inherit(*comm);
    }
    return error;
}

static void add_keys(MPI_Info to, MPI_Info from)
{
    int count = 0;

    if (from != MPI_INFO_NULL) {
        MPI_Info_get_nkeys(from, &count);
    }
    for (int k = 0; k < count; k++) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
        int found;

        MPI_Info_get_nthkey(from, k, key);
        MPI_Info_get(from, key, MPI_MAX_INFO_VAL, value, &found);
        MPI_Info_set(to, key, value);
    }
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    return inherit(PMPI_Comm_dup(comm, made), made);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    return inherit(PMPI_Comm_split(comm, color, key, made), made);
}

/*
 * The keys that are given come last. They are there while the communicator is made, as without a
 * point.
 */
int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
    MPI_Info all;
    int error;

    if (of_point == MPI_INFO_NULL) {
        return PMPI_Comm_dup_with_info(comm, info, made);
    }
    MPI_Info_dup(of_point, &all);
    add_keys(all, info);
    error = PMPI_Comm_dup_with_info(comm, all, made);
    MPI_Info_free(&all);
    return error;
}
