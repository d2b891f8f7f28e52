import BroadsideCampaigns
import BroadsideSupport
@unsafe @preconcurrency internal import Glibc

/// Occupies standard descriptors that were closed, so that a file opened later does not receive
/// output meant for a terminal. Like closed descriptors, they accept no output and provide no
/// input.
func holdStandardDescriptors() {
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(descriptor, F_GETFD) < 0 {
        // open(2) returns the lowest free number; all lower ones are occupied.
        _ = SystemCall.open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
}

/// Flushes standard output at the end of a command.
///
/// - Parameter code: Exit code of the command.
/// - Returns: The same code, or the exit code for lost output. If the reader closed its pipe,
///   nothing counts as lost.
func endOutput(_ code: Int32) -> Int32 {
    // SAFETY: `stdout` is never set to another stream; fflush(3) and ferror(3) lock it; poll(2)
    // gets one descriptor, ours during the call.
    let isFlushed = unsafe fflush(stdout) == 0
    let number = isFlushed ? 0 : errno
    if isFlushed, unsafe ferror(stdout) == 0 { return code }
    var polled = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
    _ = unsafe poll(&polled, 1, 0)
    // poll(2): the read end of a pipe was closed.
    if number == EPIPE || polled.revents & Int16(POLLERR) != 0 { return code }
    standardErrorLine(
        "broadside: standard output can't be written: free space on its disk, or redirect it "
            + "elsewhere")
    return code == ExitCode.complete ? ExitCode.disk : code
}
