/* A disk that hangs below one file: loaded with LD_PRELOAD it lets each read of the file that HANG_FILE names
 * wait for ever, once the file that HANG_FROM names is there. The first that waits writes a word into that. */
#include "reads.h"
#include <fcntl.h>

static void before_read(int file) {
    const char *from = getenv("HANG_FROM");
    if (!from || access(from, F_OK) || !is_named(file, "HANG_FILE")) return;
    int note = open(from, O_WRONLY | O_CLOEXEC);
    if (note >= 0 && write(note, "hangs\n", 6) == 6) close(note);
    for (;;) pause();
}
