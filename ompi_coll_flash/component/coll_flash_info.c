/*
 * coll_flash_info.c: what a program fixes for one communicator, by info keys.
 *
 * MPI_Comm_set_info and MPI_Comm_dup_with_info are collective: a communicator's settings change
 * between the same calls on all ranks. Each call takes them as they are when it is made; a
 * persistent request keeps them for all its rounds, which each rank starts by itself.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "settings/coll_flash_costs.h"

#define PREFIX "mpix_flash_"
enum { MOST_DIGITS = 20 };

typedef struct key {
    char *name;    /* not changed, but Open MPI's functions take no const */
    size_t offset; /* in mca_coll_flash_settings_t */
    size_t least, most;
    const char *const *words; /* of the values, instead of digits; NULL: none */
    const char *where;        /* for the remedy: where it is to be the same */
    bool or_none;             /* whether it may be 0, too, which is below the least */
} info_key_t;

#define KEY(field, from, to, texts, same)                                            \
    {                                                                                \
        .name = PREFIX #field, .offset = offsetof(mca_coll_flash_settings_t, field), \
        .least = from, .most = to, .words = texts, .where = same                     \
    }
#define EVERYWHERE ", the same on all ranks"
static const char *const answers[] = {"false", "true"};
/* Open MPI 4.1 takes no names longer than 27 characters. */
static const info_key_t keys[] = {
    KEY(algorithm, FLASH_FALLBACK, FLASH_AUTO, mca_coll_flash_path_names, EVERYWHERE),
    KEY(blocking, FLASH_BLOCKING_NO, FLASH_BLOCKING_YES, mca_coll_flash_blocking_names, EVERYWHERE),
    KEY(on_node, 0, 1, answers, EVERYWHERE),
    {.name = PREFIX "shm",
     .offset = offsetof(mca_coll_flash_settings_t, shm_use),
     .least = FLASH_SHM_NO,
     .most = FLASH_SHM_READ,
     .words = mca_coll_flash_shm_names,
     .where = EVERYWHERE},
    {.name = PREFIX "segment_bytes",
     .offset = offsetof(mca_coll_flash_settings_t, segment_bytes),
     .least = FLASH_LEAST_SEGMENT,
     .most = PTRDIFF_MAX,
     .where = EVERYWHERE,
     .or_none = true},
    KEY(segment_window, 0, UINT32_MAX, NULL, ""),
    KEY(max_sends, 0, UINT32_MAX, NULL, ""),
    KEY(pinned_bytes, 0, PTRDIFF_MAX, NULL, ""),
    KEY(pieces, 1, FLASH_MAX_PIECES, NULL, EVERYWHERE),
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

/* As Open MPI reads parameters that are true or false. */
static bool parse_answer(const char *text, size_t *value)
{
    static const char *const synonyms[][2] = {
        {"false", "true"}, {"no", "yes"}, {"0", "1"}, {"off", "on"}};

    for (size_t k = 0; k < sizeof(synonyms) / sizeof(synonyms[0]); k++) {
        for (*value = 0; *value <= 1; ++*value) {
            if (strcmp(synonyms[k][*value], text) == 0) {
                return true;
            }
        }
    }
    return false;
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
        return key->words == answers ? parse_answer(text, value) : parse_word(key, text, value);
    }
    if (!isdigit((unsigned char) text[0]) || strlen(text) > MOST_DIGITS) {
        return false;
    }
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' &&
           ((*value >= key->least && *value <= key->most) || (key->or_none && *value == 0));
}

/* What a key takes, in words. */
static void tell_values(const info_key_t *key, char *text, size_t size)
{
    if (key->words == NULL) {
        snprintf(text, size, "%sa number from %zu to %zu%s", key->or_none ? "0, or " : "",
                 key->least, key->most, key->where);
        return;
    }
    for (size_t value = key->least, used = 0; value <= key->most && used < size; value++) {
        used +=
            (size_t) snprintf(text + used, size - used, "%s%s%s", key->words[value],
                              value < key->most ? " or " : "", value < key->most ? "" : key->where);
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
        memset(module->ring_from, 0, sizeof(module->ring_from));
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

    *settings = mca_coll_flash_settings_of_parameters();
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
