// <sys/types.h> comes first, else fd_set differs between C modules.
#include <sys/types.h>
#include <liburing.h>
#include <sys/eventfd.h>

// Not liburing's, but of the system as well: prctl takes a variable number of arguments. Declared
// here, since <sys/prctl.h> and <signal.h> would take names of Glibc's module into this one.
extern int prctl(int option, ...);

// AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, and STATX_MODE | STATX_NLINK | STATX_SIZE: the open file itself, as its server knows it.
// The empty path is a constant: it outlives the operation.
static inline void ring_prep_file_status(struct io_uring_sqe *entry, int descriptor, void *status) {
    io_uring_prep_statx(entry, descriptor, "", 0x1000 | 0x2000, 0x2 | 0x4 | 0x200, (struct statx *)status);
}

// The names that the file has, its permissions, and its bytes, of what `ring_prep_file_status` filled in.
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
