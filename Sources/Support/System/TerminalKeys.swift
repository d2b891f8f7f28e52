internal import Glibc

/// Keys typed at the terminal of standard input, read without a line end and without echo.
///
/// Ctrl-C and Ctrl-Z keep their meaning. The terminal's mode is changed only while this process is
/// in the foreground, and restored when keys are no longer read.
package final class TerminalKeys {
    /// The original mode of the terminal.
    private let before: termios
    private var isChanged = false

    /// Maximum number of bytes that one read takes; further bytes of a paste stay queued.
    private static let bytesAtOnce = 16

    /// Creates a reader; nil if standard input is not a terminal.
    package init?() {
        var modes = termios()
        // SAFETY: a local variable that the call writes.
        guard isatty(STDIN_FILENO) == 1, unsafe tcgetattr(STDIN_FILENO, &modes) == 0 else {
            return nil
        }
        before = modes
    }

    deinit { restore() }

    /// Returns the keys typed since the last call, without waiting.
    package func take() -> [UInt8] {
        // In the background the terminal belongs to another process, and a read would stop this
        // one.
        guard tcgetpgrp(STDIN_FILENO) == getpgrp(), change() else { return [] }
        guard SystemCall.poll(STDIN_FILENO, POLLIN, 0) > 0 else { return [] }
        var room = [UInt8](repeating: 0, count: Self.bytesAtOnce)
        let count = SystemCall.read(STDIN_FILENO, &room)
        return count > 0 ? Array(room[..<count]) : []
    }

    /// Restores the terminal's original mode.
    package func restore() {
        guard isChanged else { return }
        isChanged = false
        guard tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
        var modes = before
        // SAFETY: a local variable that the call reads.
        unsafe _ = tcsetattr(STDIN_FILENO, TCSANOW, &modes)
    }

    /// Sets the mode again for each read, because a shell changes it while the process is
    /// suspended.
    private func change() -> Bool {
        var modes = termios()
        // SAFETY: a local variable that the call writes.
        guard unsafe tcgetattr(STDIN_FILENO, &modes) == 0 else { return false }
        let wanted = before.c_lflag & ~tcflag_t(ICANON | ECHO)
        guard modes.c_lflag != wanted else { return true }
        modes = before
        modes.c_lflag = wanted
        // A read returns immediately with the available bytes. SAFETY: both are indices of the
        // control characters.
        unsafe withUnsafeMutableBytes(of: &modes.c_cc) { characters in
            unsafe characters[Int(VMIN)] = 0
            unsafe characters[Int(VTIME)] = 0
        }
        isChanged = true
        // SAFETY: a local variable that the call reads.
        return unsafe tcsetattr(STDIN_FILENO, TCSANOW, &modes) == 0
    }
}
