/*
 * coll_flash_request.h: an operation as an MPI request.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_REQUEST_H
#define COLL_FLASH_REQUEST_H

#include "mpix_flash.h"
#include "request/coll_flash_algorithm.h"
#include "request/coll_flash_handle.h"

/* A user's callbacks, with what they are told about the pieces. */
typedef struct mca_coll_flash_compute {
    MPIX_Flash_compute_fn *produce; /* or NULL; an allgather's: the own block alone */
    void *produce_arg;
    MPIX_Flash_compute_fn *consume; /* or NULL; a reduce-scatter's: the own block alone */
    void *consume_arg;
    int pieces;
    MPI_Count row;
    bool on_stream; /* it leaves work in `stream` */
    void *stream;
    bool merge; /* they take several ranks' blocks at a time */
} mca_coll_flash_compute_t;

/*
 * Which operation of its communicator a call starts, and the settings that hold for it: the
 * communicator's at that time, or those that a persistent request has kept from when it was made.
 */
typedef struct mca_coll_flash_ticket {
    const mca_coll_flash_algorithm_t *algorithm;
    uint32_t sequence; /* of its operations on this communicator */
    const mca_coll_flash_settings_t *settings;
    flash_part_t part; /* of which `taken` lasts as long as the call */
} mca_coll_flash_ticket_t;

/*
 * An operation as the MPI layer sees it. Made from a free list, filled in by the files that
 * know the operations, handed to mca_coll_flash_request_start().
 */
typedef struct mca_coll_flash_request {
    mca_coll_flash_handle_t handle;
    mca_coll_flash_module_t *module;
    const mca_coll_flash_algorithm_t *algorithm;
    void *algorithm_state; /* its own, of state_bytes */
    uint32_t sequence;     /* of its ticket, as these are, which hold in the call that begins it: */
    const mca_coll_flash_settings_t *settings;
    int known_error;         /* from the start; or MPI_SUCCESS */
    bool told_stalled;       /* the lock of what it is under way in orders it */
    bool refused;            /* see mca_coll_flash_request_refuse() */
    bool on_callback_thread; /* a thread of flash's makes its callbacks */
    flash_kind_t kind;
    flash_part_t part;                /* its ticket's, */
    flash_steps_t *taken;             /* owned: what the part has; or NULL */
    mca_coll_flash_compute_t compute; /* without callbacks: a plain call */
    MPI_Datatype datatype;
    MPI_Datatype sendtype;       /* of what is produced; NULL: the same */
    MPI_Op op;                   /* NULL: no reduction */
    size_t *counts;              /* blocks, if unequal; owned */
    ptrdiff_t *displs;           /* owned */
    void *scratch;               /* owned: packed blocks, or the result of a call in place */
    void *packed;                /* owned: packed blocks that leave, or NULL */
    struct flash_stager *stager; /* owned: of buffers in a device's memory; or NULL */
    /* What comes before the callback for a piece: puts it where the user looks for it; or NULL. */
    int (*prepare)(const struct mca_coll_flash_request *request, const flash_piece_t *piece,
                   void **elements);
    /* What remains to be done, in an application thread, when the ring is complete; or NULL. */
    int (*finish)(struct mca_coll_flash_request *request);
    struct {
        void *recvbuf;
        MPI_Datatype recvtype;
        char *packed;              /* the blocks, in `scratch` */
        flash_counts_t recvcounts; /* likewise; NULL: equal blocks of recvcount */
        flash_displs_t displs;
        flash_count_t recvcount;
        size_t own_bytes;
    } deferred; /* arguments of `finish` */
} mca_coll_flash_request_t;

OBJ_CLASS_DECLARATION(mca_coll_flash_request_t);

/* Once the algorithms are known. */
int mca_coll_flash_requests_init(void);
void mca_coll_flash_requests_fini(void);

/* NULL if there is no memory. */
mca_coll_flash_request_t *mca_coll_flash_request_new(mca_coll_flash_module_t *module,
                                                     mca_coll_flash_ticket_t ticket,
                                                     flash_kind_t kind);
/* Room for unequal blocks of `count` sides: the request's counts and displs, to be filled in. */
int mca_coll_flash_request_blocks(mca_coll_flash_request_t *request, size_t count,
                                  flash_blocks_t *blocks);

/* Unequal blocks, as MPI gives them. */
typedef struct mca_coll_flash_side {
    flash_counts_t counts;
    flash_displs_t displs; /* NULL: one block behind another */
    size_t element;        /* of the operation's elements, what an element of the datatype has */
    ptrdiff_t extent;      /* likewise, what its extent has */
} mca_coll_flash_side_t;
/* The same, filled in. */
int mca_coll_flash_request_sides(mca_coll_flash_request_t *request,
                                 const mca_coll_flash_side_t *sides, size_t count,
                                 flash_blocks_t *blocks);
/*
 * Starts the operation that `params` describes but for peers, tags, depth and callback, which come
 * from the module and the request. If that fails, as mca_coll_flash_request_refuse().
 */
int mca_coll_flash_request_start(mca_coll_flash_request_t *request, flash_op_params_t *params,
                                 ompi_request_t **started);
/* For algorithms: ends one that has begun; what flash_op_t says of its end. */
void mca_coll_flash_request_ended(mca_coll_flash_request_t *request, int status,
                                  uint32_t failed_rank, bool has_orphans);
/* For algorithms, of one that cannot begin: it is refused, and ends with that error. */
void mca_coll_flash_request_fail(mca_coll_flash_request_t *request, int error);
/*
 * Instead of starting it: tells the other ranks that this one cannot take part, and has the request
 * end with `error` when that is done. If not even that is possible, returns the error, and the
 * request is gone.
 */
int mca_coll_flash_request_refuse(mca_coll_flash_request_t *request, int error,
                                  ompi_request_t **started);

#endif /* COLL_FLASH_REQUEST_H */
