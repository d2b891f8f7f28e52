// What thread sanitizer has to be told of the standard library's Mutex.
//
// The library is not built with the sanitizer. What of a Mutex is compiled into its user, one atomic
// operation to lock and one to unlock, is seen; where two threads contend the library asks the kernel
// instead (FUTEX_LOCK_PI, FUTEX_UNLOCK_PI), and the sanitizer learns nothing of the lock changing
// hands: it then reports races between what the lock keeps apart. So these two take the place of the
// library's functions, in a build for the sanitizer alone: they call them, and tell.
//
// `Tests/Threads/Lock.swift` reports races without this file, and must report none with it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// The sanitizer's interface: what happened before a release at an address happens before what follows
// an acquisition there.
void __tsan_acquire(void *address);
void __tsan_release(void *address);

// Synchronization._MutexHandle._lockSlow(UInt32) and ._unlockSlow(). `self` is the lock's word, which
// the operations that are compiled into the user work on as well.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SWIFT_CALL __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

typedef SWIFT_CALL void lock_function(uint32_t thread, SELF void *word);
typedef SWIFT_CALL void unlock_function(SELF void *word);

static lock_function *library_lock;
static unlock_function *library_unlock;

__attribute__((constructor)) static void find_library(void) {
    library_lock = (lock_function *)dlsym(RTLD_NEXT, LOCK);
    library_unlock = (unlock_function *)dlsym(RTLD_NEXT, UNLOCK);
    if (library_lock == NULL || library_unlock == NULL) abort();
}

SWIFT_CALL void told_lock(uint32_t thread, SELF void *word) __asm__(LOCK);
SWIFT_CALL void told_unlock(SELF void *word) __asm__(UNLOCK);

SWIFT_CALL void told_lock(uint32_t thread, SELF void *word) {
    library_lock(thread, word);
    __tsan_acquire(word);
}

SWIFT_CALL void told_unlock(SELF void *word) {
    __tsan_release(word);
    library_unlock(word);
}
