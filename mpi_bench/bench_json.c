/*
 * bench_json.c: results as JSON. Times are in seconds; null stands for what has no value.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <string.h>

#include "bench_report.h"

/* Where in the document the writer is. */
typedef struct json {
    FILE *file;
    int depth;
    bool first; /* nothing is in the innermost object or array yet */
} json_t;

static void put_string(json_t *json, const char *text)
{
    fputc('"', json->file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', json->file);
        }
        if ((unsigned char) *text < ' ') {
            fprintf(json->file, "\\u%04x", (unsigned) *text);
        } else {
            fputc(*text, json->file);
        }
    }
    fputc('"', json->file);
}

/* A comma if need be, a new line, and the key if it is a member of an object. */
static void put_key(json_t *json, const char *key)
{
    fprintf(json->file, "%s\n%*s", json->first ? "" : ",", 2 * json->depth, "");
    json->first = false;
    if (key != NULL) {
        put_string(json, key);
        fputs(": ", json->file);
    }
}

static void open_group(json_t *json, const char *key, char bracket)
{
    put_key(json, key);
    fputc(bracket, json->file);
    json->depth++;
    json->first = true;
}

static void close_group(json_t *json, char bracket)
{
    json->depth--;
    json->first = false;
    fprintf(json->file, "\n%*s%c", 2 * json->depth, "", bracket);
}

static void put_number(json_t *json, double value)
{
    if (isfinite(value)) {
        fprintf(json->file, "%.9g", value);
    } else {
        fputs("null", json->file);
    }
}

static void number(json_t *json, const char *key, double value)
{
    put_key(json, key);
    put_number(json, value);
}

static void string(json_t *json, const char *key, const char *value)
{
    put_key(json, key);
    put_string(json, value);
}

static void boolean(json_t *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->file);
}

static void numbers(json_t *json, const char *key, const double *values, int count)
{
    int i;

    put_key(json, key);
    fputc('[', json->file);
    for (i = 0; i < count; i++) {
        fputs(i == 0 ? "" : ", ", json->file);
        put_number(json, values[i]);
    }
    fputc(']', json->file);
}

static void statistics(json_t *json, const char *key, const bench_stats_t *stats,
                       const double *samples, int count)
{
    open_group(json, key, '{');
    number(json, "min", stats->min);
    number(json, "median", stats->median);
    number(json, "max", stats->max);
    numbers(json, "samples", samples, count);
    close_group(json, '}');
}

static void measured_case(json_t *json, const bench_measured_t *measured, int iterations)
{
    static const char *const kinds[] = {"alone", "variant", "plain"};

    open_group(json, NULL, '{');
    string(json, "name", measured->what.name);
    string(json, "kind", kinds[measured->what.kind]);
    statistics(json, "seconds", &measured->time, measured->times, iterations);
    statistics(json, "cpu_seconds", &measured->cpu, measured->cpus, iterations);
    if (measured->what.kind != BENCH_ALONE) {
        number(json, "exposed_seconds", measured->exposed);
        number(json, "exposed_percent", measured->exposed_percent);
        number(json, "exposed_percent_of_wire", measured->wire_percent);
        number(json, "e_overlap", measured->e_overlap);
        number(json, "t_total_over_t_ring", measured->over_ring);
    }
    if (measured->what.kind == BENCH_PLAIN) {
        number(json, "osu_overlap_percent", measured->osu_overlap);
    }
    close_group(json, '}');
}

static void link_of(json_t *json, const bench_link_t *link)
{
    bool known = link->rate > 0;

    open_group(json, "link", '{');
    string(json, "source", link->source);
    number(json, "rate", known ? link->rate : NAN);
    number(json, "mtu", known ? link->mtu : NAN);
    number(json, "payload_rate", known ? link->payload : NAN);
    close_group(json, '}');
}

static void result_of(json_t *json, const bench_result_t *result)
{
    const bench_problem_t *problem = &result->problem;
    int i;

    open_group(json, NULL, '{');
    string(json, "op", problem->allgather ? "ag" : "rs");
    number(json, "m", problem->m);
    number(json, "n", problem->n);
    number(json, "k", problem->k);
    number(json, "block_bytes", (double) result->block_bytes);
    boolean(json, "equal_blocks", problem->blocks.equal);
    number(json, "block_time",
           problem->options->offload ? problem->row_seconds * problem->blocks.max_rows : NAN);
    number(json, "t_comp", bench_result_find(result, "T_comp")->time.median);
    number(json, "t_split", bench_result_find(result, "T_split")->time.median);
    number(json, "t_comm", bench_result_find(result, "T_comm")->time.median);
    number(json, "t_g", result->block_compute);
    number(json, "t_c", result->link.block_seconds);
    number(json, "t_add", result->addition);
    number(json, "t_ring", result->ring);
    link_of(json, &result->link);
    number(json, "wrong_checks", (double) result->wrong);
    open_group(json, "cases", '[');
    for (i = 0; i < result->ncases; i++) {
        measured_case(json, &result->cases[i], problem->options->iterations);
    }
    close_group(json, ']');
    close_group(json, '}');
}

static void parameters(json_t *json, const bench_environment_t *environment)
{
    const bench_options_t *options = environment->options;
    double slices[BENCH_MAX_SLICES];
    const double pieces[] = {options->gather_pieces, options->reduce_pieces};
    int i;

    for (i = 0; i < options->nslices; i++) {
        slices[i] = options->slices[i];
    }
    open_group(json, "parameters", '{');
    string(json, "type", options->is_double ? "double" : "float");
    string(json, "compute", options->offload ? "offload" : "gemm");
    numbers(json, "slices", slices, options->nslices);
    numbers(json, "pieces", pieces, 2);
    number(json, "iterations", options->iterations);
    number(json, "warmup", options->warmup);
    number(json, "threads", environment->threads_set ? options->threads : NAN);
    boolean(json, "check", options->check);
    close_group(json, '}');
}

void bench_report_json(FILE *file, const bench_environment_t *environment,
                       const bench_result_t *results, int count)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    json_t json = {.file = file, .depth = 1, .first = true};
    int length, i;

    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    fputc('{', file);
    string(&json, "benchmark", "flash_gemm");
    string(&json, "mpi_library", version);
    number(&json, "hosts", environment->hosts);
    number(&json, "ranks", environment->nranks);
    boolean(&json, "flash_active", environment->flash_active);
    boolean(&json, "own_served_by_flash", environment->own_is_flash);
    number(&json, "idle_cpu_seconds_per_second", environment->idle_cpu_seconds);
    parameters(&json, environment);
    open_group(&json, "results", '[');
    for (i = 0; i < count; i++) {
        result_of(&json, &results[i]);
    }
    close_group(&json, ']');
    close_group(&json, '}');
    fputc('\n', file);
}
