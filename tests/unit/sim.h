/*
 * sim.h: a ring of engines over the fake transport, and everything that is to be true of it.
 *
 * A simulation runs a list of operations, each on all ranks. The functions below are the moves
 * that the threads of a real program could make, in any order; each move checks what it sees. The
 * first thing that is wrong is kept in words, later ones are consequences.
 *
 * Elements are 64-bit numbers that tell who contributed what, so that data in a wrong place shows.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_transport.h"
#include "engine/flash_engine.h"

#define SIM_NOBODY UINT32_MAX
#define SIM_ALL_WORK                                                                           \
    (FLASH_WORK_STAGE | FLASH_WORK_COMBINE | FLASH_WORK_CALLBACKS | FLASH_WORK_USERS_COMBINE | \
     FLASH_WORK_COPY)
#define SIM_ERR_CALL   71 /* what a failing callback returns */
#define SIM_ERR_ADD    72 /* what a failing combine returns */
#define SIM_ERR_STAGE  73 /* what a failing copy to or from the scratch ends with */
#define SIM_MAX_OPS    8
#define SIM_ELEMENT    sizeof(uint64_t)
#define SIM_UNWRITTEN  0x3b /* bytes of the engine's scratch before it is used */
#define SIM_UNSTARTED  (-100)
#define SIM_UNFINISHED (-101)

/* How the ring's data is laid out and cut. */
typedef struct sim_shape {
    size_t count;         /* elements in each block, if counts is NULL */
    const size_t *counts; /* for each block; the caller's */
    bool scattered;       /* blocks in reverse order, with gaps between them */
    uint32_t pieces;
    size_t row, segment, longest; /* of segments, see flash_schedule_t */
} sim_shape_t;

/* One operation on all ranks. */
typedef struct sim_spec {
    flash_kind_t kind;
    sim_shape_t shape;
    uint32_t depth;
    uint32_t sends;   /* at a time; 0: no limit */
    bool callback;    /* reductions: produces; all others: consumes */
    bool other;       /* the other way round; RS: and changes what it consumes */
    uint32_t pending; /* percent of the callbacks that return FLASH_PENDING */
    bool
        in_place; /* AG, gather's root: the own block lies in the output; scatter's root: in the input;
                     allreduce, reduce's root: the input lies in the output */
    bool mix;     /* combine by an operation that is commutative but not associative */
    bool users;              /* which is the user's */
    bool on_callback_thread; /* callbacks: in a thread of their own */
    /* The memory is a device's: only staging and copies get at what it holds. See
       sim_instance_is_on_device(). */
    bool device_input, device_output;
    bool device_sums; /* both on a device, and not the user's: sums are made there */
    bool wide;        /* pairwise: sums are made in wider elements */
    uint32_t root;    /* of a kind that has one: modulo the ranks, the rank that is it */
    bool sparse;      /* A2A, gather, scatter: the steps of empty blocks are left out */
    /*
     * The scratch is on a device, too, with device sums or without sums: a bit for ranks of equal
     * parity.
     */
    unsigned device_scratch;
    /* Ranks, likewise, whose memory is near whatever the rest says. */
    unsigned near;
    /* Ranks, likewise, whose scratch holds `bound` segments; 0: no rank's is bounded. */
    unsigned bounded;
    uint32_t bound;
    /*
     * Names the operation. Those of equal names follow each other on each rank: the next is
     * started there when the one before is complete there, whatever other ranks do.
     */
    uint64_t name;
    bool wait; /* is started on a rank when all before it are complete there */

    /* What goes wrong; SIM_NOBODY for nothing. Calls are counted from 1, 0 is none. */
    uint32_t odd_rank; /* has another idea of the shape */
    sim_shape_t odd_shape;
    uint32_t fail_rank;
    uint64_t fail_callback, fail_combine, fail_stage;
    bool refuses; /* fail_rank cannot perform it, and says so */
} sim_spec_t;

