/*
 * device_job.h: a collective that flash serves on buffers in memory of any kind, in all forms that
 * there are, checked against what the ranks contribute.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef DEVICE_JOB_H
#define DEVICE_JOB_H

#include "device.h"
#include "mpitest.h"

/* STREAM: as COMPUTE, in the order of a stream, which also writes and reads what is in a device. */
typedef enum { PLAIN, IN_PLACE, COMPUTE, STREAM, PERSISTENT, FORMS } form_t;

typedef struct job {
    form_t form;
    int count;    /* elements of int64_t in a block */
    bool unequal; /* one for each rank more, and none in each third */
    bool gather;
    bool everywhere; /* of a reduction: an allreduce, by all forms but those with callbacks */
    bool exchanges;  /* an all-to-all, likewise, of equal blocks */
    bool slow;       /* its callbacks leave much work in the stream */
    place_t send_place, recv_place;
    int pieces;     /* to a block; 0: one */
    bool own;       /* STREAM: with a callback for the own block: made there, or looked at */
    void *stream;   /* STREAM: made by the caller */
    MPI_Comm comm;  /* as large as the world */
    MPI_Op op;      /* that adds; NULL: MPI_SUM */
    int seen;       /* elements that callbacks have seen */
    int64_t *kept;  /* STREAM: what callbacks copy to or from */
    int64_t *input; /* and what the input is copied from */
    int64_t *sums;  /* what the own block's callback has seen of a reduction */
    buffer_t send, recv;
    int counts[64], displs[64];
    MPI_Request request;
} job_t;

/* What a rank contributes to an element. */
int64_t contribution(int rank, int block, int index);

void job_make(job_t *job); /* buffers and what is in them */
int job_begin(job_t *job); /* the call's error */
int job_start(job_t *job); /* both */
/* Once the request is complete. */
void job_check(job_t *job);
void job_end(job_t *job);
/* One from its start to its end, and what has come of it is checked. */
void job_run(job_t *job);

/* Many at a time, completed in any order. */
enum { MOST_JOBS = 16 };
void jobs_run(job_t *jobs, int count);

/* Each kind of memory to each, and on each rank another one, in forms `first` to `last`. */
void all_places(bool gather, form_t first, form_t last);
/* The same of allreduces, and of all-to-alls. */
void all_places_everywhere(form_t first, form_t last);
void all_places_exchanged(form_t first, form_t last);
/* Of what the driver gave flash. */
void nothing_left(void);
/* Once MPI is gone: what the driver gave is given back. */
bool device_is_left(void);
#define DEVICE_PROGRAM(program, ...) \
    TEST_PROGRAM_WITH(program, MPI_THREAD_SINGLE, device_open, device_is_left, __VA_ARGS__)

#endif /* DEVICE_JOB_H */
