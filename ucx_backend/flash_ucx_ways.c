/*
 * flash_ucx_ways.c: see flash_ucx_ways.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_ways.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

typedef struct way {
    char transport[NAME_MAX_BYTES], device[NAME_MAX_BYTES];
} way_t;

/* Within a process or a host. */
static bool is_memory(const char *transport)
{
    static const char *const begins[] = {"self", "posix",    "sysv",  "cma",  "knem", "xpmem",
                                         "cuda", "gdr_copy", "gaudi", "rocm", "ze_"};

    for (size_t k = 0; k < sizeof(begins) / sizeof(begins[0]); k++) {
        if (strncmp(transport, begins[k], strlen(begins[k])) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * A line of an endpoint or of a context:
 *
 *     #                 lane[0]:  1:tcp/eth0.0 md[0]           -> md[0]/tcp/sysdev[255] am am_bw#0
 *     #      resource 1  :  md 1  dev 1  flags -- tcp/eth0
 */
static bool read_line(const char *line, way_t *way)
{
    char *path; /* behind the device: UCX counts the paths through it */

    if (sscanf(line, "# lane[%*d]: %*d:%63[^/]/%63s", way->transport, way->device) == 2) {
        path = strrchr(way->device, '.');
        if (path != NULL) {
            *path = '\0';
        }
        return true;
    }
    return sscanf(line, "# resource %*d : md %*d dev %*d flags %*s %63[^/]/%63s", way->transport,
                  way->device) == 2;
}

/* Several lanes may be the same way. Names that have no room are left out. */
static void add(const way_t *way, char names[FLASH_UCX_WAYS_MAX])
{
    char name[2 * NAME_MAX_BYTES + 4];
    size_t length = strlen(names);

    snprintf(name, sizeof(name), "%s (%s)", way->transport, way->device);
    if (strstr(names, name) == NULL && length + strlen(name) + 2 < FLASH_UCX_WAYS_MAX) {
        sprintf(names + length, "%s%s", length == 0 ? "" : ", ", name);
    }
}

static bool has_word(const char *list, const char *word, size_t length)
{
    for (; *list != '\0'; list += strcspn(list, ","), list += *list == ',') {
        if (strcspn(list, ",") == length && strncmp(list, word, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Each word once. A word that has no room is left out. */
static void append(char list[FLASH_UCX_NETWORKS_MAX], const char *word, size_t length)
{
    size_t used = strlen(list);

    if (!has_word(list, word, length) && used + length + 2 <= FLASH_UCX_NETWORKS_MAX) {
        sprintf(list + used, "%s%.*s", used == 0 ? "" : ",", (int) length, word);
    }
}

void flash_ucx_ways_choose(const char *devices, const char *networks,
                           char chosen[FLASH_UCX_NETWORKS_MAX])
{
    chosen[0] = '\0';
    for (const char *word = devices; networks != NULL && *word != '\0';) {
        size_t length = strcspn(word, ",");

        if (has_word(networks, word, length)) {
            append(chosen, word, length);
        }
        word += length + (word[length] == ',');
    }
    if (chosen[0] == '\0') {
        snprintf(chosen, FLASH_UCX_NETWORKS_MAX, "%s", devices);
    }
}

void flash_ucx_ways_read(char *printed, flash_ucx_ways_t *ways)
{
    char *rest, *line;
    way_t way;

    *ways = (flash_ucx_ways_t){.tcp = false};
    for (line = strtok_r(printed, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (read_line(line, &way) && !is_memory(way.transport)) {
            bool tcp = strcmp(way.transport, "tcp") == 0;

            ways->tcp |= tcp;
            ways->faster |= !tcp;
            add(&way, ways->names);
            if (tcp) {
                append(ways->tcp_devices, way.device, strlen(way.device));
            }
        }
    }
}