/* In the middle of it all, after so many moves, a rank and its neighbours lose each other. */
typedef struct sim_loss {
    uint32_t rank; /* SIM_NOBODY: nothing of the kind */
    uint64_t turn;
} sim_loss_t;

typedef struct sim_layout {
    size_t *counts;
    ptrdiff_t *displs;
    size_t gap, span;
} sim_layout_t;

typedef struct sim sim_t;

/* Where a callback is in its walk through the blocks. */
typedef struct sim_next {
    uint32_t at, piece;
} sim_next_t;

/* One operation on one rank. */
typedef struct sim_instance {
    sim_t *sim;
    const sim_spec_t *spec;
    /* Of the blocks that the ranks have; A2A: of those that come, and of those that go. */
    sim_layout_t in_layout, out_layout;
    uint32_t index, rank; /* which operation, where */
    int status;           /* SIM_UNSTARTED, SIM_UNFINISHED, or what the operation ended with */
    uint32_t failed_rank; /* with it */
    flash_schedule_t schedule;
    flash_steps_t taken;
    unsigned char *input_memory, *output_memory; /* with canaries around */
    uint64_t *pieces;                            /* where a callback writes that is on a device */
    size_t piece_elements;
    uint64_t *scratch; /* that is on a device */
    uint64_t *store;   /* device memory for sums that are sent on */
    size_t store_elements;
    uint32_t *failed_ranks;
    flash_pair_t *pairs; /* A2A */
    uint64_t *input, *output;
    size_t input_count, output_count;     /* elements of the two, 0 for none */
    sim_next_t produce, consume;          /* the next callbacks */
    uint64_t callbacks, combines, stages; /* so far */
    unsigned works;                       /* taken and not finished, pending pieces included */
    bool in_callback, call_failed;
} sim_instance_t;

/* Work in the hands of some thread, or the piece of a callback that returned FLASH_PENDING. */
typedef struct sim_held {
    flash_work_t work;
    sim_instance_t *pending; /* whose piece */
    flash_piece_t piece;
    uint32_t rank;
    uint64_t name; /* differs from that of all other work on its rank */
    bool ran;
    int status;
} sim_held_t;

struct sim {
    fake_net_t *net;
    flash_engine_t **engines;
    uint32_t nranks, nspecs;
    uint64_t seed, random;
    fake_options_t options;
    sim_loss_t loss; /* of nobody, unless changed before the run */
    uint32_t alone;  /* the one rank that runs; SIM_NOBODY: all do */
    sim_spec_t specs[SIM_MAX_OPS];
    bool shuffled;             /* the ring; else each rank stands at the place of its number */
    uint32_t *ring, *places;   /* the rank at each place of the ring, the place of each rank */
    sim_instance_t *instances; /* [rank][spec] */
    sim_held_t *held;
    size_t nheld, held_room;
    uint32_t *active;  /* per rank: started and not taken as completed */
    uint64_t complete; /* instances */
    uint64_t bounded;  /* those that were started with less scratch than they would have */
    char problem[256]; /* "" while all is well */
};

sim_t *sim_create(uint32_t nranks, uint64_t seed, const fake_options_t *options,
                  const sim_spec_t *specs, uint32_t nspecs);
void sim_destroy(sim_t *sim); /* at any time */

/*
 * With a manual network: sim_record() before the first move records the messages of a run; in the
 * other simulation one rank runs alone, receives what it received in the recorded run, and sends
 * what it sent there. The recorded one is to outlive it.
 */
void sim_record(sim_t *sim);
sim_t *sim_create_alone(const sim_t *recorded, uint32_t rank);
bool sim_runs(const sim_t *sim, uint32_t rank);

/* The moves. Those that return bool return whether anything happened. */
bool sim_may_start(sim_t *sim, uint32_t rank, uint32_t spec);
void sim_start(sim_t *sim, uint32_t rank, uint32_t spec);
bool sim_progress(sim_t *sim, uint32_t rank);
bool sim_take(sim_t *sim, uint32_t rank, unsigned kinds);
void sim_run_held(sim_t *sim, size_t k);
void sim_finish_held(sim_t *sim, size_t k); /* runs it first if nobody did */
bool sim_drain(sim_t *sim, uint32_t rank);  /* takes what completed */
void sim_hold_pending(sim_instance_t *instance, const flash_piece_t *piece, int status);
bool sim_all_complete(const sim_t *sim);

