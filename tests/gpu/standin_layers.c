/*
 * standin_layers.c: the layers' kernels for the stand-in driver: the same code, by the host's
 * compiler, as two workers of one lane.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

#include "layer_kernels.h"

typedef void run_fn(layer_work_t work, layer_place_t place);

#define DEFINE(name)                                               \
    static void name##_run(layer_work_t work, layer_place_t place) \
    {                                                              \
        layer_run_##name(work, place);                             \
    }
LAYER_KERNELS(DEFINE)

static const struct {
    const char *name;
    run_fn *run;
} functions[] = {
#define ENTRY(kernel) {"layer_" #kernel, kernel##_run},
    LAYER_KERNELS(ENTRY)
#undef ENTRY
};

typedef struct launched {
    run_fn *run;
    layer_work_t work;
    size_t sizes[3]; /* of the elements of `to`, `from` and `by` */
} launched_t;

/* Where a kernel's memory is; NULL stays. False: it is none of the driver's, or too short. */
static bool reach(const void *address, size_t size, void *place)
{
    void *reached = address == NULL ? NULL : standin_reach_by_kernel((uintptr_t) address, size);

    memcpy(place, &reached, sizeof(reached));
    return address == NULL || reached != NULL;
}

static int run(void *arg)
{
    const launched_t *launched = arg;
    layer_work_t work = launched->work;
    size_t width = work.width > 0 ? (size_t) work.width : 1, count = work.count * width;

    if (!reach(work.to, count * launched->sizes[0], &work.to) ||
        !reach(work.from, count * launched->sizes[1], &work.from) ||
        !reach(work.by, count * launched->sizes[2], &work.by) ||
        !reach(work.token, width * sizeof(*work.token), &work.token)) {
        return ILLEGAL_ADDRESS;
    }
    for (size_t worker = 0; worker < 2; worker++) {
        launched->run(work, (layer_place_t){.worker = worker, .workers = 2, .lanes = 1});
    }
    return SUCCESS;
}

static int launch(const char *name, void *stream, void **arguments)
{
    launched_t *launched = calloc(1, sizeof(*launched));
    size_t k = 0;

    while (strcmp(functions[k].name, name) != 0) {
        k++;
    }
    *launched = (launched_t){.run = functions[k].run,
                             .work = *(const layer_work_t *) arguments[0],
                             .sizes = {sizeof(float), sizeof(float), sizeof(float)}};
    if (strcmp(name, "layer_narrow") == 0) {
        launched->sizes[0] = sizeof(uint16_t);
    } else if (strcmp(name, "layer_widen") == 0) {
        launched->sizes[1] = sizeof(uint16_t);
    }
    return standin_compute(stream, run, launched);
}

const standin_kernel_t *standin_find_layer_kernel(const char *name)
{
    static const standin_kernel_t kernels[] = {
#define KERNEL(kernel) {.name = "layer_" #kernel, .launch = launch},
        LAYER_KERNELS(KERNEL)
#undef KERNEL
    };

    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
        if (strcmp(kernels[k].name, name) == 0) {
            return &kernels[k];
        }
    }
    return NULL;
}
