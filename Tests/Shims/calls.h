/* What shims that take the place of a library's calls have in common. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>

/* The function that the shim's own stands before. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Of an `open`: the mode, which is there only if a file may be made. */
#define MODE(mode)                              \
    mode_t mode = 0;                            \
    if (flags & (O_CREAT | __O_TMPFILE)) {      \
        va_list more;                           \
        va_start(more, flags);                  \
        mode = va_arg(more, mode_t);            \
        va_end(more);                           \
    }
