// <sys/types.h> comes first, else fd_set differs between C modules.
#include <sys/types.h>
#include <liburing.h>
#include <sys/eventfd.h>
