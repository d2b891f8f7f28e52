/* Makes calls fail that nothing from outside makes fail: loaded with LD_PRELOAD it stands before OpenSSL
 * and liburing. Once the file that FAIL_FILE names is there, those calls fail that it holds the word of:
 * `sign` (a signing key does not sign), `ring` (a thread cannot wait for what it has submitted),
 * `folder` (no directory can be synced), `odd` (there is nothing to sync in a directory), `sync` (a disk
 * never syncs the telemetry), `claim` (nor a claim on a ledger), `metrics`, `summary`, `report` (nor takes
 * the file of that name), `frames` (nor what is written to it). Once a disk hangs, there is a file named FAIL_FILE and
 * `.hangs`. Once the file that FAIL_THREADS names is there, no thread can be started. */
#include "calls.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fails(const char *word) {
    char text[16] = "";
    const char *path = getenv("FAIL_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    return count > 0 && !strncmp(text, word, strlen(word));
}

static void hang(const char *word) {
    while (fails(word)) {
        char note[4096];
        snprintf(note, sizeof note, "%s.hangs", getenv("FAIL_FILE"));
        int file = open(note, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0) close(file);
        pause();
    }
}

int EVP_DigestSign(void *context, void *signature, size_t *count, const void *text, size_t length) {
    if (fails("sign")) return 0;
    return NEXT(EVP_DigestSign)(context, signature, count, text, length);
}

int gnutls_privkey_sign_data2(
    void *key, int algorithm, unsigned flags, const void *text, void *signature) {
    if (fails("sign")) return -1;
    return NEXT(gnutls_privkey_sign_data2)(key, algorithm, flags, text, signature);
}

int io_uring_submit_and_get_events(void *ring) {
    if (fails("ring")) return -EINVAL;
    return NEXT(io_uring_submit_and_get_events)(ring);
}

int io_uring_submit_and_wait(void *ring, unsigned count) {
    if (fails("ring")) return -EINVAL;
    return NEXT(io_uring_submit_and_wait)(ring, count);
}

int io_uring_submit_and_wait_timeout(
    void *ring, void **entry, unsigned count, void *limit, void *mask) {
    if (fails("ring")) return -EINVAL;
    return NEXT(io_uring_submit_and_wait_timeout)(ring, entry, count, limit, mask);
}

int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    const char *path = getenv("FAIL_THREADS");
    if (path && !access(path, F_OK)) return EAGAIN;
    return NEXT(pthread_create)(thread, attributes, body, argument);
}

int rename(const char *from, const char *to) {
    static const char *const words[] = {"metrics", "summary", "report"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(to, words[i])) hang(words[i]);
    }
    return NEXT(rename)(from, to);
}

static void name(int descriptor, char path[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t count = readlink(link, path, 4095);
    path[count > 0 ? count : 0] = 0;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    char path[4096];
    name(descriptor, path);
    if (strstr(path, "/frames")) hang("frames");
    return NEXT(write)(descriptor, bytes, count);
}

int fsync(int descriptor) {
    struct stat status;
    if (!fstat(descriptor, &status) && S_ISDIR(status.st_mode)) {
        errno = fails("folder") ? EIO : fails("odd") ? EINVAL : 0;
        if (errno) return -1;
    }
    char path[4096];
    name(descriptor, path);
    if (strstr(path, "telemetry")) hang("sync");
    if (strstr(path, "/.broadside-")) hang("claim");
    return NEXT(fsync)(descriptor);
}