/* Makes random moves until all is complete, or nothing moves any more: that is a problem. */
void sim_run_random(sim_t *sim);
/* What must hold at any time, and at the end. */
void sim_check_contract(sim_t *sim);
void sim_check_end(sim_t *sim);

/* Whether each rank has all others for neighbours: in an all-to-all. */
bool sim_exchanges_with_all(const sim_t *sim);
/*
 * That a rank took no part in an operation, and each other one's status says what it lacks by that,
 * and whose fault it is. Of a reduce, ranks on the way to the root lack nothing, and may have heard. Of a
 * gather, the root alone hears of another rank; of a scatter, all others of the root.
 */
void sim_check_refused(sim_t *sim, uint32_t spec, uint32_t refuser);
/* Of a kind that has one: the rank that is the root. */
uint32_t sim_root(const sim_t *sim, const sim_spec_t *spec);
/* The rank that stands `ahead` places to the right of `rank`. */
uint32_t sim_neighbour(const sim_t *sim, uint32_t rank, uint32_t ahead);
int sim_status(const sim_t *sim, uint32_t rank, uint32_t spec);
uint32_t sim_failed_rank(const sim_t *sim, uint32_t rank, uint32_t spec);
__attribute__((format(printf, 2, 3))) void sim_complain(sim_t *sim, const char *what, ...);
/* Prints the seed and all operations, for whoever has to repeat the run. */
void sim_describe(const sim_t *sim);
/* Runs it at random: whether all operations end well; describes it if not. */
bool sim_runs_well(sim_t *sim);

/* Options of a network in which everything happens now and then; chosen by *random. */
fake_options_t sim_random_net(uint64_t *random);
/* An operation of that kind in which nothing goes wrong; likewise. */
sim_spec_t sim_random_spec(uint64_t *random, flash_kind_t kind);
/* Puts its memory on a device, with little scratch, on all ranks or on some. */
void sim_bound(uint64_t *random, sim_spec_t *spec);

/*
 * sim_instance.c, sim_data.c, sim_work.c. What is above is in sim.c, sim_held.c, sim_check.c,
 * sim_describe.c and sim_random.c.
 */
void sim_instance_create(sim_t *sim, uint32_t rank, uint32_t spec);
void sim_instance_destroy(sim_instance_t *instance);
flash_op_params_t sim_instance_params(sim_instance_t *instance);
/* From output_memory on. */
size_t sim_instance_output_bytes(const sim_instance_t *instance);
/* All callbacks were made. */
bool sim_instance_called(sim_instance_t *instance);
/* Does what a callback is for: in it, or later. */
void sim_instance_compute(sim_instance_t *instance, const flash_piece_t *piece);
/* Whether the input, or the output, is device memory: there, all bits are inverted. */
bool sim_instance_is_on_device(const sim_instance_t *instance, bool input);
/* Runs a work that copies. */
int sim_instance_copy(sim_instance_t *instance, const flash_work_t *work);
/* Whether it is a sum that is made in device memory, and makes it. */
bool sim_instance_adds_on_device(const sim_instance_t *instance, const flash_work_t *work);
int sim_instance_add_on_device(sim_instance_t *instance, const flash_work_t *work);
/* Nothing outside the output's blocks changed, and if the operation is OK, its data is right. */
void sim_instance_check(sim_instance_t *instance);
/* The block that a rank produces or consumes in its turn, by the words of flash_schedule.h. */
uint32_t sim_block(const sim_t *sim, flash_kind_t kind, bool produces, uint32_t rank, uint32_t at);
extern const char *const sim_kinds[FLASH_KINDS]; /* their names */
/* Whether there are callbacks that produce, or that consume. */
bool sim_spec_calls(const sim_spec_t *spec, bool produces);

#endif /* SIM_H */
