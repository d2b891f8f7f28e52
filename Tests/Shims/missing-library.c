/* Makes a library that is loaded by name missing: loaded with LD_PRELOAD it stands before dlopen, which finds
 * nothing whose name begins with the word in MISSING. */
#include "calls.h"
#include <stdlib.h>
#include <string.h>

void *dlopen(const char *name, int flags) {
    const char *missing = getenv("MISSING");
    if (name && missing && !strncmp(name, missing, strlen(missing))) return NULL;
    return NEXT(dlopen)(name, flags);
}
