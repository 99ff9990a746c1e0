/*
 * coll_flash_networks.c: the networks by which UCX is to go, and whether they lead to a peer.
 *
 * A host may have interfaces that do not lead to the other hosts, and addresses that each of them
 * has (docker0, virbr0). UCX takes those for networks. A user tells Open MPI which interfaces are
 * networks by btl_tcp_if_include and btl_tcp_if_exclude; UCX gets the same ones, by the rules of
 * btl/tcp.
 *
 * Open MPI connects two hosts by networks that both have. UCX 1.13 takes any of the peer's addresses,
 * and waits in the call until it is connected, or until TCP gives up after minutes. So flash does not
 * try where two hosts have a network in common, and one has another that the other has not. (Where
 * they have none in common, there are routes between networks.)
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_modex.h"
#include "job/coll_flash_ucx.h"

#include <arpa/inet.h>
#include <dirent.h>
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

/* ------------------------------------------------------------------ what UCX uses */

/* What Open MPI is told of interfaces. */
typedef struct lists {
    const char *include, *exclude; /* NULL: nothing */
} lists_t;

static lists_t read_lists(void)
{
    return (lists_t){.include = told("if_include"), .exclude = told("if_exclude")};
}

static bool is_chosen(const struct ifaddrs *interfaces, const struct ifaddrs *interface,
                      lists_t lists)
{
    if (lists.include != NULL) {
        return is_listed(interfaces, interface, lists.include, false);
    }
    return (interface->ifa_flags & IFF_LOOPBACK) == 0 &&
           (lists.exclude == NULL || !is_listed(interfaces, interface, lists.exclude, true));
}

