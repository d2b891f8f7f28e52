/* A disk that hangs below one file: loaded with LD_PRELOAD it lets each read of the file that HANG_FILE names
 * wait for ever, once the file that HANG_FROM names is there; with HANG_AFTER, only after so many reads that
 * were made since then. The first that waits writes a word into that file. */
#include "reads.h"
#include <fcntl.h>
#include <stdatomic.h>

static atomic_int reads;

static void before_read(int file) {
    const char *from = getenv("HANG_FROM"), *after = getenv("HANG_AFTER");
    if (!from || access(from, F_OK) || !is_named(file, "HANG_FILE")) return;
    if (after && atomic_fetch_add(&reads, 1) < atoi(after)) return;
    int note = open(from, O_WRONLY | O_CLOEXEC);
    if (note >= 0 && write(note, "hangs\n", 6) == 6) close(note);
    for (;;) pause();
}
