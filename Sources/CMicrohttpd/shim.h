#include <sys/types.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <string.h>
#include <microhttpd.h>

// MHD_start_daemon and MHD_get_daemon_info have variable arguments, so Swift cannot import them.
// The host is a numeric address.

static inline struct MHD_Daemon *microhttpd_start(
    const char *host, unsigned short port, MHD_AccessHandlerCallback handler, void *context,
    MHD_NotifyConnectionCallback notify, unsigned int connection_limit,
    unsigned int timeout_seconds)
{
    unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO;
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
    return MHD_start_daemon(
        flags, 0, NULL, NULL, handler, context,
        MHD_OPTION_SOCK_ADDR, address,
        MHD_OPTION_NOTIFY_CONNECTION, notify, context,
        MHD_OPTION_CONNECTION_LIMIT, connection_limit,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(16 * 1024),
        MHD_OPTION_END);
}

// Queues a response with a copy of a plain text.
static inline enum MHD_Result microhttpd_reply(
    struct MHD_Connection *connection, unsigned int status, const void *text, size_t count)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(count, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(
        response, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

// Returns the connection's socket; -1 if it has none.
static inline int microhttpd_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

// Returns the request's Host header, NULL if it has none; valid until the request is answered.
static inline const char *microhttpd_host(struct MHD_Connection *connection)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
}

static inline unsigned int microhttpd_port(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}
