/*
 * coll_flash_networks.c: the networks that Open MPI's own messages by TCP are told to use.
 *
 * A host may have interfaces that do not lead to the other hosts, and addresses that each of them has (docker0,
 * virbr0): UCX takes those for networks. Who has told Open MPI which ones are (btl_tcp_if_include,
 * btl_tcp_if_exclude) has told flash.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_ucx.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/coll_flash_compat.h"

/* What a parameter of btl/tcp's has been set to; NULL: nothing, or that component is not in use. */
static const char *told(const char *parameter)
{
    int index = mca_base_var_find("opal", "btl", "tcp", parameter);
    const char *const *value = NULL;
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;

    if (index < 0 || mca_base_var_get_value(index, &value, &source, NULL) != OPAL_SUCCESS ||
        source == MCA_BASE_VAR_SOURCE_DEFAULT || value == NULL) {
        return NULL;
    }
    return *value;
}

/* `word` of `length`: a name, or a network as 10.0.0.0/8. */
static bool fits(const struct ifaddrs *interface, const char *word, size_t length)
{
    const struct sockaddr_in *address =
        (const struct sockaddr_in *) (const void *) interface->ifa_addr;
    char text[64];
    struct in_addr network;
    uint32_t mask;
    char *slash;
    int bits;

    if (length >= sizeof(text)) {
        return false;
    }
    memcpy(text, word, length);
    text[length] = '\0';
    slash = strchr(text, '/');
    if (slash == NULL) {
        return strcmp(text, interface->ifa_name) == 0;
    }
    *slash = '\0';
    bits = atoi(slash + 1);
    if (inet_pton(AF_INET, text, &network) != 1 || bits < 0 || bits > 32) {
        return false;
    }
    mask = bits == 0 ? 0 : htonl(UINT32_MAX << (32 - bits));
    return (address->sin_addr.s_addr & mask) == (network.s_addr & mask);
}

static bool is_listed(const struct ifaddrs *interface, const char *list)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ",");

        if (fits(interface, list, length)) {
            return true;
        }
        list += length + (list[length] == ',');
    }
    return false;
}

static bool is_meant(const struct ifaddrs *interface, const char *include, const char *exclude)
{
    if (interface->ifa_addr == NULL || interface->ifa_addr->sa_family != AF_INET ||
        (interface->ifa_flags & IFF_UP) == 0) {
        return false;
    }
    return include != NULL
               ? is_listed(interface, include)
               : (interface->ifa_flags & IFF_LOOPBACK) == 0 && !is_listed(interface, exclude);
}

/* One that has several addresses comes once. False: there is no room. */
static bool add(char *list, size_t size, const char *name)
{
    char before[IFNAMSIZ + 2], whole[IFNAMSIZ + 2];
    size_t length = strlen(list);

    snprintf(before, sizeof(before), ",%s,", name);
    snprintf(whole, sizeof(whole), "%s,", name);
    if (strstr(list, before) != NULL || strncmp(list, whole, strlen(whole)) == 0) {
        return true;
    }
    return (size_t) snprintf(list + length, size - length, "%s,", name) < size - length;
}

bool mca_coll_flash_networks(char *list, size_t size)
{
    const char *include = told("if_include"), *exclude = told("if_exclude");
    struct ifaddrs *interfaces;
    bool all = true;

    list[0] = '\0';
    if ((include == NULL && exclude == NULL) || getifaddrs(&interfaces) != 0) {
        return false;
    }
    for (const struct ifaddrs *interface = interfaces; interface != NULL;
         interface = interface->ifa_next) {
        if (is_meant(interface, include, exclude)) {
            all &= add(list, size, interface->ifa_name);
        }
    }
    freeifaddrs(interfaces);
    if (!all || list[0] == '\0') {
        return false;
    }
    list[strlen(list) - 1] = '\0';
    return true;
}
