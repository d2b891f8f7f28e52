/* A disk that hangs below one file: loaded with LD_PRELOAD it lets each read of the file that HANG_FILE names
 * wait for ever, once the file that HANG_FROM names is there. The first that waits writes a word into that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for_disk(int file) {
    char link[64], path[4096], resolved[PATH_MAX];
    const char *wanted = getenv("HANG_FILE"), *from = getenv("HANG_FROM");
    if (!wanted || !from || access(from, F_OK) || !realpath(wanted, resolved)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t count = readlink(link, path, sizeof path - 1);
    if (count < 0) return;
    path[count] = 0;
    if (strcmp(path, resolved)) return;
    int note = open(from, O_WRONLY | O_CLOEXEC);
    if (note >= 0 && write(note, "hangs\n", 6) == 6) close(note);
    for (;;) pause();
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int file, void *room, size_t count) {
    wait_for_disk(file);
    return NEXT(read)(file, room, count);
}

ssize_t pread(int file, void *room, size_t count, off_t offset) {
    wait_for_disk(file);
    return NEXT(pread)(file, room, count, offset);
}

ssize_t pread64(int file, void *room, size_t count, off64_t offset) {
    wait_for_disk(file);
    return NEXT(pread64)(file, room, count, offset);
}
