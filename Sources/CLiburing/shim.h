// <sys/types.h> comes first, else fd_set differs between C modules.
#include <sys/types.h>
#include <liburing.h>
#include <sys/eventfd.h>

// Not liburing's, but of the system as well: prctl takes a variable number of arguments. Declared
// here, since <sys/prctl.h> and <signal.h> would take names of Glibc's module into this one.
extern int prctl(int option, ...);

static inline int ring_die_with_parent(void) {
    return prctl(1 /* PR_SET_PDEATHSIG */, 9 /* SIGKILL */, 0, 0, 0);
}
