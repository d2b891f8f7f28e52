/* Makes calls on files fail, as disks, network file systems and limits do: loaded with LD_PRELOAD. FAIL_CALLS holds
 * rules, separated by commas, each `CALLS ERRNO PATH [SPARED]`: calls of the names in CALLS (joined by `+`) fail with
 * that number on files whose path ends with PATH, but for the first SPARED of them. FAIL_FILE names a file that
 * has to be there for anything to fail; without it everything does from the beginning on. */
#include "calls.h"
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES 16
static atomic_long spent[RULES];

/* Whether one of the words that `+` joins is the name. */
static int names(const char *words, const char *name) {
    size_t length = strlen(name);
    for (const char *word = words; *word;) {
        size_t count = strcspn(word, "+");
        if (count == length && !strncmp(word, name, count)) return 1;
        word += count + (word[count] == '+');
    }
    return 0;
}

/* The number of the error that a call gets; 0: none. */
static int failure(const char *call, const char *path) {
    const char *rules = getenv("FAIL_CALLS"), *file = getenv("FAIL_FILE");
    if (!rules || !path) return 0;
    /* The end of a directory is told from a failure by the number that was there before. */
    int before = errno;
    int isArmed = !file || !NEXT(access)(file, F_OK);
    errno = before;
    if (!isArmed) return 0;
    size_t length = strlen(path);
    for (int index = 0; *rules && index < RULES; index++) {
        char rule[1024], calls[128], end[512];
        int number;
        long spared = 0;
        size_t count = strcspn(rules, ",");
        snprintf(rule, sizeof rule, "%.*s", (int)count, rules);
        rules += count + (rules[count] == ',');
        if (sscanf(rule, "%127s %d %511s %ld", calls, &number, end, &spared) < 3) continue;
        size_t ending = strlen(end);
        if (!names(calls, call) || length < ending || strcmp(path + length - ending, end)) continue;
        if (atomic_fetch_add(&spent[index], 1) >= spared) return number;
    }
    return 0;
}

/* The path of an open file; with a name in it, that of the name. */
static const char *place(char room[8192], int folder, const char *name) {
    if (name && (name[0] == '/' || folder == AT_FDCWD)) return name;
    char link[64];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t count = readlink(link, room, 4095);
    errno = before;
    if (count < 0) count = 0;
    room[count] = 0;
    if (name && *name) snprintf(room + count, 4095, "/%s", name);
    return room;
}

#define FAIL(call, path, result)                \
    do {                                        \
        int number = failure(call, path);       \
        if (number) {                           \
            errno = number;                     \
            return result;                      \
        }                                       \
    } while (0)

int open(const char *path, int flags, ...) {
    MODE(mode)
    FAIL("open", path, -1);
    return NEXT(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(mode)
    FAIL("open", path, -1);
    return NEXT(open64)(path, flags, mode);
}

int openat(int folder, const char *name, int flags, ...) {
    char room[8192];
    MODE(mode)
    FAIL("open", place(room, folder, name), -1);
    return NEXT(openat)(folder, name, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...) {
    char room[8192];
    MODE(mode)
    FAIL("open", place(room, folder, name), -1);
    return NEXT(openat64)(folder, name, flags, mode);
}

int stat(const char *path, struct stat *status) {
    FAIL("stat", path, -1);
    return NEXT(stat)(path, status);
}

int lstat(const char *path, struct stat *status) {
    FAIL("stat", path, -1);
    return NEXT(lstat)(path, status);
}

int fstat(int file, struct stat *status) {
    char room[8192];
    FAIL("fstat", place(room, file, NULL), -1);
    return NEXT(fstat)(file, status);
}

int fstatat(int folder, const char *name, struct stat *status, int flags) {
    char room[8192];
    FAIL("stat", place(room, folder, name), -1);
    return NEXT(fstatat)(folder, name, status, flags);
}

ssize_t read(int file, void *bytes, size_t count) {
    char room[8192];
    FAIL("read", place(room, file, NULL), -1);
    return NEXT(read)(file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
    char room[8192];
    FAIL("read", place(room, file, NULL), -1);
    return NEXT(pread)(file, bytes, count, offset);
}

DIR *opendir(const char *path) {
    char room[8192];
    int folder;
    const char *last = strrchr(path, '/');
    /* The path of a folder that is open. */
    if (!strncmp(path, "/proc/self/fd/", 14) && sscanf(last, "/%d", &folder) == 1) {
        FAIL("opendir", place(room, folder, NULL), NULL);
    }
    FAIL("opendir", path, NULL);
    return NEXT(opendir)(path);
}

struct dirent *readdir(DIR *folder) {
    char room[8192];
    FAIL("readdir", place(room, dirfd(folder), NULL), NULL);
    return NEXT(readdir)(folder);
}

int mkdir(const char *path, mode_t mode) {
    FAIL("mkdir", path, -1);
    return NEXT(mkdir)(path, mode);
}

int flock(int file, int operation) {
    char room[8192];
    FAIL("flock", place(room, file, NULL), -1);
    return NEXT(flock)(file, operation);
}

int fsync(int file) {
    char room[8192];
    FAIL("fsync", place(room, file, NULL), -1);
    return NEXT(fsync)(file);
}

/* By the new name. */
int rename(const char *from, const char *to) {
    FAIL("rename", to, -1);
    return NEXT(rename)(from, to);
}

/* By the new name. */
int linkat(int fromFolder, const char *from, int toFolder, const char *to, int flags) {
    char room[8192];
    FAIL("linkat", place(room, toFolder, to), -1);
    return NEXT(linkat)(fromFolder, from, toFolder, to, flags);
}

/* In a folder that is open, by the new name. */
int renameat(int fromFolder, const char *from, int toFolder, const char *to) {
    char room[8192];
    FAIL("renameat", place(room, toFolder, to), -1);
    return NEXT(renameat)(fromFolder, from, toFolder, to);
}

ssize_t write(int file, const void *bytes, size_t count) {
    char room[8192];
    if (file > 2) FAIL("write", place(room, file, NULL), -1);
    return NEXT(write)(file, bytes, count);
}
