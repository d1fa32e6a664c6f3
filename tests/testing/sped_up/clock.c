/* A clock that runs faster: preloaded, it changes what a process reads as the time of day.

   SPED_UP_CLOCK names a file that all processes map, so that all see the same time. It holds numbers of 64 bits: which of
   two settings is valid, 0 or 1; then each setting: two instants that are the same, the real one and the one to show, in
   nanoseconds since 1970, and how many times faster the clock runs.
   Monotonic clocks and the lengths of waits stay as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NUMBERS 7

static volatile long long *shared;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("SPED_UP_CLOCK");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *found = mmap(NULL, NUMBERS * sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
    if (found == MAP_FAILED) {
        perror("SPED_UP_CLOCK");
        _exit(97);
    }
    close(file);
    shared = found;
}

int clock_gettime(clockid_t id, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    if (failed == 0 && shared != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        volatile long long *own = shared + 1 + 3 * shared[0];
        long long shown = own[1] + (at->tv_sec * 1000000000LL + at->tv_nsec - own[0]) * own[2];
        at->tv_sec = shown / 1000000000LL;
        at->tv_nsec = shown % 1000000000LL;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}
