/* Stops a program in the middle of a file: loaded with LD_PRELOAD it sends the process SIGSTOP when it has
 * read from the file that STOP_FILE names, and before it reads from it again. Once; SIGCONT continues it. */
#include "reads.h"
#include <signal.h>

static int reads;

static void before_read(int file) {
    if (reads <= 1 && is_named(file, "STOP_FILE") && reads++ == 1) raise(SIGSTOP);
}
