/* Stops a program in the middle of a file: loaded with LD_PRELOAD it sends the process SIGSTOP when it has
 * read from the file that STOP_FILE names, and before it reads from it again. Once; SIGCONT continues it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int reads;

static void note(int file) {
    char link[64], path[4096];
    const char *wanted = getenv("STOP_FILE");
    if (!wanted || reads > 1) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t count = readlink(link, path, sizeof path - 1);
    if (count < 0) return;
    path[count] = 0;
    if (!strcmp(path, wanted) && reads++ == 1) raise(SIGSTOP);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int file, void *room, size_t count) {
    note(file);
    return NEXT(read)(file, room, count);
}

ssize_t pread(int file, void *room, size_t count, off_t offset) {
    note(file);
    return NEXT(pread)(file, room, count, offset);
}

ssize_t pread64(int file, void *room, size_t count, off64_t offset) {
    note(file);
    return NEXT(pread64)(file, room, count, offset);
}
