internal import Glibc

/// A command line, run by `sh -c` in a separate process group. Its output and its duration are
/// limited, and the caller can end it at any time.
///
///     run --- spawned --- reads input, prints --- ends ----------------> End
///                               |-- limit exceeded, cancelled --> group killed --> End
package final class ShellCommand: @unchecked Sendable {
    /// The limits on a command's output and duration.
    package struct Limits: Sendable {
        /// Maximum byte count of standard output; a command that prints more is killed. If nil,
        /// standard output and standard error share a pipe, and the first `errorBytes` bytes from
        /// this pipe are kept.
        package var outputBytes: Int?
        package var nanoseconds: UInt64

        package init(outputBytes: Int?, nanoseconds: UInt64) {
            self.outputBytes = outputBytes
            self.nanoseconds = nanoseconds
        }

        /// Number of bytes of standard error that are kept; the rest is read and discarded.
        package static let errorBytes = 16_384
    }

    /// Reason why a command ended.
    package enum Outcome: Sendable, Equatable {
        case exited(Int32)
        case killed(signal: Int32)
        /// The system could not start the shell; the value is `errno`.
        case notStarted(Int32)
        case tookTooLong
        case printedTooMuch
        /// The caller or a stop signal ended the command.
        case cancelled
    }

    /// Result of a command: how it ended, and what it wrote.
    package struct End: Sendable {
        package var outcome: Outcome
        package var output: [UInt8]
        package var errors: [UInt8]
    }

    private let monitor = Monitor()
    // Protected by `monitor`:
    /// The process group of the running command; 0 if no command is running.
    private var group: pid_t = 0
    private var isCancelled = false

    package init() {}

    /// Ends the running command; later calls of `run` start nothing.
    package func cancel() {
        monitor.locked {
            isCancelled = true
            if group > 0 { kill(-group, SIGKILL) }
        }
    }

    /// Runs a command and waits for its end.
    ///
    /// - Parameters:
    ///   - command: Command line for the shell.
    ///   - input: The command's standard input, which it need not read.
    ///   - variables: Environment variables that are added to those of this process, or replace
    ///     them.
    ///   - limits: Limits on output and duration.
    ///   - heedsSignals: Whether a pending stop signal ends the command. The signal is consumed.
    ///     Set it if no other thread handles signals while the command runs.
    package func run(
        _ command: String, input: [UInt8] = [], variables: [String: String] = [:],
        limits: Limits, heedsSignals: Bool
    ) -> End {
        // SIGPIPE must not end this process if the command closes its input. A signal to stop must
        // end the command, too.
        var blocked = [SIGPIPE]
        if heedsSignals { blocked += [SIGINT, SIGTERM] }
        let before = SignalSet.blocked
        SignalSet(blocked).block()
        defer {
            _ = SignalSet([SIGPIPE]).take(nanoseconds: 0)
            before.become()
        }
        guard var pipes = Pipes(hasInput: !input.isEmpty, hasOutput: limits.outputBytes != nil)
        else { return End(outcome: .notStarted(errno), output: [], errors: []) }
        defer { pipes.closeAll() }
        let start = Clock.now().nanoseconds
        let failure = monitor.locked { () -> Int32 in
            guard !isCancelled else { return ECANCELED }
            precondition(group == 0, "one command at a time")
            return Self.spawn(command, variables, pipes, &group)
        }
        guard failure == 0 else {
            return End(
                outcome: failure == ECANCELED ? .cancelled : .notStarted(failure), output: [],
                errors: [])
        }
        pipes.closeChildren()
        let end = attend(
            &pipes, input: input, limits, end: start + limits.nanoseconds, heedsSignals)
        // The caller reports the signal. Once it is unblocked, it must not end the process.
        if heedsSignals, end.outcome == .cancelled, HostedRun.current == nil {
            SignalWatch.takeStop()
        }
        return end
    }

    /// Interval, in milliseconds, between checks of whether the command has ended.
    private static let patience: Int32 = 20
    /// Maximum wait for the end of a killed command, in nanoseconds.
    private static var killPatience: UInt64 { 2 * second }

    private func attend(
        _ pipes: inout Pipes, input: [UInt8], _ limits: Limits, end: UInt64, _ heedsSignals: Bool
    ) -> End {
        var result = End(outcome: .cancelled, output: [], errors: [])
        // Reserves memory for the whole output. If the array grew, its old memory would not be
        // overwritten.
        if let count = limits.outputBytes { result.output.reserveCapacity(count + Self.stretch) }
        var rest = input[...]
        var killedFor: Outcome?
        var lastSampleTime = UInt64.max
        while true {
            pipes.move(&rest, Self.patience, &result, limits)
            // Does not wait for output that a background process may still write.
            if let outcome = ended() {
                pipes.move(&rest, 0, &result, limits)
                result.outcome = killedFor ?? outcome
                if let most = limits.outputBytes, result.output.count > most, killedFor == nil {
                    result.outcome = .printedTooMuch
                }
                return result
            }
            if let killedFor {
                // A process whose disk hangs can't be killed.
                guard Clock.now().nanoseconds >= lastSampleTime else { continue }
                monitor.locked { group = 0 }
                result.outcome = killedFor
                return result
            }
            if monitor.locked({ isCancelled }) {
                killedFor = .cancelled
            } else if heedsSignals, SignalWatch.isStopPending {
                killedFor = .cancelled
            } else if let most = limits.outputBytes, result.output.count > most {
                killedFor = .printedTooMuch
            } else if Clock.now().nanoseconds >= end {
                killedFor = .tookTooLong
            }
            guard killedFor != nil else { continue }
            lastSampleTime = Clock.now().nanoseconds + Self.killPatience
            monitor.locked { _ = kill(-group, SIGKILL) }
        }
    }

    /// Returns how the shell ended; nil while it runs.
    private func ended() -> Outcome? {
        monitor.locked {
            var status: Int32 = 0
            assert(group > 0, "a command that ended is asked for no more")
            // SAFETY: waitpid(2) sets the status, a local, during the call.
            let found = unsafe waitpid(group, &status, WNOHANG)
            if found < 0, errno == EINTR { return nil }
            guard found != 0 else { return nil }
            // From now on, the number may be that of an unrelated process.
            group = 0
            // In a process that ignores SIGCHLD, the exit code is lost.
            guard found > 0 else { return .exited(0) }
            let signal = status & 0x7f
            return signal == 0 ? .exited(status >> 8 & 0xff) : .killed(signal: signal)
        }
    }

    /// Maximum number of bytes per read.
    fileprivate static let stretch = 4_096
}

