// <sys/types.h> comes first, else fd_set differs between C modules.
#include <sys/types.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <signal.h>
#include <sys/prctl.h>

// Not liburing's, but of the system as well: prctl takes a variable number of arguments.
static inline int ring_die_with_parent(void) {
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}
