import Broadside
@unsafe @preconcurrency internal import Glibc

/// Writes what is left of standard output, at the end of a command.
///
/// - Parameter code: The command's exit code.
/// - Returns: That, or the one for output that is lost. A reader that closed its pipe loses nothing.
func endOutput(_ code: Int32) -> Int32 {
    let isFlushed = unsafe fflush(stdout) == 0
    let number = isFlushed ? 0 : errno
    if isFlushed, unsafe ferror(stdout) == 0 { return code }
    var place = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
    _ = unsafe poll(&place, 1, 0)
    // poll(2): the read end of a pipe was closed.
    if number == EPIPE || place.revents & Int16(POLLERR) != 0 { return code }
    standardErrorLine(
        "broadside: standard output: it can't be written: free its disk or name another place")
    return code == ExitCode.complete ? ExitCode.disk : code
}
