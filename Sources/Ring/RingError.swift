// Declarations of <sys/socket.h> belong to whichever of the two modules the compiler read first.
internal import CBroadsideLiburing
import Glibc

/// Error of the ring or a socket, described on one line with the remedy if it is known.
///
/// If an operation fails in the kernel (a refused connection, a failed write), this is not an error
/// of the ring: it arrives as a negative `Completion.result`.
public struct RingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// System call, or group of calls, that failed.
    enum Operation: String, Sendable {
        case setUp = "io_uring_setup"
        case registerBuffers = "io_uring_register"
        case submit = "io_uring_enter"
        case socket
        case bind
        case listen
        case localAddress = "getsockname"
        case eventDescriptor = "eventfd"
        /// `code` is one of getaddrinfo's EAI_ codes, not an errno.
        case resolve = "getaddrinfo"
    }

    /// The failed operation.
    var operation: Operation
    /// Positive `errno` value; for `.resolve` the code of getaddrinfo.
    public var code: Int32
    /// Address or host name concerned, if any.
    var subject: String?

    /// Creates an error of an operation with its positive `errno` value.
    init(_ operation: Operation, code: Int32, subject: String? = nil) {
        self.operation = operation
        self.code = code
        self.subject = subject
    }

    /// One line without a final full stop.
    public var description: String {
        let about = subject.map { " \($0)" } ?? ""
        switch operation {
        case .setUp: return Self.setUpDescription(code)
        case .registerBuffers where Self.isForbidden(code),
            .submit where Self.isForbidden(code):
            return "\(operation.rawValue) is forbidden here (\(Self.text(code))): allow "
                + "\(Self.ringCalls) in the container's seccomp profile"
        case .eventDescriptor where Self.isForbidden(code):
            return "eventfd is forbidden here (\(Self.text(code))): allow eventfd2 in the "
                + "container's seccomp profile"
        case .resolve:
            // SAFETY: gai_strerror returns a text for any code, and the text is constant.
            let reason = unsafe String(cString: gai_strerror(code))
            return "cannot resolve\(about): \(reason)"
        case .bind where code == EADDRINUSE:
            return "cannot listen on\(about): the port is taken by another process"
        default:
            return "\(operation.rawValue)\(about): \(Self.text(code))"
        }
    }

    /// Describes why io_uring can't be used. Containers refuse it with EPERM (Docker's seccomp
    /// profile) or ENOSYS (gVisor); hosts that disable it by sysctl also use EPERM.
    private static func setUpDescription(_ code: Int32) -> String {
        switch code {
        case EPERM, EACCES:
            return "io_uring is forbidden here (\(text(code))): allow \(ringCalls) in the "
                + "container's seccomp profile, or set the sysctl kernel.io_uring_disabled to 0"
        case ENOSYS:
            return "io_uring is missing here (\(text(code))): run on Linux 6.1 or newer, "
                + "outside of sandboxes that lack it, such as gVisor"
        case EINVAL:
            return "this kernel's io_uring is too old (\(text(code))): run on Linux 6.1 or newer"
        case ENOMEM:
            return "no memory for io_uring (\(text(code))): raise the locked-memory limit "
                + "(ulimit -l) or use fewer reactors"
        case EMFILE, ENFILE:
            return "no file descriptor left for io_uring (\(text(code))): raise ulimit -n"
        default:
            return "io_uring_setup: \(text(code))"
        }
    }

    /// Whether a seccomp profile forbids a call, if the call fails with this error although its
    /// arguments are right. Profiles refuse calls with EPERM, EACCES or ENOSYS.
    private static func isForbidden(_ code: Int32) -> Bool {
        code == EPERM || code == EACCES || code == ENOSYS
    }

    /// The system calls of io_uring, for messages.
    private static let ringCalls = "io_uring_setup, io_uring_enter and io_uring_register"

    private static func text(_ code: Int32) -> String {
        // SAFETY: strerror has a text for each code; it stays valid until this thread's next call
        // (glibc 2.32 and later), and is copied at once.
        unsafe String(cString: strerror(code))
    }
}
