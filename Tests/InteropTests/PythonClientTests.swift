import BroadsideTestSupport
import Foundation
import Testing

/// Libraries with which providers send, from PyPI and unmodified, against the local APNs.
@Suite(.timeLimit(.minutes(60)))
struct PythonClientTests {
    struct Library: Sendable, CustomTestStringConvertible {
        /// As `Tests/Clients/provider.py` calls it.
        var name: String
        /// The environment that `tools/install-clients` made for it.
        var environment = "current"
        /// Its provider tokens have a string for `iat`.
        var writesTextualTime = false

        var testDescription: String { name }
    }

    static let libraries = [
        Library(name: "apns2", environment: "hyper"), Library(name: "pyapns-client"),
        Library(name: "kalyke", writesTextualTime: true), Library(name: "aioapns"),
    ]

    /// Made once; what is installed already stays.
    private static let installed = Result {
        let directory = try TemporaryDirectory()
        let ended = try Subprocess(
            "\(Tool.packageRoot)/tools/install-clients", ["current", "hyper"], in: directory
        ).wait(limit: 600)
        guard ended.exitCode == 0 else { throw TestFailure("install-clients: \(ended.errors)") }
    }

    @Test(arguments: libraries, [[], ["--fast"]])
    func `Each Python library gets the documented outcome of each token`(
        _ library: Library, options: [String]
    ) throws {
        try Self.installed.get()
        let directory = try TemporaryDirectory()
        let simulation = try Simulation(
            ["--bad-token", "0.1", "--unregistered", "0.3", "--seed", "7"] + options)
        let port = simulation.endpoint.split(separator: ":").last!
        // Their fates were looked up in Python.
        let tokens = [
            "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0",
            "0123456789abcdef", "ffffffffffffffff00",
        ]
        let credentials = try ["ca-file", "auth-key", "key-id", "team-id", "topic"].map {
            try simulation.options([$0])[1]
        }
        let ended = try Subprocess(
            "\(Tool.packageRoot)/.build/clients/\(library.environment)/bin/python",
            [
                "\(Tool.packageRoot)/Tests/Clients/provider.py", library.name, "localhost",
                String(port),
            ] + credentials + tokens, in: directory
        ).wait(limit: 120)
        let said = try simulation.stop()
        let line = ended.output.split(separator: "\n").last ?? ""
        #expect(
            line == #"["Unregistered", "BadDeviceToken", "Success"]"#,
            "\(ended.output) \(ended.errors) \(said)")
        let finding = "iat is a string, not a number: 3 requests"
        #expect(said.contains(finding) == library.writesTextualTime, "\(said)")
        #expect(!said.contains("payload:") && !said.contains("limits exceeded"), "\(said)")
    }
}
