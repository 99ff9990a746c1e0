/*
 * test_process.c: whether another process is there, told by what the kernel says of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/flash_process.h"
#include "engine/flash_transport.h"
#include "tap.h"

enum { OURS = 4711, OTHER = 4712 };

static uint64_t number = OURS; /* a child has it at the same address */
static int to_parent[2], to_child[2];

static void say(const int channel[2])
{
    if (write(channel[1], "", 1) != 1) {
        abort();
    }
}

/* Returns as well when the other process is gone. */
static void wait_for(const int channel[2])
{
    char byte;

    if (read(channel[0], &byte, 1) < 0) {
        abort();
    }
}

/*
 * A child that runs `live` and ends. The parent goes on when the child has said that it is there.
 */
static pid_t start_child(void (*live)(void))
{
    pid_t child;

    if (pipe(to_parent) != 0 || pipe(to_child) != 0 || (child = fork()) < 0) {
        abort();
    }
    if (child == 0) {
        close(to_child[1]);
        live();
        _exit(0);
    }
    wait_for(to_parent);
    return child;
}

/* The child has ended; its parent has not waited for it. */
static void let_end(pid_t child)
{
    siginfo_t info;

    say(to_child);
    if (waitid(P_PID, (id_t) child, &info, WEXITED | WNOWAIT) != 0) {
        abort();
    }
}

static void bury(pid_t child)
{
    if (waitpid(child, NULL, 0) != child) {
        abort();
    }
    for (int end = 0; end < 2; end++) {
        close(to_parent[end]);
        close(to_child[end]);
    }
}

static void wait_for_parent(void)
{
    say(to_parent);
    wait_for(to_child);
}

static bool is_gone(pid_t pid, uint64_t expected)
{
    flash_process_t process = {.pid = pid, .at = &number, .number = expected};

    return flash_process_is_gone(&process);
}

static void test_end(void)
{
    pid_t child = start_child(wait_for_parent);

    ok(!is_gone(child, OURS) && !is_gone(child, 0), "a process that runs is there");
    let_end(child);
    ok(is_gone(child, OURS) && is_gone(child, 0), "gone when it has ended, not waited for");
    bury(child);
    ok(is_gone(child, OURS) && is_gone(child, 0), "gone when it has been waited for");
}

/* Not by pthread_join(), which ThreadSanitizer does not expect of the first thread. */
static bool first_thread_has_ended(void)
{
    FILE *file = fopen("/proc/self/stat", "r");
    char state = 0;

    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
        abort();
    }
    fclose(file);
    return state == 'Z';
}

static void *outlive_first_thread(void *arg)
{
    (void) arg;
    while (!first_thread_has_ended()) {
        sched_yield();
    }
    wait_for_parent();
    _exit(0);
}

static void end_first_thread(void)
{
    pthread_t other;

    if (pthread_create(&other, NULL, outlive_first_thread, NULL) != 0) {
        abort();
    }
    pthread_exit(NULL);
}

static void test_first_thread(void)
{
    pid_t child = start_child(end_first_thread);

    ok(!is_gone(child, OURS) && !is_gone(child, 0), "there while other threads than the first run");
    let_end(child);
    ok(is_gone(child, OURS) && is_gone(child, 0), "gone when these have ended");
    bury(child);
}

/* What had the number is closed, and its memory has another use. */
static void forget_number(void)
{
    wait_for_parent();
    number = OTHER;
    wait_for_parent();
}

static void test_other_use(void)
{
    pid_t child = start_child(forget_number);
    flash_process_t met = {.pid = child, .at = &number, .number = OURS}, earlier;

    flash_process_meet(&met);
    earlier = met;
    earlier.began--;
    if (flash_process_may_be_read(&met)) {
        say(to_child);
        wait_for(to_parent);
        ok(!flash_process_is_gone(&met), "there when the number's memory has another use");
        ok(flash_process_is_gone(&earlier), "gone when it began at another time");
        flash_process_meet(&met);
        ok(met.began == 0, "one that is not that process is not met");
        let_end(child);
        ok(flash_process_is_gone(&earlier) && flash_process_is_gone(&met),
           "gone when it has ended");
    } else {
        say(to_child);
        let_end(child);
    }
    bury(child);
}

static void test_reading(void)
{
    pid_t child = start_child(wait_for_parent);
    flash_process_t process = {.pid = child, .at = &number, .number = OURS};
    uint64_t found = 0;

    if (flash_process_may_be_read(&process)) {
        ok(flash_process_read(&process, &found, &number, sizeof(found)) == FLASH_OK &&
               found == OURS,
           "a process that runs is read");
        ok(is_gone(child, OTHER), "another process has got its pid: the one meant is gone");
    }
    let_end(child);
    ok(!flash_process_may_be_read(&process) &&
           flash_process_read(&process, &found, &number, sizeof(found)) == FLASH_ERR_LOST,
       "one that has ended is lost");
    bury(child);
}

int main(void)
{
    test_end();
    test_first_thread();
    test_other_use();
    test_reading();
    return tap_done();
}
