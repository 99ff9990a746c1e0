/*
 * flash_ucx_ways.h: the ways by which UCX reaches others: transports, each over a device.
 *
 * All versions of UCX print those of a context and of an endpoint. UCX 1.14 and later have a call
 * that returns those of an endpoint, and none has one for those of a context. This file knows no
 * UCX, so that tests can read what UCX prints on other machines.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_UCX_WAYS_H
#define FLASH_UCX_WAYS_H

#include <stdbool.h>

#define FLASH_UCX_WAYS_MAX     256  /* bytes for the names of all of them */
#define FLASH_UCX_NETWORKS_MAX 1024 /* bytes for a list of interfaces, with commas */

typedef struct flash_ucx_ways {
    bool tcp;    /* one of them is TCP */
    bool faster; /* one leads to other hosts, and is not TCP */
    char names
        [FLASH_UCX_WAYS_MAX]; /* of those that lead to other hosts: "tcp (eth0), rc_mlx5 (mlx5_0:1)" */
    char tcp_devices[FLASH_UCX_NETWORKS_MAX]; /* of those by TCP: "eth0,ib0" */
} flash_ucx_ways_t;

/*
 * The ways in what ucp_context_print_info() or ucp_ep_print_info() printed, which is cut into
 * lines.
 */
void flash_ucx_ways_read(char *printed, flash_ucx_ways_t *ways);

/*
 * The words of `devices` that `networks` has, too, where it has any; else, or if `networks` is NULL,
 * all of `devices`.
 */
void flash_ucx_ways_choose(const char *devices, const char *networks,
                           char chosen[FLASH_UCX_NETWORKS_MAX]);

#endif /* FLASH_UCX_WAYS_H */
