/*
 * lost_victim.c: see lost_victim.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lost_victim.h"
#include "mpitest.h"

char lost_state_of(int pid)
{
    char path[32], line[256] = "", *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    if (fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    fclose(file);
    end = strrchr(line, ')'); /* behind the name, which may hold anything */
    return (char) (end == NULL ? 0 : end[2]);
}

static int guardian; /* the victim's parent, if it is to wait for lost_release() */

static int of_environment(const char *name)
{
    const char *value = getenv(name);

    return value == NULL ? 0 : atoi(value);
}

void lost_guard_victim(void)
{
    static const struct timespec pause = {.tv_nsec = 100000000};
    int releases_left = of_environment("OMPI_COMM_WORLD_SIZE") - 1;
    pid_t child, mpirun = getppid();
    siginfo_t info;
    sigset_t releases;

    if (of_environment("OMPI_COMM_WORLD_RANK") != LOST_VICTIM) {
        return;
    }
    sigemptyset(&releases);
    sigaddset(&releases, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &releases, NULL); /* each is queued */
    guardian = (int) getpid();
    child = fork();
    if (child == 0) {
        sigprocmask(SIG_UNBLOCK, &releases, NULL);
        return;
    }
    waitid(P_PID, (id_t) child, &info, WEXITED | WNOWAIT);
    while (releases_left > 0 && getppid() == mpirun) {
        releases_left -= sigtimedwait(&releases, NULL, &pause) == SIGRTMIN;
    }
    raise(SIGKILL);
}

void lost_release(void)
{
    if (guardian > 0) {
        kill(guardian, SIGRTMIN);
    }
}

void lost_see_victim_die(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    int pids[2] = {(int) getpid(), guardian};

    if (world_rank == LOST_VICTIM) {
        for (int rank = 0; rank < world_size; rank++) {
            if (rank != LOST_VICTIM) {
                MPI_Send(pids, 2, MPI_INT, rank, 0, MPI_COMM_WORLD);
            }
        }
        for (int rank = 0; rank < world_size; rank++) {
            if (rank != LOST_VICTIM) {
                MPI_Recv(NULL, 0, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
        raise(SIGKILL);
    }
    MPI_Recv(pids, 2, MPI_INT, LOST_VICTIM, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    guardian = pids[1];
    MPI_Send(NULL, 0, MPI_INT, LOST_VICTIM, 0, MPI_COMM_WORLD);
    for (char state = 'R'; state != 0 && state != 'Z' && state != 'X';
         state = lost_state_of(pids[0])) {
        nanosleep(&pause, NULL);
    }
}
