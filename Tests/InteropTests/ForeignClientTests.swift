import BroadsideTestSupport
import Foundation
import Testing

/// The programs of `docs/clients.md` against the local APNs, with `tools/clients`: what each prints must agree with the
/// journal, and what its library does must be what the page says.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ForeignClientTests {
    /// Sections of the page whose programs are there wherever the tests are built.
    static let common = ["curl", "Python: httpx", "Python: aioapns", "Swift"]

    @Test(arguments: common)
    func `Each client that needs no rare program may believe what the journal says`(
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

    private func expectAgreement(_ client: String) throws {
        let directory = try TemporaryDirectory()
        let installed = try Subprocess(
            "\(Tool.packageRoot)/tools/install-clients", ["current"], in: directory
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
        // Seven runs, and a row in each of two tables.
        let runs = ended.errors.split(separator: "\n").count { $0.contains(": 200 devices, ") }
        #expect(runs == 7, "\(ended.errors)")
        #expect(ended.output.split(separator: "\n").count == 6, "\(ended.output)")
    }
}
