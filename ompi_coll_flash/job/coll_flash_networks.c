/*
 * coll_flash_networks.c: the networks that Open MPI's own messages by TCP are told to use.
 *
 * A host may have interfaces that do not lead to the other hosts, and addresses that each of them
 * has (docker0, virbr0). UCX takes those for networks. A user tells Open MPI which interfaces are
 * networks by btl_tcp_if_include and btl_tcp_if_exclude; UCX gets the same ones, by the rules of
 * btl/tcp.
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
        source == MCA_BASE_VAR_SOURCE_DEFAULT || value == NULL || *value == NULL ||
        (*value)[0] == '\0') {
        return NULL;
    }
    return *value;
}

/*
 * An address with a label, as eth0:1, is listed under that: of the interface the part before
 * counts.
 */
static size_t name_length(const struct ifaddrs *interface)
{
    return strcspn(interface->ifa_name, ":");
}

static bool is_same(const struct ifaddrs *one, const struct ifaddrs *other)
{
    return name_length(one) == name_length(other) &&
           strncmp(one->ifa_name, other->ifa_name, name_length(one)) == 0;
}

/* `network`: as 10.0.0.0/8. */
static bool is_within(const struct ifaddrs *interface, const char *network, const char *slash)
{
    const struct sockaddr_in *address =
        (const struct sockaddr_in *) (const void *) interface->ifa_addr;
    char text[INET_ADDRSTRLEN];
    struct in_addr prefix;
    uint32_t mask;
    int bits = atoi(slash + 1);

    if ((size_t) (slash - network) >= sizeof(text) || bits < 0 || bits > 32) {
        return false;
    }
    memcpy(text, network, (size_t) (slash - network));
    text[slash - network] = '\0';
    if (inet_pton(AF_INET, text, &prefix) != 1) {
        return false;
    }
    mask = bits == 0 ? 0 : htonl(UINT32_MAX << (32 - bits));
    return (address->sin_addr.s_addr & mask) == (prefix.s_addr & mask);
}

/* A word of a list: a network, a name, or, of what is excluded, what a name begins with. */
static bool fits(const struct ifaddrs *interface, const char *word, size_t length, bool begins)
{
    const char *slash = memchr(word, '/', length);

    if (slash != NULL) {
        return is_within(interface, word, slash);
    }
    return length <= name_length(interface) && strncmp(interface->ifa_name, word, length) == 0 &&
           (begins || length == name_length(interface));
}

static bool is_usable(const struct ifaddrs *interface)
{
    return interface->ifa_addr != NULL && interface->ifa_addr->sa_family == AF_INET &&
           (interface->ifa_flags & IFF_UP) != 0;
}

/* Whether an address of that interface is in the list. */
static bool is_listed(const struct ifaddrs *interfaces, const struct ifaddrs *interface,
                      const char *list, bool begins)
{
    for (const struct ifaddrs *address = interfaces; address != NULL; address = address->ifa_next) {
        const char *word = list;

        while (is_usable(address) && is_same(address, interface) && *word != '\0') {
            size_t length = strcspn(word, ",");

            if (length > 0 && fits(address, word, length, begins)) {
                return true;
            }
            word += length + (word[length] == ',');
        }
    }
    return false;
}

/* One that has several addresses comes once. False: there is no room. */
static bool add(char *list, size_t size, const struct ifaddrs *interface)
{
    char word[IFNAMSIZ + 3], listed[FLASH_UCX_NETWORKS_MAX + 2];
    size_t length = strlen(list);

    snprintf(word, sizeof(word), ",%.*s,", (int) name_length(interface), interface->ifa_name);
    snprintf(listed, sizeof(listed), ",%s", list);
    if (strstr(listed, word) != NULL) {
        return true;
    }
    return (size_t) snprintf(list + length, size - length, "%s", word + 1) < size - length;
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
        if (is_usable(interface) &&
            (include != NULL ? is_listed(interfaces, interface, include, false)
                             : (interface->ifa_flags & IFF_LOOPBACK) == 0 &&
                                   !is_listed(interfaces, interface, exclude, true))) {
            all &= add(list, size, interface);
        }
    }
    freeifaddrs(interfaces);
    if (!all || list[0] == '\0') {
        return false;
    }
    list[strlen(list) - 1] = '\0';
    return true;
}
