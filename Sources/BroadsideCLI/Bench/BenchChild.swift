import BroadsideCampaigns
import BroadsideSupport
internal import Glibc

/// This program or another program, as a child process whose CPU time the kernel counts separately.
/// The child is ended by its process ID, at the latest when this object is released.
final class BenchChild {
    /// Exit and resource use of the child.
    struct End {
        /// The exit code; -n if signal n ended the process.
        var exitCode: Int32
        /// User and system time of the whole process.
        var cpuMicroseconds: Double
    }

    /// Path of the file for the child's stdout.
    let outputPath: String
    private let errorsPath: String
    private var identifier = pid_t()
    private var end: End?

    /// - Parameters:
    ///   - arguments: Arguments after the program's name.
    ///   - name: Base name of the files for its output.
    ///   - directory: Directory for these files.
    ///   - program: Path of another program; nil: this one.
    init(
        _ arguments: [String], name: String, in directory: String, program: String? = nil
    ) throws(BroadsideError) {
        assert(!name.utf8.contains(UInt8(ascii: "/")), "a child's name fits into a file's name")
        outputPath = "\(directory)/\(name).stdout"
        errorsPath = "\(directory)/\(name).stderr"
        // SAFETY: actions and attributes are initialized before they are used and destroyed once,
        // at the end of this function; their inputs (the paths, the set of signals) are copied.
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        for (descriptor, path) in [(STDOUT_FILENO, outputPath), (STDERR_FILENO, errorsPath)] {
            unsafe posix_spawn_file_actions_addopen(
                &actions, descriptor, path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        }
        // Signals that `BenchSignals` blocks in this process are not blocked in the child.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        let settings =
            SystemCall.environment
            + ["\(Self.parentVariable)=\(getpid())"]
        // SAFETY: copies that live until posix_spawn has returned; each list ends with nil; each
        // copy is freed once, and free(3) accepts nil.
        let words = unsafe ([program ?? "broadside"] + arguments).map { unsafe strdup($0) } + [nil]
        let environment = unsafe settings.map { unsafe strdup($0) } + [nil]
        defer {
            unsafe words.forEach { unsafe free($0) }
            unsafe environment.forEach { unsafe free($0) }
        }
        let code = unsafe posix_spawn(
            &identifier, program ?? "/proc/self/exe", &actions, &attributes, words, environment)
        guard code == 0 else {
            throw BroadsideError(
                program.map {
                    "\($0) can't be started (posix_spawn error \(code)): check that it runs"
                }
                    ?? "broadside can't start a copy of itself (posix_spawn error \(code)): check "
                    + "that /proc is mounted", exitCode: 1)
        }
    }

    deinit { stop(SIGKILL) }

    /// Environment variable that contains the process ID of the child's benchmark.
    private static let parentVariable = "BROADSIDE_BENCH"

    /// Makes this process end with its benchmark, if it is a benchmark's child. A killed benchmark
    /// then leaves no processes behind.
    static func endWithBench() {
        guard let parent = SystemCall.environment(parentVariable).flatMap({ Int32($0) }) else {
            return
        }
        // SAFETY: called before anything else, while no other thread runs that might read the
        // environment.
        _ = unsafe unsetenv(parentVariable)
        endWithParent(parent)
    }

    /// Returns how the child ended; nil if it is still running.
    func poll() -> End? { ended(WNOHANG) }

    /// Sends a signal and waits for the child's end.
    @discardableResult
    func stop(_ signal: Int32) -> End? {
        // If the child never started, its process ID is 0, and kill(2) would signal every process
        // of this group.
        guard identifier > 0 else { return nil }
        if end == nil { kill(identifier, signal) }
        return ended(0)
    }

    private func ended(_ flags: Int32) -> End? {
        if let end { return end }
        var status: Int32 = 0
        var usage = rusage()
        // SAFETY: wait4(2) sets the status and the usage, which are ours during the call.
        guard unsafe wait4(identifier, &status, flags, &usage) == identifier else { return nil }
        func microseconds(_ value: timeval) -> Double {
            Double(value.tv_sec) * 1e6 + Double(value.tv_usec)
        }
        let signal = status & 0x7f
        assert(signal != 0x7f, "a process that is only stopped has not ended")
        end = End(
            exitCode: signal == 0 ? status >> 8 & 0xff : -signal,
            cpuMicroseconds: microseconds(usage.ru_utime) + microseconds(usage.ru_stime))
        return end
    }

    /// Last line of the child on stderr, without the program's name. Advice about files, and to
    /// resume a ledger, is left out: they are removed with the benchmark.
    var lastLine: String {
        let line = BenchFiles.text(errorsPath).split(separator: "\n").last ?? "it printed nothing"
        let words = line.hasPrefix("broadside: ") ? line.dropFirst(11) : line
        guard let folder = errorsPath.parts(atLast: "/")?.0 else { return String(words) }
        var said = words.split(separator: ": ")
        while said.count > 1, let last = said.last,
            last.contains(folder) || last.contains("--resume")
        {
            said.removeLast()
        }
        return said.joined(separator: ": ")
    }
}

/// The signals to wait for: Ctrl-C and other stop signals, and the end of a child.
struct BenchSignals {
    private let signals = SignalSet([SIGINT, SIGTERM, SIGHUP, SIGCHLD])

    /// Blocks the signals. Each signal then stays pending until `take` receives it.
    init() { signals.block() }

    /// Waits for 20 ms, or until a child ends.
    ///
    /// - Throws: An error if a stop signal arrived.
    func wait() throws(BroadsideError) { try take(nanoseconds: 20_000_000) }

    /// Checks for a stop signal without waiting.
    func check() throws(BroadsideError) { try take(nanoseconds: 0) }

    private func take(nanoseconds: Int) throws(BroadsideError) {
        guard let signal = signals.take(nanoseconds: nanoseconds), signal != SIGCHLD else { return }
        throw BroadsideError(
            "the benchmark was stopped before its end: start it again",
            exitCode: ExitCode.failure)
    }
}
