import Foundation
internal import Testing

/// Why a test could not be carried out: a sentence for whoever reads the failure.
package struct TestFailure: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// How a process ended, and what it wrote.
package struct Finished: Sendable {
    /// The exit code; -n where signal n ended it.
    package var exitCode: Int32
    package var output: String
    package var errors: String
    package var seconds: Double

    /// The lines on stderr that are not warnings.
    package var errorLines: [String] {
        errors.split(separator: "\n").map(String.init).filter {
            !$0.hasPrefix("broadside: warning: ")
        }
    }
}

/// A process of a test's own: output goes to files, its end is bounded in time, and it is ended by
/// its id where it does not end by itself.
package final class Subprocess {
    package let identifier: pid_t
    /// Where its stdout goes.
    package let outputPath: String
    /// Where its stderr goes.
    package let errorsPath: String
    private let name: String
    private let started = ContinuousClock.now
    private var exitCode: Int32?
    /// The longest wait for its end before the time limit is looked at.
    private static let waitMilliseconds: Int32 = 100

    /// Starts `program`, a path or a name that is looked up in PATH.
    package init(
        _ program: String, _ arguments: [String], in directory: TemporaryDirectory,
        input: String? = nil, environment changes: [String: String] = [:]
    ) throws {
        let path = try Tool.path(of: program)
        name = "\((path as NSString).lastPathComponent) \(arguments.joined(separator: " "))"
        outputPath = directory.fresh("stdout")
        errorsPath = directory.fresh("stderr")

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input ?? "/dev/null", O_RDONLY, 0)
        let flags = O_WRONLY | O_CREAT | O_TRUNC
        posix_spawn_file_actions_addopen(&actions, 1, outputPath, flags, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, errorsPath, flags, 0o600)
        // Nothing else of the test runner's: a socket or a pipe that another test has open at this
        // moment would not end for its peer before this process does.
        _ = Self.closeFrom?(&actions, 3)

        // The test runner's signal mask and ignored signals are not the process's business.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var environment = ProcessInfo.processInfo.environment
        environment.merge(changes) { $1 }
        let words = ([path] + arguments).map { strdup($0) } + [nil]
        let settings = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { (words + settings).forEach { free($0) } }
        var identifier = pid_t()
        let code = posix_spawn(&identifier, path, &actions, &attributes, words, settings)
        guard code == 0 else {
            throw TestFailure("\(path) can't be started: \(String(cString: strerror(code)))")
        }
        self.identifier = identifier
    }

    /// glibc 2.34's `posix_spawn_file_actions_addclosefrom_np`, which its headers show to GNU C alone.
    private static let closeFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
        unsafeBitCast(
            $0,
            to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32)
                .self)
    }

    deinit {
        if exitCode == nil {
            kill(identifier, SIGKILL)
            var status: Int32 = 0
            waitpid(identifier, &status, 0)
        }
    }

    /// True until its end was seen.
    package var isRunning: Bool {
        if exitCode != nil { return false }
        var status: Int32 = 0
        var usage = rusage()
        guard wait4(identifier, &status, WNOHANG, &usage) == identifier else { return true }
        TestTimes.add(usage, seconds: (ContinuousClock.now - started) / .seconds(1))
        let signal = status & 0x7f
        exitCode = signal == 0 ? status >> 8 & 0xff : -signal
        return false
    }

    /// Whether it and its children wait for events: no thread of theirs is busy, or would be if it had a core.
    package var isAsleep: Bool {
        func names(_ folder: String) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        }
        func text(_ file: String) -> String {
            (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        }
        let own = "/proc/\(identifier)/task"
        let children = names(own).flatMap { task in
            text("\(own)/\(task)/children").split(separator: " ").map(String.init)
        }
        return (["\(identifier)"] + children).allSatisfy { process in
            names("/proc/\(process)/task").allSatisfy { task in
                // Its state comes behind its name, in parentheses. What has ended has nothing to do, either.
                let status = text("/proc/\(process)/task/\(task)/stat").split(separator: ")")
                let state = status.last?.first { $0 != " " }
                return state == nil || state == "S" || state == "Z"
            }
        }
    }

    /// glibc 2.36's `pidfd_open`.
    private static let openProcess = dlsym(nil, "pidfd_open").map {
        unsafeBitCast($0, to: (@convention(c) (pid_t, UInt32) -> Int32).self)
    }

    package func send(signal: Int32) {
        if isRunning { kill(identifier, signal) }
    }

    /// Waits for its end.
    ///
    /// - Throws: Where it has not ended after `limit` seconds; it is ended then.
    package func wait(limit: Double = 240) throws -> Finished {
        let deadline = started + .seconds(limit)
        // Readable once the process has ended.
        let end = isRunning ? Self.openProcess?(identifier, 0) ?? -1 : -1
        defer { if end >= 0 { close(end) } }
        while isRunning {
            if ContinuousClock.now > deadline {
                stop()
                throw TestFailure(
                    "\(name) did not end within \(limit) s; stderr: \(text(errorsPath).suffix(2000))"
                )
            }
            if end >= 0 {
                var ended = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
                poll(&ended, 1, Self.waitMilliseconds)
            } else {
                usleep(2000)
            }
        }
        let elapsed = ContinuousClock.now - started
        return Finished(
            exitCode: exitCode!, output: text(outputPath), errors: text(errorsPath),
            seconds: elapsed / .seconds(1))
    }

    /// Waits until something has happened, or the process has ended.
    ///
    /// - Throws: Where neither is so after `limit` seconds; it is ended then.
    package func wait(
        limit: Double = 120, until hasHappened: () throws -> Bool
    ) throws {
        let deadline = ContinuousClock.now + .seconds(limit)
        while isRunning {
            let began = ContinuousClock.now
            if try hasHappened() { return }
            let now = ContinuousClock.now
            if now > deadline {
                stop()
                throw TestFailure("\(name): what was awaited has not happened in \(limit) s")
            }
            // A look that starts a process costs more than what it waits for.
            let pause = min(max((now - began) / .seconds(1) * 2, 0.002), 0.05)
            usleep(UInt32(pause * 1e6))
        }
    }

    /// Ends it: politely, and after two seconds at once.
    package func stop() {
        send(signal: SIGTERM)
        for _ in 0..<200 {
            if !isRunning { return }
            usleep(10_000)
        }
        send(signal: SIGKILL)
        while isRunning { usleep(1000) }
    }

    private func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }

    /// Runs a program to its end, which has to be exit code 0.
    @discardableResult
    package static func run(
        _ program: String, _ arguments: [String], in directory: TemporaryDirectory,
        limit: Double = 60
    ) throws -> Finished {
        let process = try Subprocess(program, arguments, in: directory)
        let finished = try process.wait(limit: limit)
        guard finished.exitCode == 0 else {
            throw TestFailure(
                "\(process.name) ended with \(finished.exitCode): \(finished.errors)")
        }
        return finished
    }
}

/// The programs that tests drive.
package enum Tool {
    /// The path of a program.
    ///
    /// - Throws: Where it is not installed, a sentence that says how to install it.
    package static func path(of program: String) throws -> String {
        if program.contains("/") { return program }
        // Debian's has the modules that tests need. A version manager's is a script in front of an interpreter.
        if program == "python3", access("/usr/bin/python3", X_OK) == 0 { return "/usr/bin/python3" }
        let search = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        for directory in "\(search):/usr/sbin:/sbin".split(separator: ":") {
            let path = "\(directory)/\(program)"
            if access(path, X_OK) == 0 { return path }
        }
        let group = RareProgram.files.contains(program) ? "full" : "test"
        throw TestFailure("\(program) is not installed: run tools/install-packages \(group)")
    }

    /// The path of a program that was built with these tests.
    package static func besideTests(_ program: String) -> String {
        let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") }
        return URL(filePath: bundle ?? CommandLine.arguments[0])
            .deletingLastPathComponent().appending(path: program).path
    }

    /// The root of the package.
    package static let packageRoot = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
}
