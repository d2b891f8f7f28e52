import Broadside
import BroadsideSupport
internal import FoundationEssentials
internal import Glibc

/// This very program once more, or another one, as a process of its own whose cost the kernel counts apart. Ended
/// by its id, at the latest with this object.
final class BenchChild {
    /// How it ended, and what it took.
    struct End {
        /// The exit code; -n where signal n ended it.
        var exitCode: Int32
        /// User and system time of the whole process.
        var cpuMicroseconds: Double
    }

    /// Where its stdout goes.
    let outputPath: String
    private let errorsPath: String
    private var identifier = pid_t()
    private var end: End?

    /// - Parameters:
    ///   - arguments: Behind the program's name.
    ///   - name: Of the files for what it writes.
    ///   - directory: Where these are made.
    ///   - program: The path of another program; nil: this one.
    init(
        _ arguments: [String], name: String, in directory: String, program: String? = nil
    ) throws(BroadsideError) {
        outputPath = "\(directory)/\(name).stdout"
        errorsPath = "\(directory)/\(name).stderr"
        // SAFETY: actions and attributes are initialized before they are used and destroyed at the
        // end of this function, once; what they are given (the paths, the set of signals) is
        // copied.
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        for (descriptor, path) in [(STDOUT_FILENO, outputPath), (STDERR_FILENO, errorsPath)] {
            unsafe posix_spawn_file_actions_addopen(
                &actions, descriptor, path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        }
        // The signals that `BenchSignals` blocks here are the child's to take.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        let settings =
            ProcessInfo.processInfo.environment.map { "\($0)=\($1)" }
            + ["\(Self.parentVariable)=\(getpid())"]
        // SAFETY: copies that live until posix_spawn has returned, each list with the nil at its
        // end; each is freed once, and free(3) takes nil.
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
                program.map { "\($0) can't be started: error \(code) of posix_spawn" }
                    ?? "broadside can't start itself: error \(code) of posix_spawn: is /proc "
                    + "mounted?", exitCode: 1)
        }
    }

    deinit { stop(SIGKILL) }

    /// The variable of the environment by which a child knows whose it is.
    private static let parentVariable = "BROADSIDE_BENCH"

    /// Where this process is a benchmark's child: a benchmark that is killed leaves none behind.
    static func endWithBench() {
        guard let parent = SystemCall.environment(parentVariable).flatMap({ Int32($0) }) else {
            return
        }
        // SAFETY: called first of all, while no other thread runs that might read the environment.
        _ = unsafe unsetenv(parentVariable)
        endWithParent(parent)
    }

    /// Its end, where that has come.
    func poll() -> End? { ended(WNOHANG) }

    /// Sends a signal and waits for its end.
    @discardableResult
    func stop(_ signal: Int32) -> End? {
        // It never started: 0 would mean every process of our group.
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
        end = End(
            exitCode: signal == 0 ? status >> 8 & 0xff : -signal,
            cpuMicroseconds: microseconds(usage.ru_utime) + microseconds(usage.ru_stime))
        return end
    }

    /// The last line that it wrote to stderr, without the program's name, and without advice about files
    /// that end with the benchmark.
    var lastLine: String {
        let line = BenchFiles.text(errorsPath).split(separator: "\n").last ?? "it printed nothing"
        let words = line.hasPrefix("broadside: ") ? line.dropFirst(11) : line
        guard let folder = errorsPath.parts(atLast: "/")?.0 else { return String(words) }
        var said = words.split(separator: ": ")
        while said.count > 1, let last = said.last, last.contains(folder) { said.removeLast() }
        return said.joined(separator: ": ")
    }
}

/// Ctrl-C and its like, and the end of a child, as something to wait for.
struct BenchSignals {
    private let signals = SignalSet([SIGINT, SIGTERM, SIGHUP, SIGCHLD])

    /// Blocks them from now on.
    init() { signals.block() }

    /// Waits for a moment, or until a child ends.
    ///
    /// - Throws: Where the benchmark is to end.
    func wait() throws(BroadsideError) { try take(nanoseconds: 20_000_000) }

    /// Looks, without waiting.
    func check() throws(BroadsideError) { try take(nanoseconds: 0) }

    private func take(nanoseconds: Int) throws(BroadsideError) {
        guard let signal = signals.take(nanoseconds: nanoseconds), signal != SIGCHLD else { return }
        throw BroadsideError(
            "stopped before the benchmark's end: start it again",
            exitCode: ExitCode.failure)
    }
}
