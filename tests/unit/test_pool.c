/*
 * test_pool.c: which scratch memory is kept, and which is given back.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "engine/flash_pool.h"
#include "tap.h"

/* Where a pool's memory comes from, and how much of it is out. */
typedef struct source {
    int made, released;
    size_t bytes;
} source_t;

static void *allocate(void *arg, size_t size)
{
    source_t *source = arg;

    source->made++;
    source->bytes += size;
    return malloc(size);
}

static void release(void *arg, void *memory, size_t size)
{
    source_t *source = arg;

    if (memory != NULL) {
        source->released++;
        source->bytes -= size;
    }
    free(memory);
}

static flash_pool_t pool_of(source_t *source, size_t largest)
{
    return (flash_pool_t){
        .allocate = allocate, .release = release, .arg = source, .largest = largest};
}

/* Takes so many of a size at a time, and gives them back. */
static void use(flash_pool_t *pool, size_t size, int count)
{
    void *memory[8];
    size_t got[8];

    for (int k = 0; k < count; k++) {
        memory[k] = flash_pool_get(pool, size, &got[k]);
    }
    for (int k = 0; k < count; k++) {
        flash_pool_put(pool, memory[k], got[k]);
    }
}

static void test_kept(void)
{
    source_t source = {.made = 0};
    flash_pool_t pool = pool_of(&source, 1000);

    for (int turn = 0; turn < 5; turn++) {
        use(&pool, 1000, 2);
    }
    ok(source.made == 2 && source.released == 0, "memory up to the limit is made once");
    flash_pool_clear(&pool);
    ok(source.released == 2 && source.bytes == 0, "and given back in the end");
}

static void test_too_large(void)
{
    source_t source = {.made = 0};
    flash_pool_t pool = pool_of(&source, 1000);

    use(&pool, 1001, 1);
    use(&pool, 1001, 1);
    ok(source.made == 2 && source.bytes == 0, "above the limit it is given back at once");
    pool.largest = 0;
    use(&pool, 1, 1);
    ok(source.bytes == 0, "a limit of 0 keeps nothing");
    pool.largest = 1001;
    use(&pool, 1001, 1);
    use(&pool, 1001, 1);
    ok(source.made == 4, "with a higher limit it is kept");
    flash_pool_clear(&pool);
}

static void test_few(void)
{
    source_t source = {.made = 0};
    flash_pool_t pool = pool_of(&source, 1000);

    use(&pool, 100, FLASH_POOL_KEPT + 2);
    ok(source.released == 2, "no more than %d are kept", FLASH_POOL_KEPT);
    use(&pool, 1000, 1);
    ok(source.released == 3 && source.bytes == 1000 + (FLASH_POOL_KEPT - 1) * 100,
       "a larger one takes the place of a smaller");
    use(&pool, 1000, 2);
    ok(source.bytes == 2 * 1000 + (FLASH_POOL_KEPT - 2) * 100, "and so does another one");
    flash_pool_clear(&pool);
}

/* flash_pool_take() makes none: the C library may have memory that was freed at the same address. */
static bool is_kept(flash_pool_t *pool, size_t size)
{
    size_t got;
    void *memory = flash_pool_get(pool, size, &got);
    bool kept;

    flash_pool_put(pool, memory, got);
    memory = flash_pool_take(pool, size, &got);
    kept = memory != NULL;
    flash_pool_put(pool, memory, got);
    return kept;
}

static void test_initial(void)
{
    flash_pool_t pool;

    flash_pool_init(&pool);
    ok(!is_kept(&pool, FLASH_POOL_LARGEST + 1), "by default, more than 64 MiB are not kept");
    ok(is_kept(&pool, FLASH_POOL_LARGEST), "and 64 MiB are");
    flash_pool_clear(&pool);
}

int main(void)
{
    test_kept();
    test_too_large();
    test_few();
    test_initial();
    return tap_done();
}
