/*
 * coll_flash_algorithm.h: what a way of serving calls is made of: a ring of messages, shared
 * memory, recursive doubling.
 *
 * A request lives the same way under each: made, filled in, begun or refused, ended
 * (coll_flash_request.h). An algorithm is what happens between its beginning and its end. Each is a
 * room of its own, which nothing below it knows: the component hands all of them to requests.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_ALGORITHM_H
#define COLL_FLASH_ALGORITHM_H

#include "request/coll_flash_module.h"

struct mca_coll_flash_request;

/* What of an operation is this rank's, see flash_schedule_t. */
typedef struct flash_part {
    uint32_t from_root;         /* of a kind with a root */
    const flash_steps_t *taken; /* of an exchange; NULL: all steps */
} flash_part_t;

typedef struct mca_coll_flash_algorithm {
    /* Of a request: behind what all requests have. */
    size_t state_bytes;
    /* What warnings say behind the name of an operation; NULL: the operation id. */
    const char *told;
    /* Whether it may give a silent rank up: not where Open MPI's own messages are under way. */
    bool gives_up;
    /*
     * Before a request of that kind begins, in its call: what the communicator needs for it, this rank
     * taking that part in it. MPI_SUCCESS, or an error, of which the other ranks have not heard.
     * NULL: nothing.
     */
    int (*prepare)(mca_coll_flash_module_t *module, flash_kind_t kind, flash_part_t part);
    /*
     * Begins the request, in its call, or has it begin later. Of one that is refused
     * (params->element is 0), tells the other ranks. Ends by mca_coll_flash_request_ended(), which
     * may be at once.
     */
    void (*begin)(struct mca_coll_flash_request *request, flash_op_params_t *params);
    /* Tells the other ranks that this one has no memory for the request with that operation id. */
    void (*refuse)(mca_coll_flash_module_t *module, uint32_t sequence, flash_kind_t kind,
                   flash_part_t part);
    /* Moves its requests on, and ends those that are done. Returns 0 if nothing happened. */
    int (*progress)(void);
    /* Whether there are any. */
    bool (*is_busy)(void);
    /* Once a second, while there are: looks for ranks that have fallen silent. */
    void (*watch)(void);
    /* The communicator goes. NULL: it has nothing of it. */
    void (*forget)(mca_coll_flash_module_t *module);
} mca_coll_flash_algorithm_t;

/* When the component is opened; until it is closed. */
void mca_coll_flash_algorithms_open(const mca_coll_flash_algorithm_t *const *algorithms,
                                    size_t count);
/* The largest of their states, in bytes. */
size_t mca_coll_flash_algorithms_state(void);
void mca_coll_flash_algorithms_forget(mca_coll_flash_module_t *module);
/* With the first operation: has Open MPI's progress move all of them on, from now on. */
void mca_coll_flash_poll(void);
/* In MPI_Init and MPI_Finalize: no longer. */
void mca_coll_flash_unpoll(void);

#endif /* COLL_FLASH_ALGORITHM_H */
