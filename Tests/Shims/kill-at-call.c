/* Kills a program at one of its calls that change files: loaded with LD_PRELOAD it sends the process SIGKILL, or the
 * signal with the number that KILL_SIGNAL has, in the place of the call with the number that KILL_AT has, from 1.
 * Calls on what is already open count, too: they are writes, and the syncs that make them last. */
#include "calls.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

static void count(void) {
    const char *at = getenv("KILL_AT"), *signal = getenv("KILL_SIGNAL");
    if (at && atomic_fetch_add(&calls, 1) + 1 == atol(at)) raise(signal ? atoi(signal) : SIGKILL);
}

static void count_if_made(int flags) {
    if (flags & (O_CREAT | __O_TMPFILE)) count();
}

int open(const char *path, int flags, ...) {
    MODE(mode)
    count_if_made(flags);
    return NEXT(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(mode)
    count_if_made(flags);
    return NEXT(open64)(path, flags, mode);
}

int openat(int folder, const char *name, int flags, ...) {
    MODE(mode)
    count_if_made(flags);
    return NEXT(openat)(folder, name, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...) {
    MODE(mode)
    count_if_made(flags);
    return NEXT(openat64)(folder, name, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
    count();
    return NEXT(mkdir)(path, mode);
}

int rename(const char *from, const char *to) {
    count();
    return NEXT(rename)(from, to);
}

int renameat(int fromFolder, const char *from, int toFolder, const char *to) {
    count();
    return NEXT(renameat)(fromFolder, from, toFolder, to);
}

int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) {
    count();
    return NEXT(renameat2)(fromFolder, from, toFolder, to, flags);
}

int linkat(int fromFolder, const char *from, int toFolder, const char *to, int flags) {
    count();
    return NEXT(linkat)(fromFolder, from, toFolder, to, flags);
}

int unlink(const char *path) {
    count();
    return NEXT(unlink)(path);
}

int unlinkat(int folder, const char *name, int flags) {
    count();
    return NEXT(unlinkat)(folder, name, flags);
}

ssize_t write(int file, const void *bytes, size_t length) {
    if (file > 2) count();
    return NEXT(write)(file, bytes, length);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    count();
    return NEXT(pwrite)(file, bytes, length, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
    count();
    return NEXT(pwrite64)(file, bytes, length, offset);
}

int ftruncate(int file, off_t length) {
    count();
    return NEXT(ftruncate)(file, length);
}

int fsync(int file) {
    count();
    return NEXT(fsync)(file);
}

int fdatasync(int file) {
    count();
    return NEXT(fdatasync)(file);
}
