import Broadside
import BroadsideSupport
@unsafe @preconcurrency internal import Glibc

/// Takes the places of standard descriptors that were closed, before a file is opened there and gets what
/// was meant for people: a descriptor that takes no output, and one that gives no input, as they were.
func holdStandardDescriptors() {
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(descriptor, F_GETFD) < 0 {
        // open(2) gives the lowest number that is free: those below are held.
        _ = SystemCall.open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
}

/// Writes what is left of standard output, at the end of a command.
///
/// - Parameter code: The command's exit code.
/// - Returns: That, or the one for output that is lost. A reader that closed its pipe loses nothing.
func endOutput(_ code: Int32) -> Int32 {
    // SAFETY: nobody sets `stdout` to another stream; fflush(3) and ferror(3) lock it; poll(2) gets
    // one descriptor, ours during the call.
    let isFlushed = unsafe fflush(stdout) == 0
    let number = isFlushed ? 0 : errno
    if isFlushed, unsafe ferror(stdout) == 0 { return code }
    var polled = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
    _ = unsafe poll(&polled, 1, 0)
    // poll(2): the read end of a pipe was closed.
    if number == EPIPE || polled.revents & Int16(POLLERR) != 0 { return code }
    standardErrorLine(
        "broadside: standard output: it can't be written: free its disk or name another place")
    return code == ExitCode.complete ? ExitCode.disk : code
}
