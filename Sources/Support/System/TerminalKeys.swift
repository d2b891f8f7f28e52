internal import Glibc

/// Keys as they are typed at the terminal of standard input, without a line end and without an echo.
///
/// Ctrl-C and Ctrl-Z stay what they are. The terminal is changed only while this process is in its
/// foreground, and is as it was when the keys are no longer read.
package final class TerminalKeys {
    /// How the terminal was before.
    private let before: termios
    private var isChanged = false

    /// Bytes that are taken at once; what was pasted beyond them waits.
    private static let bytesAtOnce = 16

    /// nil if standard input is no terminal.
    package init?() {
        var modes = termios()
        // SAFETY: a local that the call sets.
        guard isatty(STDIN_FILENO) == 1, unsafe tcgetattr(STDIN_FILENO, &modes) == 0 else {
            return nil
        }
        before = modes
    }

    deinit { restore() }

    /// What was typed since the last call; never waits.
    package func take() -> [UInt8] {
        // In the background the terminal is another process's: a read would stop this one.
        guard tcgetpgrp(STDIN_FILENO) == getpgrp(), change() else { return [] }
        guard SystemCall.poll(STDIN_FILENO, POLLIN, 0) > 0 else { return [] }
        var room = [UInt8](repeating: 0, count: Self.bytesAtOnce)
        let count = SystemCall.read(STDIN_FILENO, &room)
        return count > 0 ? Array(room[..<count]) : []
    }

    /// Leaves the terminal as it was.
    package func restore() {
        guard isChanged else { return }
        isChanged = false
        guard tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
        var modes = before
        // SAFETY: a local that the call reads.
        unsafe _ = tcsetattr(STDIN_FILENO, TCSANOW, &modes)
    }

    /// Each time, as a shell changes the terminal while the process is suspended.
    private func change() -> Bool {
        var modes = termios()
        // SAFETY: a local that the call sets.
        guard unsafe tcgetattr(STDIN_FILENO, &modes) == 0 else { return false }
        let wanted = before.c_lflag & ~tcflag_t(ICANON | ECHO)
        guard modes.c_lflag != wanted else { return true }
        modes = before
        modes.c_lflag = wanted
        // A read takes what is there.
        // SAFETY: both are indices of the characters.
        unsafe withUnsafeMutableBytes(of: &modes.c_cc) { characters in
            unsafe characters[Int(VMIN)] = 0
            unsafe characters[Int(VTIME)] = 0
        }
        isChanged = true
        // SAFETY: a local that the call reads.
        return unsafe tcsetattr(STDIN_FILENO, TCSANOW, &modes) == 0
    }
}
