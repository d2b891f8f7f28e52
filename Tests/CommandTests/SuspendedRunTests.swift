import BroadsideTestSupport
import Foundation
import Testing

/// A run whose process is suspended keeps nobody waiting for longer than a response may take.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SuspendedRunTests {
    /// Python that connects until nobody takes connections any more, and says nothing.
    private static let clients = """
        import socket, sys, time
        clients = []
        while True:
            one = socket.socket(socket.AF_UNIX); one.setblocking(False)
            try: one.connect(sys.argv[1])
            except BlockingIOError: break
            clients.append(one)
        print(len(clients), flush=True)
        time.sleep(600)
        """

    @Test(arguments: [false, true])
    func `control and status report a suspended run, with a full socket queue too`(isFull: Bool)
        throws
    {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let directory = campaign.directory
        let socket = "\(directory.path)/control"
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--control", socket]), in: directory)
        defer { process.send(signal: SIGKILL) }
        try process.wait {
            try Broadside.run(["control", "--ledger", campaign.ledger, "status"], in: directory)
                .exitCode == 0
        }
        process.send(signal: SIGSTOP)
        var clients: [Subprocess] = []
        defer { for one in clients { one.stop() } }
        if isFull {
            for path in [socket, "\(campaign.ledger)/control"] {
                let one = try Subprocess("python3", ["-c", Self.clients, path], in: directory)
                clients.append(one)
                try one.wait {
                    let said = try String(contentsOfFile: one.outputPath, encoding: .utf8)
                    return Int(said.dropLast()).map { $0 >= 16 } ?? false
                }
            }
        }
        for words in [[socket, "status"], ["--ledger", campaign.ledger, "pause"]] {
            let asked = try Broadside.run(["control"] + words, in: directory, limit: 60)
            #expect(asked.exitCode == 1 && asked.output.isEmpty && asked.errorLines.count == 1)
            #expect(asked.errors.contains("does not respond within 10 s"), "\(asked.errors)")
            #expect(asked.errors.contains("kill -CONT"), "\(asked.errors)")
        }
        let status = try Broadside.run(
            ["status", "--json", campaign.ledger], in: directory, limit: 60)
        #expect(status.exitCode == 0 && status.errors.isEmpty, "\(status.errors)")
        #expect(status.output.contains(#""state":"busy""#), "\(status.output)")
        // Another run is told that the socket is in use.
        let other = try campaign.send(
            to: server.endpoint, ["--ledger", campaign.ledger + "2", "--control", socket], limit: 60
        )
        #expect(other.exitCode == 2 && other.errors.contains("in use"), "\(other.errors)")
        process.send(signal: SIGCONT)
        try process.wait {
            try Broadside.run(["control", socket, "status"], in: directory).exitCode == 0
        }
        #expect(clients.allSatisfy { $0.isRunning })
    }
}
