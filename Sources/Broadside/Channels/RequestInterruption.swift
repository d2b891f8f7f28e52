import BroadsideSupport
internal import Glibc
internal import Synchronization

/// SIGINT and SIGTERM while a command changes something at APNs with a single request.
///
/// While a request is in flight, the first signal waits for the response, and a second one ends the
/// process. At any other time, the first one ends it. The process says what is known about the
/// request, and its exit code says it, too. SIGHUP, as from a terminal that is closed, is ignored.
enum RequestInterruption {
    /// What the request changes.
    enum Operation: UInt8, CaseIterable, Sendable {
        case broadcast, create, delete
    }

    /// What is known about the operation.
    enum Phase: UInt8, CaseIterable, Sendable {
        /// APNs did not process a request.
        case notProcessed
        case inFlight
        /// APNs may have processed a request whose response is lost.
        case unknown
    }

    /// Ending of the process.
    struct Ending: Sendable {
        var message: StaticString
        var exitCode: Int32
    }

    private static let operation = Atomic<UInt8>(0)
    private static let phase = Atomic<UInt8>(0)
    /// Time of the first stop signal, in nanoseconds; 0: none.
    private static let stoppedAt = Atomic<UInt64>(0)

    /// Time after a stop signal in which further ones are the same request, in nanoseconds:
    /// timeout(1) signals the process, and then the process's group.
    private static var repeatedStopPeriod: UInt64 { 100 * millisecond }

    /// Whether a stop signal came while a request was in flight.
    static var isStopRequested: Bool { stoppedAt.load(ordering: .relaxed) != 0 }

    /// Handles the signals from now on. A signal that the parent process ignored stays ignored.
    static func handle(_ operation: Operation) {
        // Initializes the values, which the handler must not do.
        self.operation.store(operation.rawValue, ordering: .relaxed)
        phase.store(Phase.notProcessed.rawValue, ordering: .relaxed)
        stoppedAt.store(0, ordering: .relaxed)
        signal(SIGHUP, SIG_IGN)
        for number in [SIGINT, SIGTERM] {
            // The handler makes only calls that signal-safety(7) allows.
            let previous = signal(number) { _ in RequestInterruption.takeSignal() }
            // SAFETY: both values are addresses of functions, or small numbers such as SIG_IGN.
            if unsafe unsafeBitCast(previous, to: Int.self)
                == unsafeBitCast(SIG_IGN, to: Int.self)
            {
                signal(number, SIG_IGN)
            }
        }
    }

    /// Begins a phase in which a request is in flight, or its outcome is being recorded.
    static func beginFlight() { phase.store(Phase.inFlight.rawValue, ordering: .relaxed) }

    /// Ends this phase before a wait for the next attempt.
    ///
    /// - Throws: If a stop signal came in the meantime: no further request follows.
    static func endFlight(_ next: Phase) throws(BroadsideError) {
        assert(next != .inFlight, "a flight ends")
        phase.store(next.rawValue, ordering: .relaxed)
        guard isStopRequested,
            let operation = Operation(rawValue: Self.operation.load(ordering: .relaxed))
        else { return }
        let ending = Self.ending(of: operation, next)
        throw BroadsideError("\(ending.message)", exitCode: ending.exitCode)
    }

    private static func takeSignal() {
        let number = errno
        let now = Clock.now().nanoseconds
        let first = stoppedAt.load(ordering: .relaxed)
        guard let operation = Operation(rawValue: Self.operation.load(ordering: .relaxed)),
            let phase = Phase(rawValue: Self.phase.load(ordering: .relaxed))
        else { return }
        if phase == .inFlight {
            if first == 0 {
                stoppedAt.store(now, ordering: .relaxed)
                writeLine(
                    "stopping after the response, in at most 30 s; a second signal stops at once")
            }
            guard first != 0, now >= first + repeatedStopPeriod else {
                errno = number
                return
            }
        }
        let ending = Self.ending(of: operation, phase)
        writeLine(ending.message)
        _exit(ending.exitCode)
    }

    /// Ending in a phase. The handler calls this function, so it must not allocate.
    static func ending(of operation: Operation, _ phase: Phase) -> Ending {
        switch (operation, phase) {
        case (.broadcast, .notProcessed):
            Ending(
                message: """
                    stopped by a signal: APNs did not process the broadcast: to send it, start it \
                    again with the same --ledger
                    """, exitCode: ExitCode.rowsRemain)
        case (.broadcast, _):
            Ending(
                message: """
                    stopped by a signal: the broadcast may have been sent: to see its outcome, \
                    start it again with the same --ledger (only --retry unknown sends it again)
                    """, exitCode: ExitCode.openRows)
        case (.create, .notProcessed):
            Ending(
                message: "stopped by a signal: no channel was created: to create one, start again",
                exitCode: ExitCode.failure)
        case (.create, _):
            Ending(
                message: """
                    stopped by a signal: a channel may have been created: compare broadside channel \
                    list with your records, and delete any channel that you do not know (an orphan)
                    """, exitCode: ExitCode.openRows)
        case (.delete, .notProcessed):
            Ending(
                message: "stopped by a signal: the channel was not deleted: start again",
                exitCode: ExitCode.failure)
        case (.delete, _):
            Ending(
                message: """
                    stopped by a signal: the channel may have been deleted: broadside channel list \
                    shows whether it exists
                    """, exitCode: ExitCode.openRows)
        }
    }

    private static func writeLine(_ text: StaticString) {
        write("broadside: ")
        write(text)
        write("\n")
    }

    private static func write(_ text: StaticString) {
        // SAFETY: the text is constant and has the stated number of bytes.
        _ = unsafe Glibc.write(STDERR_FILENO, text.utf8Start, text.utf8CodeUnitCount)
    }
}
