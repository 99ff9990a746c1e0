/*
 * coll_report.h: the figures of a collective's benchmark, as a table and as CSV.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_REPORT_H
#define COLL_REPORT_H

#include <stdio.h>

#include "coll_measure.h"

typedef struct coll_job {
    const coll_options_t *options;
    int nranks, hosts;
    int least_ranks; /* of a host */
    bool flash_serves, own_is_flash;
    int segment; /* bytes, of what is measured now; 0: flash's own choice */
} coll_job_t;

/* On rank 0. */
void coll_report_head(FILE *table, FILE *csv, const coll_job_t *job);
void coll_report_segment(FILE *table, const coll_job_t *job);
void coll_report_row(FILE *table, FILE *csv, const coll_job_t *job, const coll_row_t *row);
void coll_report_end(FILE *table, const coll_job_t *job, long wrong);

#endif /* COLL_REPORT_H */
