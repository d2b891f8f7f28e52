/* Counts what a program allocates, and how often it counts references, syncs files and starts
 * threads, from outside of it: loaded with LD_PRELOAD it stands before the C library and the Swift
 * runtime. At the end of the program the counts go to the file that COUNT_FILE names, a `name
 * number` a line.
 *
 * What OpenSSL allocates is told apart by the caller's address: it takes a few small pieces for
 * each record, whatever is in it, and nobody but OpenSSL can change that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_ulong own_allocations, openssl_allocations;
static atomic_ulong retains, releases, accesses, objects, syncs, threads;

/* Where OpenSSL's code lies. */
static struct { const char *start, *end; } openssl[8];
static int openssl_count;

static int note_library(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "libcrypto") && !strstr(info->dlpi_name, "libssl")) return 0;
    for (int i = 0; i < info->dlpi_phnum && openssl_count < 8; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        openssl[openssl_count].start = (const char *)(info->dlpi_addr + part->p_vaddr);
        openssl[openssl_count].end = openssl[openssl_count].start + part->p_memsz;
        openssl_count++;
    }
    return 0;
}

static void count_allocation(const char *caller) {
    for (int i = 0; i < openssl_count; i++) {
        if (caller >= openssl[i].start && caller < openssl[i].end) {
            openssl_allocations++;
            return;
        }
    }
    own_allocations++;
}

#define COUNT_ALLOCATION() count_allocation((const char *)__builtin_return_address(0))

void *malloc(size_t count) {
    COUNT_ALLOCATION();
    return __libc_malloc(count);
}

void *calloc(size_t number, size_t count) {
    COUNT_ALLOCATION();
    return __libc_calloc(number, count);
}

void *realloc(void *old, size_t count) {
    COUNT_ALLOCATION();
    return __libc_realloc(old, count);
}

void *memalign(size_t alignment, size_t count) {
    COUNT_ALLOCATION();
    return __libc_memalign(alignment, count);
}

void *aligned_alloc(size_t alignment, size_t count) {
    COUNT_ALLOCATION();
    return __libc_memalign(alignment, count);
}

int posix_memalign(void **result, size_t alignment, size_t count) {
    COUNT_ALLOCATION();
    *result = __libc_memalign(alignment, count);
    return *result ? 0 : 12 /* ENOMEM */;
}

/* The Swift runtime's functions, as the program calls them. */
#define NEXT(name) \
    static _Atomic(void *) next; \
    if (!next) next = dlsym(RTLD_NEXT, name)

void *swift_retain(void *object) {
    NEXT("swift_retain");
    retains++;
    return ((void *(*)(void *))next)(object);
}

void swift_release(void *object) {
    NEXT("swift_release");
    releases++;
    ((void (*)(void *))next)(object);
}

void *swift_bridgeObjectRetain(void *object) {
    NEXT("swift_bridgeObjectRetain");
    retains++;
    return ((void *(*)(void *))next)(object);
}

void swift_bridgeObjectRelease(void *object) {
    NEXT("swift_bridgeObjectRelease");
    releases++;
    ((void (*)(void *))next)(object);
}

void swift_beginAccess(void *address, void *buffer, unsigned long flags, void *counter) {
    NEXT("swift_beginAccess");
    accesses++;
    ((void (*)(void *, void *, unsigned long, void *))next)(address, buffer, flags, counter);
}

void *swift_allocObject(void *metadata, size_t count, size_t alignment) {
    NEXT("swift_allocObject");
    objects++;
    return ((void *(*)(void *, size_t, size_t))next)(metadata, count, alignment);
}

int fsync(int descriptor) {
    NEXT("fsync");
    syncs++;
    return ((int (*)(int))next)(descriptor);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    NEXT("pthread_create");
    threads++;
    return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))next)(thread, attributes, run,
                                                                                           argument);
}

__attribute__((constructor)) static void start(void) { dl_iterate_phdr(note_library, NULL); }

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("COUNT_FILE");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "own_allocations %lu\nopenssl_allocations %lu\n", (unsigned long)own_allocations,
            (unsigned long)openssl_allocations);
    fprintf(file, "retains %lu\nreleases %lu\naccesses %lu\nobjects %lu\n", (unsigned long)retains,
            (unsigned long)releases, (unsigned long)accesses, (unsigned long)objects);
    fprintf(file, "syncs %lu\nthreads %lu\n", (unsigned long)syncs, (unsigned long)threads);
    fclose(file);
}
