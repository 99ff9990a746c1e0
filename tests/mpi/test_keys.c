/*
 * test_keys.c: which way calls take on a communicator whose info keys say so. See mpix_flash.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "keys.h"
#include "mpitest.h"
#include "pvars.h"

typedef struct turn {
    const char *value;
    way_t way;
} turn_t;

typedef struct example {
    const char *key;
    kind_t kind;
    int ranks;               /* of the job; 0: any number */
    bool reads;              /* where others' memory can be read */
    const char *first[2][2]; /* keys that are set before */
    turn_t turns[8];
} example_t;

/* One behind the other: each value counts from the next call on. */
static const example_t examples[] = {
    {"algorithm", GATHER,
     .turns = {{"ring", RING}, {"fallback", PASSED_ON}, {"recdbl", RECDBL}, {"auto", RING}}},
    {"algorithm", REDUCE,
     .turns = {{"ring", RING},
               {"fallback", PASSED_ON},
               {"recdbl", RECDBL},
               {"pairwise", PAIRWISE},
               {"auto", RING}}},
    /* What it cannot serve is left to the costs. */
    {"algorithm", GATHER, .turns = {{"pairwise", RING}, {"fallback", PASSED_ON}, {"shm", RING}}},
    {"algorithm", GATHER, .first = {{"shm", "auto"}, {"on_node", "false"}},
     .turns = {{"shm", SHM}, {"ring", RING}, {"auto", PASSED_ON}}},
    {"on_node", GATHER, .first = {{"algorithm", "auto"}},
     .turns = {{"false", PASSED_ON}, {"true", RING}, {"false", PASSED_ON}}},
    {"on_node", REDUCE, .first = {{"algorithm", "auto"}},
     .turns = {{"false", PASSED_ON}, {"true", RING}, {"false", PASSED_ON}}},
    {"on_node", GATHER, .first = {{"algorithm", "auto"}},
     .turns = {{"no", PASSED_ON},
               {"yes", RING},
               {"0", PASSED_ON},
               {"1", RING},
               {"off", PASSED_ON},
               {"on", RING}}},
    {"shm", GATHER, .first = {{"algorithm", "shm"}, {"on_node", "false"}},
     .turns = {{"auto", SHM}, {"no", PASSED_ON}, {"copy", SHM}, {"read", SHM}}},
    {"shm", REDUCE, .first = {{"algorithm", "shm"}, {"on_node", "false"}},
     .turns = {{"auto", SHM}, {"no", PASSED_ON}, {"copy", SHM}, {"read", SHM}}}};

static void try_example(const example_t *example)
{
    MPI_Comm comm = keys_dup_that_passes_on();

    for (size_t k = 0; k < 2 && example->first[k][0] != NULL; k++) {
        keys_set(comm, example->first[k][0], example->first[k][1]);
    }
    for (const turn_t *turn = example->turns; turn->value != NULL; turn++) {
        way_t taken;

        keys_set(comm, example->key, turn->value);
        taken = keys_way_of(comm, example->kind, BLOCK);
        check(taken == turn->way, "%s %s: %s instead of %s", example->key, turn->value,
              taken < WAYS ? keys_counter_names[taken] : "not one way",
              keys_counter_names[turn->way]);
    }
    check(keys_way_of(MPI_COMM_WORLD, example->kind, BLOCK) == PASSED_ON,
          "%s: another communicator has the key, too", example->key);
    MPI_Comm_free(&comm);
}

static void try_examples(void)
{
    bool readable = keys_memory_is_readable();

    keys_open_counters();
    for (size_t k = 0; k < LENGTH(examples); k++) {
        const example_t *example = &examples[k];

        if ((example->ranks == 0 || example->ranks == world_size) &&
            (readable || !example->reads)) {
            try_example(example);
        }
    }
    keys_close_counters();
}

static void ways(void)
{
    pvars_with(try_examples);
}

TEST_PROGRAM(test_keys, MPI_THREAD_SINGLE, {"ways", ways}, {"reads", keys_read_blocks},
             {"pairwise", keys_pairwise}, {"persistent", keys_persistent}, {"limits", keys_limits});
