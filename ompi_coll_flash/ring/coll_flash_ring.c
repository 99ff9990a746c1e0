/*
 * coll_flash_ring.c: a request's beginning and end, where the engine moves it: by messages of
 * flash's own.
 *
 * A request ends in an application thread, from the callback of opal_progress(), never in the
 * progress thread: at MPI_THREAD_SINGLE Open MPI's requests are plain memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"
#include "ring/coll_flash_setup.h"

/* Who takes part in what, and by which name it goes among them. */
static void set_messages(const mca_coll_flash_module_t *module, uint64_t sequence,
                         flash_kind_t kind, flash_part_t part, flash_op_params_t *params)
{
    params->schedule.kind = kind;
    params->schedule.ring = module->ring;
    params->schedule.from_root = part.from_root;
    params->schedule.taken = part.taken;
    params->left = module->left;
    params->right = module->right;
    params->recv_tag = params->send_tag = sequence << FLASH_TAG_SHIFT;
    if (flash_schedule_exchanges(kind)) {
        params->pairs = module->pairs;
    } else {
        params->recv_tag |= module->recv_tag;
        params->send_tag |= module->send_tag;
    }
}

static void end(mca_coll_flash_request_t *request, int status, uint32_t failed_rank,
                bool has_orphans);

/*
 * With its operation id taken. What cannot be started is refused; what cannot be refused either
 * ends here, and leaves the others to wait.
 */
static void start(mca_coll_flash_request_t *request, const flash_op_params_t *params)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    flash_op_params_t refusal = {.user = request};

    if (!request->refused) {
        int rc = flash_progress_start_op(progress, params);

        if (rc == FLASH_OK) {
            return;
        }
        mca_coll_flash_request_fail(request, mca_coll_flash_error(rc));
    }
    set_messages(request->module, request->sequence, request->kind, request->part, &refusal);
    if (!flash_progress_refuse(progress, &refusal)) {
        end(request, FLASH_OK, FLASH_NOBODY, false); /* with the error that it has */
    }
}

/* Another one may have waited for its operation id. */
static void end(mca_coll_flash_request_t *request, int status, uint32_t failed_rank,
                bool has_orphans)
{
    mca_coll_flash_request_t *next = mca_coll_flash_op_id_leave(request);

    mca_coll_flash_request_ended(request, status, failed_rank, has_orphans);
    if (next != NULL) {
        start(next, mca_coll_flash_op_id_waiting(next));
    }
}

/*
 * Whether a younger operation may wait for it, see flash_flow.h. Ranks may start the rounds of
 * persistent requests in orders of their own.
 */
static bool has_flow(const mca_coll_flash_request_t *request, const flash_op_params_t *params)
{
    return request->sequence < FLASH_CALL_SEQUENCES && params->produce == NULL &&
           params->consume == NULL && !params->combine_is_users;
}

static void begin(mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    params->flow = has_flow(request, params) ? &request->module->flow : NULL;
    set_messages(request->module, request->sequence, request->kind, request->part, params);
    if (mca_coll_flash_op_id_take_or_wait(request, params)) {
        start(request, params);
    }
}

/*
 * Without a request to wait for its end: not for an operation id that is soon used again. What who
 * exchanges with all needs of the module stays for good then.
 */
static void refuse(mca_coll_flash_module_t *module, uint32_t sequence, flash_kind_t kind,
                   flash_part_t part)
{
    flash_op_params_t params = {.user = NULL};

    if (sequence < FLASH_CALL_SEQUENCES &&
        mca_coll_flash_ring_prepare(module, kind, part) == MPI_SUCCESS) {
        set_messages(module, sequence, kind, part, &params);
        if (flash_progress_refuse(mca_coll_flash_job_progress(), &params) &&
            flash_schedule_exchanges(kind)) {
            OBJ_RETAIN(module);
        }
    }
}

static void complete(flash_op_t *op)
{
    mca_coll_flash_request_t *request = flash_op_user(op);
    int status = flash_op_status(op);
    uint32_t failed_rank = flash_op_failed_rank(op);
    bool has_orphans = flash_op_has_orphans(op);

    flash_progress_destroy_op(mca_coll_flash_job_progress(), op);
    end(request, status, failed_rank, has_orphans);
}

static int progress(void)
{
    flash_progress_t *progress = mca_coll_flash_job_progress();
    int happened = mca_coll_flash_setups_progress();

    return progress == NULL ? happened : happened + flash_progress_poll(progress, complete);
}

static bool is_busy(void)
{
    const flash_progress_t *progress = mca_coll_flash_job_progress();

    return mca_coll_flash_setups_pending() || (progress != NULL && flash_progress_busy(progress));
}

const mca_coll_flash_algorithm_t mca_coll_flash_ring = {.state_bytes = sizeof(flash_op_params_t),
                                                        .gives_up = true,
                                                        .prepare = mca_coll_flash_ring_prepare,
                                                        .begin = begin,
                                                        .refuse = refuse,
                                                        .progress = progress,
                                                        .is_busy = is_busy,
                                                        .watch = mca_coll_flash_ring_watch};
