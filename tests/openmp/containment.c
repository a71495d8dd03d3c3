/* containment END: a target region that leaves processes behind in many ways, then goes on as END says. Each
   way tries to cut the ties to the process of the region, and none of the processes ends by itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma omp declare target
static void stay(void) {
    for (;;)
        pause();
}

static void cut_ties(void) {
    setsid();
    for (int descriptor = 0; descriptor < 256; ++descriptor)
        close(descriptor);
    signal(SIGTERM, SIG_IGN);
}

/* One process after the other, each in a session of its own. */
static void run_away(void) {
    for (;;) {
        if (fork() > 0) _exit(0);
        setsid();
        usleep(5000);
    }
}

static void leave_processes(void) {
    if (fork() == 0) stay();
    if (fork() == 0) {
        cut_ties();
        stay();
    }
    if (fork() == 0) {
        if (fork() == 0) {
            cut_ties();
            if (fork() == 0) stay();
            stay();
        }
        _exit(0);
    }
    if (fork() == 0) {
        setsid();
        for (;;)
            raise(SIGSTOP);
    }
    if (fork() == 0) {
        cut_ties();
        run_away();
    }
    for (int i = 0; i < 12; ++i)
        if (fork() == 0) {
            if (i % 2 == 0) cut_ties();
            stay();
        }
}
#pragma omp end declare target

int main(int count, char** arguments) {
    const char end = count > 1 ? arguments[1][0] : 'n';
    int left = 0, code = 0;
    if (end == 'c') {
        /* Children that end badly are not the region's end, nor the program's. */
#pragma omp target map(tofrom : left, code)
        {
            int status = 0;
            pid_t child = fork();
            if (child == 0) exit(7);
            waitpid(child, &status, 0);
            code = WEXITSTATUS(status);
            child = fork();
            if (child == 0) *(volatile int*)8 = 1;
            waitpid(child, &status, 0);
            left = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        }
        printf("children ended with code %d and signal %d\n", code, left);
        return 0;
    }
#pragma omp target map(tofrom : left)
    {
        leave_processes();
        left = 1;
    }
    printf("left %d\n", left);
    fflush(stdout);
#pragma omp target firstprivate(end)
    {
        if (end == 'e')
            for (volatile int forever = 1; forever;) {
            }
        if (end == 'b') *(volatile int*)8 = 1;
        if (end == 's') {
            kill(getpid(), SIGSTOP);
            stay();
        }
    }
    printf("end\n");
    return 0;
}