extension ShellCommand {
    /// Descriptors of the pipes between this process and a command; -1 if a pipe is closed or does
    /// not exist.
    private struct Pipes {
        private var ours: (input: Int32, output: Int32, errors: Int32) = (-1, -1, -1)
        private(set) var theirs: (input: Int32, output: Int32, errors: Int32) = (-1, -1, -1)

        init?(hasInput: Bool, hasOutput: Bool) {
            func pipe() -> (reading: Int32, writing: Int32)? {
                var ends: [Int32] = [-1, -1]
                // SAFETY: pipe(2) sets both numbers of the array during the call.
                guard unsafe Glibc.pipe(&ends) == 0 else { return nil }
                for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
                return (ends[0], ends[1])
            }
            if hasInput {
                guard let ends = pipe() else { return nil }
                (theirs.input, ours.input) = ends
                _ = fcntl(ours.input, F_SETFL, O_NONBLOCK)
            }
            if hasOutput {
                guard let ends = pipe() else {
                    abandon()
                    return nil
                }
                (ours.output, theirs.output) = ends
            }
            guard let ends = pipe() else {
                abandon()
                return nil
            }
            (ours.errors, theirs.errors) = ends
        }

        private mutating func abandon() {
            let code = errno
            closeAll()
            errno = code
        }

        mutating func closeChildren() {
            for end in [theirs.input, theirs.output, theirs.errors] where end >= 0 { close(end) }
            theirs = (-1, -1, -1)
        }

        mutating func closeAll() {
            closeChildren()
            for end in [ours.input, ours.output, ours.errors] where end >= 0 { close(end) }
            ours = (-1, -1, -1)
        }

