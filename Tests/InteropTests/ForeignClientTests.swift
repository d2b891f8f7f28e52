import BroadsideTestSupport
import Foundation
import Testing

/// The programs of `docs/clients.md` against the local APNs, with `tools/clients`: what each prints must agree with the
/// journal, and what its library does must be what the page says.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ForeignClientTests {
    @Test(arguments: ["curl"])
    func `Each client that is there at once may believe what the journal says`(
        _ client: String
    ) throws {
        try expectAgreement(client)
    }

    @Test(
        .enabled(if: RareProgram.areTested, "they take half a minute: tools/test --full"),
        arguments: ["Python: httpx", "Python: aioapns", "Swift"])
    func `Each client that is built or slow may believe what the journal says`(
        _ client: String
    ) throws {
        try expectAgreement(client)
    }

    @Test(
        .needs(.go, .java, .node, .perl, .php, .ruby),
        arguments: ["Go", "Java", "Node", "Perl", "PHP", "Ruby"])
    func `Each client in a language of its own may believe what the journal says`(
        _ client: String
    ) throws {
        try expectAgreement(client)
    }

    /// These give up when a connection ends: only the runs without that.
    @Test(
        .enabled(if: RareProgram.areTested, "they take half a minute: tools/test --full"),
        arguments: ["apns2", "pyapns-client", "kalyke"])
    func `Each library from PyPI departs from the rules that the page names`(
        _ library: String
    ) throws {
        try expectAgreement(library, runs: 4, tables: 1)
    }

    private func expectAgreement(
        _ client: String, runs expected: Int = 7, tables: Int = 2
    ) throws {
        let directory = try TemporaryDirectory()
        let installed = try Subprocess(
            "\(Tool.packageRoot)/tools/install-clients", ["current", "hyper"], in: directory
        ).wait(limit: 600)
        guard installed.exitCode == 0 else {
            throw TestFailure("install-clients: \(installed.errors)")
        }
        let ended = try Subprocess(
            "\(Tool.packageRoot)/tools/clients", ["--check", "--only", client], in: directory,
            environment: [
                "BROADSIDE_COMMAND": Broadside.path(), "GOCACHE": "\(directory.path)/go",
            ]
        ).wait(limit: 900)
        #expect(ended.exitCode == 0, "\(ended.errors)")
        let runs = ended.errors.split(separator: "\n").count { $0.contains(": 200 devices, ") }
        #expect(runs == expected, "\(ended.errors)")
        let rows = ended.output.split(separator: "\n").count { $0.hasPrefix("| ") } - 4
        #expect(rows == tables, "a row in each table: \(ended.output)")
    }
}
