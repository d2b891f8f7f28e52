/* Says on stderr which library has something done at the process' end: loaded with LD_PRELOAD it stands
 * before the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int __cxa_atexit(void (*function)(void *), void *argument, void *object) {
    int (*next)(void (*)(void *), void *, void *) = dlsym(RTLD_NEXT, "__cxa_atexit");
    Dl_info info;
    if (dladdr((void *)function, &info) && info.dli_fname) dprintf(2, "exit handler of %s\n", info.dli_fname);
    return next(function, argument, object);
}