        /// Waits for at most the given time, then writes input and reads output without blocking.
        mutating func move(
            _ rest: inout ArraySlice<UInt8>, _ milliseconds: Int32, _ result: inout End,
            _ limits: Limits
        ) {
            if rest.isEmpty, ours.input >= 0 {
                close(ours.input)
                ours.input = -1
            }
            var patience = milliseconds
            while true {
                // poll(2) ignores negative descriptors.
                var waited = [
                    pollfd(fd: ours.input, events: Int16(POLLOUT), revents: 0),
                    pollfd(fd: ours.output, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: ours.errors, events: Int16(POLLIN), revents: 0),
                ]
                guard SystemCall.poll(&waited, patience) > 0 else { return }
                patience = 0
                if waited[0].revents != 0 {
                    let count = SystemCall.write(ours.input, Array(rest).rawSpan)
                    if count > 0 { rest = rest.dropFirst(count) }
                    // The command reads no more input: the rest is discarded.
                    if rest.isEmpty || count < 0 && errno != EAGAIN && errno != EINTR {
                        rest = []
                        close(ours.input)
                        ours.input = -1
                    }
                }
                if waited[1].revents != 0 {
                    Self.read(&ours.output, &result.output, most: (limits.outputBytes ?? 0) + 1)
                }
                if waited[2].revents != 0 {
                    Self.read(&ours.errors, &result.errors, most: Limits.errorBytes)
                }
                assert(
                    result.errors.count <= Limits.errorBytes, "kept error output has a limit")
                if let most = limits.outputBytes, result.output.count > most { return }
            }
        }

        private static func read(_ descriptor: inout Int32, _ bytes: inout [UInt8], most: Int) {
            var stretch = [UInt8](repeating: 0, count: ShellCommand.stretch)
            // SAFETY: no other code uses the array, and all of its bytes are overwritten.
            defer {
                unsafe stretch.withUnsafeMutableBytes {
                    unsafe explicit_bzero($0.baseAddress!, $0.count)
                }
            }
            let count = SystemCall.read(descriptor, &stretch)
            if count < 0, errno == EINTR || errno == EAGAIN { return }
            guard count > 0 else {
                close(descriptor)
                descriptor = -1
                return
            }
            // Not as a slice: while a slice of the array exists, overwriting the array changes only
            // a copy.
            for index in 0..<min(count, max(0, most - bytes.count)) {
                bytes.append(stretch[index])
            }
        }
    }

    /// Starts the shell in a new process group.
    ///
    /// - Returns: 0, or the error's `errno`.
    private static func spawn(
        _ command: String, _ variables: [String: String], _ pipes: Pipes, _ identifier: inout pid_t
    ) -> Int32 {
        // SAFETY: actions and attributes are initialized before they are used, and destroyed once
        // at the end of this function; the path and the signal sets passed to them are copied.
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if pipes.theirs.input >= 0 {
            unsafe posix_spawn_file_actions_adddup2(&actions, pipes.theirs.input, STDIN_FILENO)
        } else {
            unsafe posix_spawn_file_actions_addopen(
                &actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        let output = pipes.theirs.output >= 0 ? pipes.theirs.output : pipes.theirs.errors
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, pipes.theirs.errors, STDERR_FILENO)
        // Closes all other descriptors. If they stayed open, a background process of the command
        // would continue to hold a ledger's lock.
        unsafe _ = closeFrom?(&actions, STDERR_FILENO + 1)
        // The command gets a separate process group. Ctrl-C then does not reach it, and all of its
        // processes can be ended. The command starts with no signal blocked or ignored.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        unsafe posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
        let settings =
            EnvironmentSecret.withoutThem(SystemCall.environment).filter { setting in
                !variables.keys.contains { setting.starts(withBytes: "\($0)=") }
            } + variables.map { "\($0)=\($1)" }
        // SAFETY: copies that live until posix_spawn has returned, each list with the nil at its
        // end; each is freed once, and free(3) takes nil.
        let arguments: [String] = ["sh", "-c", command]
        let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let environment = unsafe settings.map { unsafe strdup($0) } + [nil]
        defer {
            unsafe words.forEach { unsafe free($0) }
            unsafe environment.forEach { unsafe free($0) }
        }
        var child: pid_t = 0
        let code = unsafe posix_spawn(&child, "/bin/sh", &actions, &attributes, words, environment)
        if code == 0 { identifier = child }
        return code
    }

    // SAFETY: a function of glibc 2.34 and later; its type is that in the manual page, because the
    // headers declare it only for GNU C.
    private static let closeFrom = unsafe dlsym(nil, "posix_spawn_file_actions_addclosefrom_np")
        .map {
            unsafe unsafeBitCast(
                $0,
                to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) ->
                    Int32).self)
        }
}
