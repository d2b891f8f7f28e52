internal import Glibc
internal import Synchronization

/// A queue of texts for a terminal or a pipe that may accept output slowly or not at all (Ctrl-S, a
/// paused pager, a stalled log collector).
///
///     put ──▶ lines, at most `byteLimit` bytes ──▶ the writer's thread ──▶ descriptor
///
/// After `start`, adding a text never blocks: lines beyond the limit are dropped and counted, and
/// only the latest frame of the live view is kept. Before `start`, texts are written immediately,
/// because no run can be delayed yet.
package final class OutputQueue: @unchecked Sendable {
    /// The result of writing a queue's remaining output.
    package enum Ending: Equatable {
        case written
        /// The descriptor failed with this error number.
        case failed(Int32)
        /// The descriptor accepted nothing for the whole waiting time.
        case stuck
    }

    package static let standardError = OutputQueue(STDERR_FILENO)
    package static let standardOutput = OutputQueue(STDOUT_FILENO)

    /// Maximum number of queued bytes.
    static let byteLimit = 256 * 1024
    /// Maximum time for which `finish()` waits for a stalled descriptor.
    private static let timeoutMilliseconds = 5_000
    /// Maximum time for which `finish()` waits after a signal that requests an immediate end.
    private static let urgentTimeoutMilliseconds = 100
    /// Maximum byte count of one write. Several small writes let `finish()` observe progress.
    private static let pieceSize = 4096

    private let descriptor: Int32
    private let monitor = Monitor()
    // Protected by `monitor`:
    private var texts: [String] = []
    private var byteCount = 0
    private var droppedCount = 0
    private var frame: [String]?
    private var erasesFrame = false
    private var isWriting = false
    private var thread: WorkerThread?
    private var isGivenUp = false
    // Owned by the writer. Before the writer's thread is started, the holder of `monitor` is the
    // writer.
    private var block = LiveBlock()

    private let writtenCount = Atomic<UInt64>(0)
    private let error = Atomic<Int32>(0)

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    private func locked<Result>(_ body: () -> Result) -> Result { monitor.locked(body) }

    /// Transfers writing to a dedicated thread for the rest of the process. If no thread is
    /// available, texts are still written immediately.
    package func start() {
        locked {
            guard thread == nil else { return }
            thread = try? WorkerThread { [self] in writeForever() }
        }
    }

    /// Adds a text including its line end.
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

    /// Shows lines at the bottom of a terminal in place of the previous ones; an empty array
    /// removes them.
    package func show(_ lines: [String]) {
        locked {
            guard thread != nil else { return writeNow([], lines, erases: lines.isEmpty) }
            frame = lines.isEmpty ? nil : lines
            erasesFrame = lines.isEmpty
            monitor.signal()
        }
    }

    /// Waits until everything is written; gives up permanently if nothing was accepted for a few
    /// seconds, or when a signal requests an immediate end.
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

    // MARK: Writer

    private func writeForever() {
        while true {
            let (texts, frame, erases) = takeAll()
            writeNow(texts, frame, erases: erases)
            locked { isWriting = false }
        }
    }

    /// Waits for queued output and takes all of it.
    private func takeAll() -> (texts: [String], frame: [String]?, erases: Bool) {
        locked {
            assert(!isWriting, "one thread writes, and one piece at a time")
            while texts.isEmpty, frame == nil, !erasesFrame {
                monitor.wait()
            }
            assert(
                texts.reduce(0) { $0 + $1.utf8.count } == byteCount,
                "the size is the sum of the waiting texts' sizes")
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
                    "broadside: \(droppedCount) lines were dropped here, because "
                        + "nothing read them\n")
            }
            return (texts, frame, erasesFrame)
        }
    }

    /// Writes texts above the live lines, which are then redrawn.
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
                // SAFETY: `written` is below `count`, so there is an address, and the remainder has
                // the byte count passed.
                let count = unsafe Glibc.write(
                    descriptor, bytes.baseAddress! + written,
                    min(bytes.count - written, Self.pieceSize))
                if count > 0 {
                    written += count
                    writtenCount.add(UInt64(count), ordering: .relaxed)
                } else if count < 0, errno == EAGAIN {
                    // The descriptor is nonblocking, as set by a process that shares it.
                    _ = SystemCall.poll(descriptor, POLLOUT, -1)
                } else if count == 0 || errno != EINTR {
                    error.store(errno, ordering: .relaxed)
                    return
                }
            }
        }
    }
}

/// Prints Broadside's own lines on stdout, with cursor controls escaped.
package func printText(_ lines: String) { print(ForeignText.escapedLines(lines), terminator: "") }

/// Prints Broadside's own lines on stderr, with cursor controls escaped. A hosted run passes the
/// lines to its host instead.
package func standardError(_ lines: String) {
    if let host = HostedRun.current { return host.notice(lines) }
    OutputQueue.standardError.put(ForeignText.escapedLines(lines) + "\n")
}

/// Prints an error or a warning on stderr as one line, whatever its content.
package func standardErrorLine(_ line: String) {
    standardError(ForeignText.escaped(SecretText.masked(line)))
}
