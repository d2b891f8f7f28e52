#include <dlfcn.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <string.h>
#include <microhttpd.h>

// The functions of libmicrohttpd that are used. The library, which needs GnuTLS and nine more, is loaded
// by the first endpoint.
typedef struct {
    __typeof__(&MHD_start_daemon) start_daemon;
    __typeof__(&MHD_stop_daemon) stop_daemon;
    __typeof__(&MHD_get_daemon_info) daemon_info;
    __typeof__(&MHD_get_connection_info) connection_info;
    __typeof__(&MHD_lookup_connection_value) connection_value;
    __typeof__(&MHD_get_connection_values) connection_values;
    __typeof__(&MHD_create_response_from_buffer) create_response;
    __typeof__(&MHD_add_response_header) add_header;
    __typeof__(&MHD_queue_response) queue_response;
    __typeof__(&MHD_destroy_response) destroy_response;
} microhttpd_functions;

// Loads the library, which is never unloaded; call it once. Returns NULL if it is missing, or lacks a
// function.
static inline const microhttpd_functions *microhttpd_load(void)
{
    static microhttpd_functions functions;
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
#define MICROHTTPD_FIND(member, name) \
    ((functions.member = (__typeof__(functions.member))dlsym(library, name)) != NULL)
    return MICROHTTPD_FIND(start_daemon, "MHD_start_daemon")
        && MICROHTTPD_FIND(stop_daemon, "MHD_stop_daemon")
        && MICROHTTPD_FIND(daemon_info, "MHD_get_daemon_info")
        && MICROHTTPD_FIND(connection_info, "MHD_get_connection_info")
        && MICROHTTPD_FIND(connection_value, "MHD_lookup_connection_value")
        && MICROHTTPD_FIND(connection_values, "MHD_get_connection_values")
        && MICROHTTPD_FIND(create_response, "MHD_create_response_from_buffer")
        && MICROHTTPD_FIND(add_header, "MHD_add_response_header")
        && MICROHTTPD_FIND(queue_response, "MHD_queue_response")
        && MICROHTTPD_FIND(destroy_response, "MHD_destroy_response")
        ? &functions : NULL;
#undef MICROHTTPD_FIND
}

// MHD_start_daemon and MHD_get_daemon_info have variable arguments, so Swift cannot import them.
// The host is a numeric address. With `threads`, each connection has a thread of its own, so that a
// handler may wait.

static inline struct MHD_Daemon *microhttpd_start(
    const microhttpd_functions *functions, const char *host, unsigned short port,
    MHD_AccessHandlerCallback handler, void *context,
    MHD_NotifyConnectionCallback notify, unsigned int connection_limit,
    unsigned int timeout_seconds, int threads)
{
    unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO;
    if (threads)
        flags |= MHD_USE_THREAD_PER_CONNECTION;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr *address = (struct sockaddr *)&four;
    memset(&four, 0, sizeof four);
    memset(&six, 0, sizeof six);
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
    } else if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(port);
        address = (struct sockaddr *)&six;
        flags |= MHD_USE_IPv6;
    } else {
        return NULL;
    }
    return functions->start_daemon(
        flags, 0, NULL, NULL, handler, context,
        MHD_OPTION_SOCK_ADDR, address,
        MHD_OPTION_NOTIFY_CONNECTION, notify, context,
        MHD_OPTION_CONNECTION_LIMIT, connection_limit,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(16 * 1024),
        MHD_OPTION_END);
}

// Queues a response with a copy of a text.
static inline enum MHD_Result microhttpd_reply(
    const microhttpd_functions *functions, struct MHD_Connection *connection, unsigned int status,
    const char *content_type, const void *text, size_t count)
{
    struct MHD_Response *response =
        functions->create_response(count, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    functions->add_header(response, "Content-Type", content_type);
    enum MHD_Result result = functions->queue_response(connection, status, response);
    functions->destroy_response(response);
    return result;
}

// Returns the connection's socket; -1 if it has none.
static inline int microhttpd_socket(
    const microhttpd_functions *functions, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        functions->connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

// Returns a header of the request, NULL if it has none; valid until the request is answered.
static inline const char *microhttpd_header(
    const microhttpd_functions *functions, struct MHD_Connection *connection, const char *name)
{
    return functions->connection_value(connection, MHD_HEADER_KIND, name);
}

// Passes each parameter of the query to the function, decoded; its value is NULL if it has none.
static inline void microhttpd_query(
    const microhttpd_functions *functions, struct MHD_Connection *connection,
    MHD_KeyValueIterator take, void *context)
{
    functions->connection_values(connection, MHD_GET_ARGUMENT_KIND, take, context);
}

static inline unsigned int microhttpd_port(
    const microhttpd_functions *functions, struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = functions->daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

// Ends the daemon, and returns when its thread has ended.
static inline void microhttpd_stop(
    const microhttpd_functions *functions, struct MHD_Daemon *daemon)
{
    functions->stop_daemon(daemon);
}
