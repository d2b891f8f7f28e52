import BroadsideObservability
import BroadsideSupport
internal import Synchronization

/// Event of a run that is reported to its hook.
enum HookEvent: String, Sendable {
    /// Sending has begun.
    case started
    /// A wave of rows begins.
    case wave
    /// The run has ended with rows left, or for a cause other than the end of its list.
    case stopped
    /// Every row is settled.
    case finished

    /// Event for the end of a run with this exit code.
    init(exitCode: Int32) {
        let isWhole = exitCode == ExitCode.complete || exitCode == ExitCode.openRows
        self = isWhole ? .finished : .stopped
    }
}

/// Runs the command of `--hook` for one event at a time, on a separate thread. Sending never waits
/// for the command. A command that fails causes only a warning.
///
///     put --> waits --> sh -c COMMAND, event on stdin --> ended, or killed after 30 s --> next
final class EventHook {
    /// Event as the command reads it.
    private struct Call: Sendable {
        var event: HookEvent
        var text: String
    }

    /// Time limit of a call.
    static let secondsLimit: UInt64 = 30
    /// Limit on waiting calls. A run has one call at its start, one at its end, and one per wave.
    private static let waitingLimit = 8 + wavesLimit
    /// Maximum number of waves that cause a call. Further waves cause none.
    private static let wavesLimit = 512
    private var waveCount = 0

    private let state = State()
    private let ledger: String
    /// Whether `finish` was called. If so, no event follows.
    private(set) var isFinished = false

    /// The state that the run's thread and the hook's thread share.
    private final class State: Sendable {
        let queue = BoundedQueue<Call?>(limit: EventHook.waitingLimit + 1)
        let shell = ShellCommand()
        let isOver = Atomic<Bool>(false)
    }

    /// - Parameters:
    ///   - command: Command for the shell.
    ///   - ledger: Directory of the ledger.
    /// - Throws: If the system refuses a thread (exit 1).
    init(_ command: String, ledger: String) throws(BroadsideError) {
        self.ledger = Self.absolute(ledger)
        // Captures `state` and not `self`, because the thread would otherwise keep its owner alive.
        let state = state
        _ = try WorkerThread {
            while let next = state.queue.take(), let call = next {
                Self.run(command, call, by: state.shell)
            }
            state.isOver.store(true, ordering: .releasing)
        }
    }

    deinit { state.queue.close() }

    /// Schedules the command without waiting for it.
    ///
    /// - Parameters:
    ///   - event: Event to report.
    ///   - summary: Summary of the run, at its end.
    ///   - hasLedger: Whether the ledger exists.
    ///   - report: File of the report; nil: none was written.
    func put(
        _ event: HookEvent, summary: Summary? = nil, wave: JSONLine? = nil, hasLedger: Bool = true,
        report: String? = nil
    ) {
        precondition(!isFinished, "a run that has ended has no more events")
        if event == .wave {
            guard waveCount < Self.wavesLimit else { return }
            waveCount += 1
        }
        var line = JSONLine()
        line.add("event", event.rawValue)
        line.addRaw("summary", summary.map(Self.onOneLine) ?? "null")
        if let wave { line.add("wave", wave) }
        line.add("ledger", hasLedger ? ledger : nil)
        line.add("report", report.map(Self.absolute))
        state.queue.put(Call(event: event, text: line.object + "\n"))
    }

    /// Waits until the command has run for each event. A signal ends the running command.
    ///
    /// - Parameters:
    ///   - signals: Takes signals during the wait.
    ///   - isUrgent: Whether a second stop signal was taken earlier.
    func finish(_ signals: SignalWatch, isUrgent: Bool) {
        assert(!isFinished, "a hook ends once")
        isFinished = true
        state.queue.put(nil)
        let start = Clock.now().nanoseconds
        let patience = isUrgent ? Self.urgentPatience : Self.patience
        while !state.isOver.load(ordering: .acquiring) {
            let isStopped = signals.isStopTaken(milliseconds: 20)
            guard isStopped || Clock.now().nanoseconds >= start + patience else { continue }
            state.shell.cancel()
            standardErrorLine(
                "broadside: warning: --hook was ended: "
                    + (isStopped || isUrgent ? "a signal came" : "it did not end in time"))
            // The thread kills the command that it runs.
            let end = Clock.now().nanoseconds + second
            while !state.isOver.load(ordering: .acquiring), Clock.now().nanoseconds < end {
                SignalWatch.awaitNotification(milliseconds: 10)
            }
            return
        }
    }

    /// Time limit for the calls that the end of a run waits for. It is enough for two calls: one
    /// for the start of the run, and one for its end.
    private static var patience: UInt64 { (2 * secondsLimit + 5) * second }
    /// Time limit for the calls that the end of a run waits for after a second signal.
    private static var urgentPatience: UInt64 { 2 * second }

    private static func run(_ command: String, _ call: Call, by shell: ShellCommand) {
        let end = shell.run(
            command, input: Array(call.text.utf8),
            variables: ["BROADSIDE_EVENT": call.event.rawValue],
            limits: .init(outputBytes: nil, nanoseconds: secondsLimit * second),
            heedsSignals: false)
        let problem: String
        switch end.outcome {
        case .exited(0), .cancelled: return
        case .exited(let code): problem = "failed with exit code \(code)"
        case .killed(let signal): problem = "was ended by signal \(signal)"
        case .notStarted(let number): problem = "can't be run: /bin/sh: \(describe(errno: number))"
        case .tookTooLong: problem = "took longer than \(secondsLimit) s and was ended"
        case .printedTooMuch: preconditionFailure("what a hook prints is not limited")
        }
        standardErrorLine(
            "broadside: warning: --hook \(problem) at \(call.event.rawValue)"
                + SecretCommand.excerpt(of: end))
    }

    /// A summary without line breaks and indentation: line breaks within strings are escaped.
    private static func onOneLine(_ summary: Summary) -> String {
        String(decoding: summary.json(), as: UTF8.self).pieces(at: "\n")
            .map { line in line.drop { $0 == " " } }.joined()
    }

    private static func absolute(_ path: String) -> String {
        guard !path.starts(withBytes: "/"), let folder = SystemCall.workingDirectory else {
            return path
        }
        return "\(folder)/\(path)"
    }
}
