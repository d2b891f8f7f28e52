internal import Glibc
internal import Synchronization

/// Text on its way to a terminal or a pipe, which may take it slowly, or not at all (Ctrl-S, a pager
/// that nobody scrolls, a log collector that stalls).
///
///     put ──▶ lines, at most `byteLimit` bytes ──▶ the writer's thread ──▶ descriptor
///
/// From `start` on, whoever puts a text here never waits: lines beyond the limit are dropped and
/// counted, and of frames of the live view only the latest is kept. Before, texts are written at
/// once: nothing runs yet that a wait could delay.
package final class OutputQueue: @unchecked Sendable {
    /// How far a descriptor took what was put into its queue.
    package enum Ending: Equatable {
        case written
        /// It takes nothing more: this error number.
        case failed(Int32)
        /// It took nothing for as long as the caller waited.
        case stuck
    }

    package static let standardError = OutputQueue(STDERR_FILENO)
    package static let standardOutput = OutputQueue(STDOUT_FILENO)

    /// The most bytes that wait to be written.
    static let byteLimit = 256 * 1024
    /// How long an end waits for output that nobody takes.
    private static let timeoutMilliseconds = 5_000
    /// The same where somebody wants the process to end at once.
    private static let urgentTimeoutMilliseconds = 100
    /// A write is at most this long, so that progress can be seen.
    private static let pieceSize = 4096

    private let descriptor: Int32
    private let monitor = Monitor()
    // Behind `monitor`:
    private var texts: [String] = []
    private var byteCount = 0
    private var droppedCount = 0
    private var frame: [String]?
    private var erasesFrame = false
    private var isWriting = false
    private var thread: WorkerThread?
    private var isGivenUp = false
    // Of the writer: the thread, or before it is started the holder of `monitor`.
    private var block = LiveBlock()

    private let writtenCount = Atomic<UInt64>(0)
    private let error = Atomic<Int32>(0)

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    private func locked<Result>(_ body: () -> Result) -> Result { monitor.locked(body) }

    /// Hands writing over to a thread of its own, for the rest of the process. Where no thread can
    /// be had, texts are still written at once.
    package func start() {
        locked {
            guard thread == nil else { return }
            thread = try? WorkerThread { [self] in writeForever() }
        }
    }

    /// Adds a text, with its line end.
    package func put(_ text: String) {
        locked {
            guard thread != nil else { return writeNow([text], nil, erases: false) }
            guard byteCount + text.utf8.count <= Self.byteLimit else {
                droppedCount += 1
                return
            }
            texts.append(text)
            byteCount += text.utf8.count
            monitor.signal()
        }
    }

    /// Shows lines at the bottom of a terminal in place of those before; empty: takes them back.
    package func show(_ lines: [String]) {
        locked {
            guard thread != nil else { return writeNow([], lines, erases: lines.isEmpty) }
            frame = lines.isEmpty ? nil : lines
            erasesFrame = lines.isEmpty
            monitor.signal()
        }
    }

    /// Waits until everything is written; gives up, once and for all, when nothing was taken for a
    /// few seconds, or when a signal says that it is not worth the wait.
    @discardableResult package func finish() -> Ending {
        let patience = locked { isGivenUp } ? 100 : Self.timeoutMilliseconds
        var waited = 0
        var seen = writtenCount.load(ordering: .relaxed)
        while locked({ isWriting || !texts.isEmpty || frame != nil || erasesFrame }) {
            usleep(2_000)
            waited += 2
            let count = writtenCount.load(ordering: .relaxed)
            if count != seen { (seen, waited) = (count, 0) }
            if waited >= patience
                || (waited >= Self.urgentTimeoutMilliseconds && SignalWatch.isStopUrgent)
            {
                locked { isGivenUp = true }
                return .stuck
            }
        }
        let error = error.load(ordering: .relaxed)
        return error == 0 ? .written : .failed(error)
    }

    // MARK: The writer

    private func writeForever() {
        while true {
            let (texts, frame, erases) = takeAll()
            writeNow(texts, frame, erases: erases)
            locked { isWriting = false }
        }
    }

    /// Waits for something to write, and takes all of it.
    private func takeAll() -> (texts: [String], frame: [String]?, erases: Bool) {
        locked {
            assert(!isWriting, "one thread writes, and one piece at a time")
            while texts.isEmpty, frame == nil, !erasesFrame {
                monitor.wait()
            }
            assert(!texts.isEmpty || byteCount == 0, "the size is that of the waiting texts")
            defer {
                texts = []
                byteCount = 0
                frame = nil
                erasesFrame = false
                droppedCount = 0
                isWriting = true
            }
            if droppedCount > 0 {
                texts.append(
                    "broadside: \(droppedCount) lines were dropped here: nothing read them\n")
            }
            return (texts, frame, erasesFrame)
        }
    }

    /// Writes texts above the lines that are shown, which follow again at once.
    private func writeNow(_ texts: [String], _ frame: [String]?, erases: Bool) {
        let shown = erases ? [] : frame ?? block.lines
        if erases || !texts.isEmpty { write(block.erasing()) }
        for text in texts { write(text) }
        if !shown.isEmpty, frame != nil || !texts.isEmpty { write(block.drawing(shown)) }
    }

    private func write(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            var written = 0
            while written < bytes.count {
                // SAFETY: `written` is below `count`, so that there is an address, and the rest is
                // as long as is said.
                let count = unsafe Glibc.write(
                    descriptor, bytes.baseAddress! + written,
                    min(bytes.count - written, Self.pieceSize))
                if count > 0 {
                    written += count
                    writtenCount.add(UInt64(count), ordering: .relaxed)
                } else if count < 0, errno == EAGAIN {
                    // Somebody who shares the descriptor does not want to wait on it.
                    _ = SystemCall.poll(descriptor, POLLOUT, -1)
                } else if count == 0 || errno != EINTR {
                    error.store(errno, ordering: .relaxed)
                    return
                }
            }
        }
    }
}

/// Lines of our own on stdout; nothing in them moves the cursor.
package func printText(_ lines: String) { print(ForeignText.escapedLines(lines), terminator: "") }

/// Lines of our own on stderr; nothing in them moves the cursor.
package func standardError(_ lines: String) {
    OutputQueue.standardError.put(ForeignText.escapedLines(lines) + "\n")
}

/// An error or a warning on stderr: one line, whatever is in it.
package func standardErrorLine(_ line: String) {
    standardError(ForeignText.escaped(SecretText.masked(line)))
}
