// <sys/types.h> must come first; otherwise fd_set differs between C modules.
#include <sys/types.h>
#include <liburing.h>
#include <sys/eventfd.h>

// Not part of liburing. Swift cannot call prctl, which has variable arguments. Declared here,
// because <sys/prctl.h> and <signal.h> would move names from Glibc's module into this one.
extern int prctl(int option, ...);

// Prepares statx(2) of the open file, with its state on the file's server: AT_EMPTY_PATH |
// AT_STATX_FORCE_SYNC, and STATX_MODE | STATX_NLINK | STATX_SIZE. The empty path is a constant, so
// it outlives the operation.
static inline void ring_prep_file_status(struct io_uring_sqe *entry, int descriptor, void *status) {
    io_uring_prep_statx(entry, descriptor, "", 0x1000 | 0x2000, 0x2 | 0x4 | 0x200, (struct statx *)status);
}

// Number of the file's names, its permissions and its byte count, from the status requested by
// `ring_prep_file_status`.
static inline unsigned int ring_link_count(const void *status) {
    return *(const unsigned int *)((const char *)status + 16);
}
static inline unsigned int ring_permissions(const void *status) {
    return *(const unsigned short *)((const char *)status + 28) & 0777;
}
static inline unsigned long long ring_byte_count(const void *status) {
    return *(const unsigned long long *)((const char *)status + 40);
}

static inline int ring_die_with_parent(void) {
    return prctl(1 /* PR_SET_PDEATHSIG */, 9 /* SIGKILL */, 0, 0, 0);
}
