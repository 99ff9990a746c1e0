/*
 * device_places.c: jobs from each kind of memory to each; see device_job.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"

/*
 * Of the pairs of kinds of memory: which come in turn. Of the longest blocks the short tier has a
 * third of the others', another for each form: of plain calls that from a device to a device.
 */
static int step_of_pairs(form_t form, bool longest)
{
    return !short_tier ? (form == PLAIN ? 1 : 3) : longest ? 9 : 3;
}

static int first_pair(form_t form, bool longest, bool unequal)
{
    int third = form == PLAIN ? 2 : ((int) form + unequal) % 3;

    return short_tier && longest ? 3 * third : 0;
}

/* Each kind of memory to each, and on each rank another one, of such jobs. */
static void all_places_of(const job_t *like, form_t first, form_t last)
{
    static const int counts[] = {0, 1, 7, 1000, 70001};
    void *stream = stream_make(0);

    for (form_t form = first; form <= last; form++) {
        for (size_t k = 0; k < 2 * LENGTH(counts); k += like->exchanges ? 2 : 1) {
            bool longest = k / 2 == LENGTH(counts) - 1;

            for (int turn = first_pair(form, longest, k % 2 == 1); turn < PLACES * PLACES;
                 turn += step_of_pairs(form, longest)) {
                int where = turn + (turn % 2) * world_rank;
                job_t job = {.form = form,
                             .count = counts[k / 2],
                             .unequal = k % 2 == 1,
                             .gather = like->gather,
                             .everywhere = like->everywhere,
                             .exchanges = like->exchanges,
                             .send_place = (place_t) (where % PLACES),
                             .recv_place = (place_t) (where / PLACES % PLACES),
                             .pieces = turn % 4,
                             .stream = stream,
                             .comm = MPI_COMM_WORLD};

                job_run(&job);
            }
        }
    }
    stream_free(stream);
    nothing_left();
}

void all_places(bool gather, form_t first, form_t last)
{
    all_places_of(&(job_t){.gather = gather}, first, last);
}

void all_places_everywhere(form_t first, form_t last)
{
    all_places_of(&(job_t){.everywhere = true}, first, last);
}

void all_places_exchanged(form_t first, form_t last)
{
    all_places_of(&(job_t){.exchanges = true}, first, last);
}
