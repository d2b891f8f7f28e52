import BroadsideSupport
internal import Glibc
internal import Synchronization

/// The line that a broadcast prints if SIGINT or SIGTERM ends the process.
enum BroadcastInterruption {
    /// Whether the broadcast may have been sent.
    static let mayBeSent = Atomic<Bool>(false)

    /// From now on, prints the line if a signal comes. A signal that the parent process ignored
    /// stays ignored.
    static func note() {
        // Initializes the value, which the handler must not do.
        mayBeSent.store(true, ordering: .relaxed)
        for number in [SIGINT, SIGTERM] {
            // The handler makes only calls that signal-safety(7) allows.
            let previous = signal(number) { number in
                if BroadcastInterruption.mayBeSent.load(ordering: .relaxed) {
                    BroadcastInterruption.writeLine(
                        """
                        broadside: stopped by a signal: the broadcast may have been sent; to see \
                        its outcome, start it again with the same --ledger (only --retry unknown \
                        sends it again)

                        """)
                } else {
                    BroadcastInterruption.writeLine(
                        """
                        broadside: stopped by a signal: APNs did not process the broadcast; to \
                        send it, start it again with the same --ledger

                        """)
                }
                signal(number, SIG_DFL)
                // The system delivers the signal when the handler returns.
                raise(number)
            }
            // SAFETY: both values are addresses of functions, or small numbers such as SIG_IGN.
            if unsafe unsafeBitCast(previous, to: Int.self)
                == unsafeBitCast(SIG_IGN, to: Int.self)
            {
                signal(number, SIG_IGN)
            }
        }
    }

    private static func writeLine(_ text: StaticString) {
        // SAFETY: the text is constant and has the stated number of bytes.
        _ = unsafe write(STDERR_FILENO, text.utf8Start, text.utf8CodeUnitCount)
    }
}
