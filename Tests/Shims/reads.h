/* Stands before the reads of a program that LD_PRELOAD loads a shim into: `before_read` is the shim's. */
#include "calls.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void before_read(int file);

/* Whether an open file is the one that a variable of the environment names. */
static int is_named(int file, const char *variable) {
    char link[64], path[PATH_MAX], resolved[PATH_MAX];
    const char *wanted = getenv(variable);
    if (!wanted || !realpath(wanted, resolved)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t count = readlink(link, path, sizeof path - 1);
    if (count < 0) return 0;
    path[count] = 0;
    return !strcmp(path, resolved);
}

ssize_t read(int file, void *room, size_t count) {
    before_read(file);
    return NEXT(read)(file, room, count);
}

ssize_t pread(int file, void *room, size_t count, off_t offset) {
    before_read(file);
    return NEXT(pread)(file, room, count, offset);
}

ssize_t pread64(int file, void *room, size_t count, off64_t offset) {
    before_read(file);
    return NEXT(pread64)(file, room, count, offset);
}
