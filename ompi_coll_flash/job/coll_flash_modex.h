/*
 * coll_flash_modex.h: what a process of the job tells others about itself, through PMIx.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_MODEX_H
#define COLL_FLASH_MODEX_H

#include "job/coll_flash_job.h"
#include "progress/flash_affinity.h"
#include "job/flash_process.h"

/*
 * Where a process has its sides of shared-memory channels: its descriptor, or -1, of that file. Who
 * can read its memory finds the file's inode once more at `address` there.
 */
typedef struct mca_coll_flash_shm_memory {
    int32_t descriptor;
    uint64_t device, inode, address;
} mca_coll_flash_shm_memory_t;

/* An address of one of its interfaces, in network byte order, and the bits of its network. */
typedef struct mca_coll_flash_network {
    uint32_t address, bits;
} mca_coll_flash_network_t;

enum { FLASH_NETWORKS_MAX = 4 };

/* The networks by which UCX may go; none: they are not known, or too many. */
typedef struct mca_coll_flash_networks {
    uint32_t count;
    mca_coll_flash_network_t of[FLASH_NETWORKS_MAX];
} mca_coll_flash_networks_t;

/* What the processes of its node alone are told. */
typedef struct mca_coll_flash_place {
    char binding[FLASH_AFFINITY_MAX];
    int32_t pid;
    uint64_t pid_space; /* in which pid is a name; 0: unknown */
    mca_coll_flash_shm_memory_t shm;
} mca_coll_flash_place_t;

/* What all are told. The address of its UCX worker follows. Both records are part of the wire protocol. */
typedef struct mca_coll_flash_modex {
    mca_coll_flash_networks_t networks;
    uint32_t address_bytes; /* 0: UCX is not usable there, or not open yet */
} mca_coll_flash_modex_t;

/* This process' records, before MPI_Init commits and exchanges what was published. `transport`: or NULL. */
void mca_coll_flash_modex_publish(flash_transport_t *transport, mca_coll_flash_shm_memory_t shm);
/* Whether the second had the address of this process' UCX worker. */
bool mca_coll_flash_modex_has_address(void);
/* A process'; to be freed. NULL if it published none. */
mca_coll_flash_modex_t *mca_coll_flash_modex_fetch(opal_process_name_t name);
/* That of a process of this node; likewise. */
mca_coll_flash_place_t *mca_coll_flash_place_fetch(opal_process_name_t name);
/*
 * The address of its UCX worker, of `length` bytes: that which it has told this process, see
 * mca_coll_flash_address_learn(), or the one in its record. NULL: neither.
 */
const void *mca_coll_flash_address_of(opal_process_name_t name, const mca_coll_flash_modex_t *modex,
                                      size_t *length);
/* Forgets those that it has been told. */
void mca_coll_flash_addresses_fini(void);
/* Whether this process knows that one of its node by its pid. `place`: or NULL. */
bool mca_coll_flash_place_is_near(const mca_coll_flash_place_t *place);
/* Finds this process' networks; in MPI_Init. */
mca_coll_flash_networks_t mca_coll_flash_networks_find(void);
/*
 * Whether UCX may connect this process to one with those networks, whichever of them it chooses;
 * else the cause in `reason`, of FLASH_UCX_REASON_MAX bytes.
 */
bool mca_coll_flash_networks_suit(const mca_coll_flash_networks_t *others, char *reason);
/* Of a near one: the process that the kernel knows. Without channels its number is not known. */
flash_process_t mca_coll_flash_place_process(const mca_coll_flash_place_t *place);

#endif /* COLL_FLASH_MODEX_H */
