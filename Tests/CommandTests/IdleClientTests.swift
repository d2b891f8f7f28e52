import BroadsideTestSupport
import Foundation
import Testing

/// Clients of a run that connect and say nothing, or ask so slowly that they never come to an end: nobody
/// else waits for them.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct IdleClientTests {
    /// A run in progress, with a socket and an endpoint.
    private func start(_ server: LocalAPNs, _ campaign: Campaign) throws -> (Subprocess, String) {
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--rate", "100", "--control", Self.socket(campaign), "--metrics", "127.0.0.1:0",
                ]), in: campaign.directory)
        var url: Substring?
        try process.wait {
            let said = try String(contentsOfFile: process.errorsPath, encoding: .utf8)
            url = said.firstMatch(of: /http:[^\n]*\/metrics\n/)?.output.dropLast()
            return url != nil
        }
        // The first second has nothing to show.
        try process.wait {
            let page = try Subprocess(
                "curl", ["-sS", "-w", "%{http_code}", String(url!)], in: campaign.directory
            ).wait()
            let hasMetrics = page.output.contains("broadside_")
            #expect(page.output.hasSuffix(hasMetrics ? "200" : "503"), "\(page.output)")
            return hasMetrics
        }
        return (process, String(try #require(url)))
    }

    private static func socket(_ campaign: Campaign) -> String {
        "\(campaign.directory.path)/control"
    }

    /// Python that holds connections to both, and says when they all stand: to the socket idle ones, or
    /// ones that begin a line and go on with it; to the endpoint requests of a byte a second.
    private static let clients = """
        import socket, sys, time
        path, port, count, word = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].encode()
        controls, scrapers = [], []
        for _ in range(count):
            one = socket.socket(socket.AF_UNIX); one.connect(path); one.send(word); controls.append(one)
            time.sleep(0.005)
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", port)); scrapers.append(one)
            one.send(b"GET /metrics HTTP/1.1\\r\\nX-Slow: ")
        print("ready", flush=True)
        while True:
            time.sleep(1)
            for one in scrapers:
                try: one.send(b"x")
                except OSError: pass
        """

    @Test(arguments: [8, 16, 100], ["", "sta"])
    func `Idle and slow clients block neither the control socket nor the metrics`(
        count: Int, word: String
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 100_000)
        let (process, url) = try start(server, campaign)
        let port = try #require(url.firstMatch(of: /:([0-9]+)\//)).1
        let script = try campaign.directory.write(Self.clients, to: "clients.py")
        let clients = try Subprocess(
            "python3", [script, Self.socket(campaign), String(port), "\(count)", word],
            in: campaign.directory)
        defer { clients.stop() }
        try clients.wait {
            try String(contentsOfFile: clients.outputPath, encoding: .utf8) == "ready\n"
        }
        #expect(clients.isRunning)
        for _ in 0..<3 {
            let status = try Broadside.start(
                ["control", Self.socket(campaign), "status"], in: campaign.directory
            ).wait(limit: 60)
            #expect(status.exitCode == 0 && status.output.contains("accepted"), "\(status)")
            let scraped = try Subprocess("curl", ["-sS", url], in: campaign.directory).wait(
                limit: 60)
            #expect(scraped.exitCode == 0 && scraped.output.contains("broadside_"), "\(scraped)")
        }
        process.send(signal: SIGINT)
        #expect(try process.wait().exitCode == 3)
        #expect(clients.isRunning)
    }

    @Test(arguments: [8, 16, 100])
    func `Idle clients do not block the control socket of simulate`(count: Int) throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/control"
        let server = try LocalAPNs(["--control", path])
        let script = try directory.write(
            """
            import socket, sys, time
            clients = []
            for _ in range(int(sys.argv[2])):
                one = socket.socket(socket.AF_UNIX); one.connect(sys.argv[1]); clients.append(one)
                time.sleep(0.005)
            print("ready", flush=True)
            time.sleep(200)
            """, to: "clients.py")
        let clients = try Subprocess("python3", [script, path, "\(count)"], in: directory)
        defer { clients.stop() }
        try clients.wait {
            try String(contentsOfFile: clients.outputPath, encoding: .utf8) == "ready\n"
        }
        for _ in 0..<3 {
            let said = try Broadside.start(["control", path, "status"], in: directory)
                .wait(limit: 60)
            #expect(said.exitCode == 0, "\(said)")
        }
        #expect(clients.isRunning)
        _ = try server.finish()
    }
}
