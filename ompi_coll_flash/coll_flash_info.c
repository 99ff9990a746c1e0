/*
 * coll_flash_info.c: what a program fixes for one communicator, by info keys.
 *
 * MPI_Comm_set_info and MPI_Comm_dup_with_info are collective: a communicator's settings change
 * between the same calls on all ranks. Each call takes them as they are when it is made. Rounds of
 * a persistent request are started by each rank by itself, and so have the parameters' segments.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define PREFIX "mpix_flash_"
enum { MOST_DIGITS = 20 };

typedef struct key {
    char *name;    /* not changed, but Open MPI's functions take no const */
    size_t offset; /* in mca_coll_flash_settings_t */
    size_t least, most;
    const char *const *words; /* of the values, instead of digits; NULL: none */
    const char *where;        /* for the remedy: where it is to be the same */
} info_key_t;

#define KEY(field, least, most, words, where)                                                \
    {                                                                                        \
        PREFIX #field, offsetof(mca_coll_flash_settings_t, field), least, most, words, where \
    }
#define EVERYWHERE ", the same on all ranks"
static const char *const schedules[] = {
    [FLASH_SCHEDULE_RING] = "ring", [FLASH_SCHEDULE_DIRECT] = "direct"};
static const char *const answers[] = {"false", "true"};
static const info_key_t keys[] = {
    KEY(min_bytes, 0, PTRDIFF_MAX, NULL, EVERYWHERE),
    KEY(step_bytes, 0, PTRDIFF_MAX, NULL, EVERYWHERE),
    KEY(merge_bytes, 0, PTRDIFF_MAX, NULL, EVERYWHERE),
    KEY(segment_bytes, FLASH_LEAST_SEGMENT, PTRDIFF_MAX, NULL, EVERYWHERE),
    KEY(pieces, 1, FLASH_MAX_PIECES, NULL, EVERYWHERE),
    KEY(schedule, FLASH_SCHEDULE_RING, FLASH_SCHEDULE_DIRECT, schedules, EVERYWHERE),
    KEY(callback_thread, 0, 1, answers, "")};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static size_t *setting(mca_coll_flash_settings_t *settings, const info_key_t *key)
{
    return (size_t *) ((char *) settings + key->offset);
}

static const info_key_t *find(const char *name)
{
    for (size_t k = 0; k < KEYS; k++) {
        if (strcmp(keys[k].name, name) == 0) {
            return &keys[k];
        }
    }
    return NULL;
}

static bool parse_word(const info_key_t *key, const char *text, size_t *value)
{
    for (*value = key->least; *value <= key->most; ++*value) {
        if (strcmp(key->words[*value], text) == 0) {
            return true;
        }
    }
    return false;
}

/* Digits alone, and no more than a number needs. */
static bool parse(const info_key_t *key, const char *text, size_t *value)
{
    char *end;

    if (key->words != NULL) {
        return parse_word(key, text, value);
    }
    if (!isdigit((unsigned char) text[0]) || strlen(text) > MOST_DIGITS) {
        return false;
    }
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *value >= key->least && *value <= key->most;
}

/* What a key takes, in words. */
static void tell_values(const info_key_t *key, char *text, size_t size)
{
    if (key->words == NULL) {
        snprintf(text, size, "a number from %zu to %zu%s", key->least, key->most, key->where);
    } else {
        snprintf(text, size, "%s or %s%s", key->words[key->least], key->words[key->most],
                 key->where);
    }
}

/*
 * Open MPI asks what a key's value is to be; NULL: the key is ignored. While the communicator is
 * made, it is not yet flash's: mca_coll_flash_read_settings() looks at the answers then.
 */
static flash_info_text_t changed(opal_infosubscriber_t *object, flash_info_text_t name,
                                 flash_info_text_t text)
{
    const info_key_t *key = find(name);
    mca_coll_flash_module_t *module = mca_coll_flash_module_of((ompi_communicator_t *) object);
    size_t value;

    if (!parse(key, text, &value)) {
        char remedy[96];

        tell_values(key, remedy, sizeof(remedy));
        FLASH_HELP("info-ignored", name, text, opal_process_info.nodename, (int) getpid(), remedy);
        return NULL;
    }
    if (module != NULL) {
        *setting(&module->settings, key) = value;
    }
    return text;
}

static void print(const info_key_t *key, size_t value, char *text, size_t size)
{
    if (key->words == NULL) {
        snprintf(text, size, "%zu", value);
    } else {
        snprintf(text, size, "%s", key->words[value]);
    }
}

int mca_coll_flash_read_settings(ompi_communicator_t *comm, mca_coll_flash_settings_t *settings)
{
    char text[MOST_DIGITS + 1];
    size_t value;
    int flag, rc = OPAL_SUCCESS;

    *settings =
        (mca_coll_flash_settings_t){.min_bytes = mca_coll_flash_params.min_bytes,
                                    .step_bytes = mca_coll_flash_params.step_bytes,
                                    .merge_bytes = mca_coll_flash_params.merge_bytes,
                                    .segment_bytes = mca_coll_flash_params.segment_bytes,
                                    .pieces = 1,
                                    .schedule = (size_t) mca_coll_flash_params.schedule,
                                    .callback_thread = mca_coll_flash_params.callback_thread};
    for (size_t k = 0; k < KEYS && rc == OPAL_SUCCESS; k++) {
        print(&keys[k], *setting(settings, &keys[k]), text, sizeof(text));
        rc = opal_infosubscribe_subscribe(&comm->super, keys[k].name, text, changed);
        if (rc == OPAL_SUCCESS) {
            rc = flash_compat_info_get(comm->super.s_info, keys[k].name, text, sizeof(text), &flag);
        }
        if (rc == OPAL_SUCCESS && flag && parse(&keys[k], text, &value)) {
            *setting(settings, &keys[k]) = value;
        }
    }
    return rc;
}
