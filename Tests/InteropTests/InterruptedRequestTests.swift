import BroadsideTestSupport
import Foundation
import Testing

/// Signals while `channel` and `broadcast` wait for a response, against `Tests/Servers/channels.py`.
@Suite(.timeLimit(.minutes(60)))
struct InterruptedRequestTests {
    private static let named = ["--channel", ChannelCommandTests.channel]

    /// Starts a command, and waits until the server has its request.
    private func start(
        _ words: [String], _ caller: ChannelCaller, _ server: RecordingServer
    ) throws -> Subprocess {
        let started = try Broadside.start(
            words + caller.credential(server.endpoint), in: caller.directory)
        try started.wait { try !ChannelCommandTests.seen(server).isEmpty }
        return started
    }

    /// Sends stop signals until the process ends. Those that come within 100 ms count as one.
    static func stopAtOnce(_ started: Subprocess, with signal: Int32) throws -> Finished {
        for _ in 0..<200 where started.isRunning {
            started.send(signal: signal)
            usleep(50_000)
        }
        return try started.wait(limit: 60)
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `A signal waits for the response to the request in flight, and SIGHUP ends nothing`(
        signal: Int32
    ) throws {
        let caller = try ChannelCaller()
        let broadcast = ["broadcast", "--payload", caller.payload, "--ledger", caller.ledger]
        for (words, output) in [
            (["channel", "create"], ChannelCommandTests.channel + "\n"),
            (
                ["channel", "delete", "--yes"] + Self.named,
                "deleted \(ChannelCommandTests.channel)\n"
            ),
            (broadcast + Self.named, "accepted  request "),
        ] {
            let server = try ChannelCommandTests.server("held")
            let started = try start(words, caller, server)
            started.send(signal: SIGHUP)
            started.send(signal: signal)
            try started.wait {
                let errors = try String(contentsOfFile: started.errorsPath, encoding: .utf8)
                return errors.hasSuffix("a second signal stops at once\n")
            }
            try "".write(
                toFile: "\(server.recordPath).go", atomically: true, encoding: .utf8)
            let ended = try started.wait(limit: 60)
            #expect(ended.exitCode == 0 && ended.output.hasPrefix(output), "\(ended)")
            #expect(ended.errorLines.count == 1, "\(ended.errors)")
        }
    }

    @Test func `A second signal says that a channel may have been created or deleted`() throws {
        let caller = try ChannelCaller()
        for (words, message) in [
            (["create"], "a channel may have been created: compare broadside channel list"),
            (["delete", "--yes"] + Self.named, "the channel may have been deleted"),
        ] {
            let server = try ChannelCommandTests.server("silent-channel")
            let started = try start(["channel"] + words, caller, server)
            let ended = try Self.stopAtOnce(started, with: SIGTERM)
            #expect(ended.exitCode == 6, "\(ended.errors)")
            #expect(ended.errors.contains("stopped by a signal: \(message)"), "\(ended.errors)")
        }
    }

    @Test func `A signal before the next attempt ends a create, and no channel was created`() throws
    {
        let caller = try ChannelCaller()
        let server = try ChannelCommandTests.server("503/retry-after=60")
        let started = try start(["channel", "create"], caller, server)
        // The signal may come before the response or after it.
        started.send(signal: SIGTERM)
        let ended = try started.wait(limit: 60)
        #expect(ended.exitCode == 1, "\(ended.errors)")
        #expect(
            ended.errors.hasSuffix(
                "stopped by a signal: no channel was created: to create one, start again\n"),
            "\(ended.errors)")
        #expect(try ChannelCommandTests.seen(server).count == 1)
    }
}