bool mca_coll_flash_interfaces(char *list, size_t size)
{
    lists_t lists = read_lists();
    struct ifaddrs *interfaces;
    bool all = true;

    list[0] = '\0';
    if ((lists.include == NULL && lists.exclude == NULL) || getifaddrs(&interfaces) != 0) {
        return false;
    }
    for (const struct ifaddrs *interface = interfaces; interface != NULL;
         interface = interface->ifa_next) {
        if (is_usable(interface) && is_chosen(interfaces, interface, lists)) {
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

/* ------------------------------------------------------------ whether they lead to a peer */

static mca_coll_flash_networks_t own; /* written in MPI_Init */

static bool has_rdma_device(void)
{
    DIR *devices = opendir("/sys/class/infiniband");
    const struct dirent *device;
    bool found = false;

    while (devices != NULL && !found && (device = readdir(devices)) != NULL) {
        found = device->d_name[0] != '.';
    }
    if (devices != NULL) {
        closedir(devices);
    }
    return found;
}

/* Whether the user tells UCX itself, or UCX may find RDMA devices and take those. */
static bool is_up_to_ucx(void)
{
    static const char *const variables[] = {"UCX_FLASH_NET_DEVICES", "FLASH_UCX_NET_DEVICES",
                                            "UCX_NET_DEVICES"};

    for (size_t k = 0; k < sizeof(variables) / sizeof(variables[0]); k++) {
        if (getenv(variables[k]) != NULL) {
            return true;
        }
    }
    return has_rdma_device();
}

static uint32_t address_of(const struct ifaddrs *interface)
{
    return ((const struct sockaddr_in *) (const void *) interface->ifa_addr)->sin_addr.s_addr;
}

static uint32_t bits_of(const struct ifaddrs *interface)
{
    const struct sockaddr_in *mask =
        (const struct sockaddr_in *) (const void *) interface->ifa_netmask;

    return mask == NULL ? 32 : (uint32_t) __builtin_popcount(mask->sin_addr.s_addr);
}

/* UCX goes by the first address of an interface, and not to other hosts by the loopback's. */
static bool is_for_ucx(const struct ifaddrs *interfaces, const struct ifaddrs *interface)
{
    const unsigned wanted = IFF_UP | IFF_RUNNING, looked_at = wanted | IFF_LOOPBACK;

    if (!is_usable(interface) || (interface->ifa_flags & looked_at) != wanted) {
        return false;
    }
    while (!is_usable(interfaces) || !is_same(interfaces, interface)) {
        interfaces = interfaces->ifa_next;
    }
    return interfaces == interface;
}

/* False: there are more than a record has room for. */
static bool list_networks(const struct ifaddrs *interfaces, mca_coll_flash_networks_t *networks)
{
    lists_t lists = read_lists();

    for (const struct ifaddrs *interface = interfaces; interface != NULL;
         interface = interface->ifa_next) {
        if (is_for_ucx(interfaces, interface) && is_chosen(interfaces, interface, lists)) {
            if (networks->count == FLASH_NETWORKS_MAX) {
                return false;
            }
            networks->of[networks->count++] = (mca_coll_flash_network_t){
                .address = address_of(interface), .bits = bits_of(interface)};
        }
    }
    return true;
}

mca_coll_flash_networks_t mca_coll_flash_networks_find(void)
{
    struct ifaddrs *interfaces;

    own.count = 0;
    if (!is_up_to_ucx() && getifaddrs(&interfaces) == 0) {
        if (!list_networks(interfaces, &own)) {
            own.count = 0;
        }
        freeifaddrs(interfaces);
    }
    return own;
}

static uint32_t prefix_of(const mca_coll_flash_network_t *network)
{
    return network->bits == 0 ? 0 : network->address & htonl(UINT32_MAX << (32 - network->bits));
}

static bool has_address(const mca_coll_flash_networks_t *networks, uint32_t address)
{
    for (uint32_t k = 0; k < networks->count; k++) {
        if (networks->of[k].address == address) {
            return true;
        }
    }
    return false;
}

/* Whether one of the addresses is in that network. */
static bool has_network(const mca_coll_flash_networks_t *networks,
                        const mca_coll_flash_network_t *network)
{
    for (uint32_t k = 0; k < networks->count; k++) {
        if (networks->of[k].bits == network->bits &&
            prefix_of(&networks->of[k]) == prefix_of(network)) {
            return true;
        }
    }
    return false;
}

static uint32_t count_shared(const mca_coll_flash_networks_t *networks,
                             const mca_coll_flash_networks_t *others,
                             const mca_coll_flash_network_t **alone)
{
    uint32_t shared = 0;

    for (uint32_t k = 0; k < networks->count; k++) {
        bool both = has_network(others, &networks->of[k]);

        shared += both;
        *alone = both ? *alone : &networks->of[k];
    }
    return shared;
}

static uint32_t count_same(const mca_coll_flash_networks_t *networks,
                           const mca_coll_flash_networks_t *others, uint32_t *address)
{
    uint32_t same = 0;

    for (uint32_t k = 0; k < networks->count; k++) {
        if (has_address(others, networks->of[k].address)) {
            *address = networks->of[k].address;
            same++;
        }
    }
    return same;
}

static const char remedy[] =
    "name the interfaces that lead to all hosts by btl_tcp_if_include or UCX_NET_DEVICES";

bool mca_coll_flash_networks_suit(const mca_coll_flash_networks_t *others, char *reason)
{
    const mca_coll_flash_network_t *alone = NULL;
    char text[INET_ADDRSTRLEN];
    uint32_t address = 0, same = count_same(&own, others, &address), shared;
    struct in_addr prefix;

    if (own.count == 0 || others->count == 0 ||
        (same == own.count && same == others->count)) { /* not known, or this host */
        return true;
    }
    if (same > 0) {
        inet_ntop(AF_INET, &address, text, sizeof(text));
        snprintf(reason, FLASH_UCX_REASON_MAX,
                 "the peer's host has this one's address %s, which UCX may choose: %s", text,
                 remedy);
        return false;
    }
    shared = count_shared(&own, others, &alone) + count_shared(others, &own, &alone);
    if (shared == 0 || alone == NULL) {
        return true;
    }
    prefix.s_addr = prefix_of(alone);
    inet_ntop(AF_INET, &prefix, text, sizeof(text));
    snprintf(reason, FLASH_UCX_REASON_MAX,
             "either this host or the peer's is not in the network %s/%u, which UCX may choose: %s",
             text, alone->bits, remedy);
    return false;
}
