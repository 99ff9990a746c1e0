/*
 * coll_flash_params.h: MCA parameters: what a site or a user sets for a job.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_PARAMS_H
#define COLL_FLASH_PARAMS_H

#include "compat/coll_flash_compat.h"

#include <stdbool.h>
#include <stddef.h>

enum { FLASH_PROGRESS_AUTO, FLASH_PROGRESS_ON, FLASH_PROGRESS_OFF };

/* When UCX is opened: see component/coll_flash_late.c; in MPI_Init; with a call. */
enum { FLASH_SETUP_AUTO, FLASH_SETUP_INIT, FLASH_SETUP_CALL };

enum { FLASH_ORDER_MACHINE, FLASH_ORDER_RANK };

enum { FLASH_ON_NODE_AUTO, FLASH_ON_NODE_YES, FLASH_ON_NODE_NO };

enum { FLASH_GPUDIRECT_AUTO, FLASH_GPUDIRECT_YES, FLASH_GPUDIRECT_NO };

/* Shared memory on a node: not at all; by copies alone; by what is faster; by reading alone. */
enum { FLASH_SHM_NO, FLASH_SHM_COPY, FLASH_SHM_AUTO, FLASH_SHM_READ };

/*
 * Blocking calls: Open MPI's; by costs of their own; as non-blocking calls. The smallest holds where
 * ranks have different values.
 */
enum { FLASH_BLOCKING_NO, FLASH_BLOCKING_AUTO, FLASH_BLOCKING_YES };

/*
 * The longest block of an allgather of two ranks that goes through shared memory, two copies,
 * rather than being read, one copy and a wait for all readers: where both took the same time
 * (docs/performance.md).
 */
#define FLASH_SHM_READ_ABOVE ((size_t) 16 << 10)
/*
 * The most bytes, all blocks together, by recursive doubling: each operation has room for twice
 * that.
 */
#define FLASH_RECDBL_MOST    ((size_t) 1 << 20)

/* Above hcoll's, which is 90: of equal priorities it is not defined which one comes first. */
#define FLASH_DEFAULT_PRIORITY 95
/* That of libnbc, which flash needs below it: it would come first. */
#define FLASH_TOO_LOW_PRIORITY 10

/* MCA parameters. Set at registration; those that all ranks share, once more by the agreement. */
typedef struct mca_coll_flash_params {
    int priority;
    int progress; /* FLASH_PROGRESS_* */
    bool bind;
    int ring_order;    /* FLASH_ORDER_* */
    int setup;         /* FLASH_SETUP_* */
    bool late;         /* agreed on, no parameter: communicators are set up by their first calls */
    bool holds;        /* likewise: meanwhile non-blocking calls may be held */
    bool any_fabric;   /* serve by a slower one than Open MPI's, too */
    int algorithm;     /* mca_coll_flash_path_t, or FLASH_AUTO */
    char *costs;       /* a file, see coll_flash_costs.h; NULL or empty: the built-in table */
    int blocking;      /* FLASH_BLOCKING_* */
    int on_node;       /* FLASH_ON_NODE_*; agreed on: yes or no */
    int shm;           /* FLASH_SHM_*; agreed on: no where it cannot be used */
    bool shm_readable; /* agreed on, no parameter: each rank may read another's memory */
    bool recdbl;       /* agreed on, no parameter: each rank has memory for it */
    size_t segment_bytes;
    bool rdma;            /* no parameter: see mca_coll_flash_fabric_t; agreed; not if `late` */
    bool callback_thread; /* unless a communicator's info key says otherwise */
    unsigned segment_window, max_sends;
    size_t scratch_cache_bytes; /* of scratch memory */
    unsigned probe_seconds, stall_seconds;
    bool stall_error;
    int verbose;
    bool summary;
    char *trace; /* what the files' names begin with; NULL or empty: none */
    char *help_dir;
    char *cuda_plugin; /* its path; empty or "none": there is none */
    bool cuda_reduce;
    int cuda_gpudirect;      /* FLASH_GPUDIRECT_* */
    size_t cuda_cache_bytes; /* of pinned memory, and of a device's */
    size_t pinned_bytes;     /* of an operation's scratch; 0: what it wants */
} mca_coll_flash_params_t;

extern mca_coll_flash_params_t mca_coll_flash_params;
/* Of FLASH_SHM_* and of FLASH_BLOCKING_*. */
extern const char *const mca_coll_flash_shm_names[];
extern const char *const mca_coll_flash_blocking_names[];
extern int mca_coll_flash_output; /* stream of the verbose lines */

#define FLASH_VERBOSE(level, ...)                            \
    do {                                                     \
        if (mca_coll_flash_params.verbose >= (level)) {      \
            opal_output(mca_coll_flash_output, __VA_ARGS__); \
        }                                                    \
    } while (0)

/* Prints a topic of the help file, once a job for equal messages. */
#define FLASH_HELP(topic, ...) opal_show_help("help-mpi-coll-flash.txt", topic, true, __VA_ARGS__)

/*
 * After registration, from what environment and command line say: of names that are no parameters
 * of flash's it is said so, and numbers that are none are said, and have no effect: `before` has
 * what held without them.
 */
void mca_coll_flash_param_check(const mca_coll_flash_params_t *before);

/* The least a segment may have, and the most pieces to a block: the engine keeps a place for each.
 */
#define FLASH_LEAST_SEGMENT         64
/* Of pinned memory: to receive to, to send from, and for what is added. */
#define FLASH_LEAST_PINNED_SEGMENTS 3
#define FLASH_MAX_PIECES            4096

/* Declares all parameters to Open MPI, which sets them. OMPI_SUCCESS or OMPI_ERR_*. */
void mca_coll_flash_params_register(void);

/* False, and said: flash is to keep its hands off this Open MPI. */
bool mca_coll_flash_version_fits(void);
/*
 * In each call of the extension but MPIX_Flash_complete, before anything else: ends the program if it is not. Any thread.
 */
void mca_coll_flash_version_require(void);

#endif /* COLL_FLASH_PARAMS_H */
