import BroadsideTestSupport
import Foundation
import Testing

/// Clients of other people whose connections end with GOAWAY: what they may believe is what the
/// journal says.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct GoAwayClientTests {
    static let faults = [
        "reason: 'Shutdown'", "before_request: true", "reason: 'Shutdown', notice: '5ms'",
    ]

    @Test(.needs(.node), arguments: faults)
    func `Node's 200 pushes with a GOAWAY every 60 are in the journal once each`(
        _ fault: String
    ) throws {
        try expectEachOnce(fault) { _ in ["node", Self.program("goaway.mjs")] }
    }

    @Test(.needs(.go), arguments: faults)
    func `Go's 200 pushes with a GOAWAY every 60 are in the journal once each`(
        _ fault: String
    ) throws {
        try expectEachOnce(fault) { directory in
            let program = "\(directory.path)/goaway"
            let built = try Subprocess(
                "go", ["build", "-o", program, Self.program("goaway.go")], in: directory,
                environment: [
                    "GO111MODULE": "off", "GOCACHE": "\(directory.path)/cache",
                    "HOME": directory.path,
                ]
            ).wait(limit: 300)
            guard built.exitCode == 0 else { throw TestFailure("go build: \(built.errors)") }
            return [program]
        }
    }

    private static func program(_ name: String) -> String {
        "\(Tool.packageRoot)/Tests/Clients/\(name)"
    }

    private func expectEachOnce(
        _ fault: String, _ client: (TemporaryDirectory) throws -> [String]
    ) throws {
        let directory = try TemporaryDirectory()
        let scenario = try directory.write(
            "{ faults: [{ do: 'goaway', every: 60, \(fault) }] }", to: "every.json5")
        let journal = "\(directory.path)/journal.csv"
        let simulation = try Simulation(["--scenario", scenario, "--journal", journal])
        let credentials = try simulation.credentials()
        let token = try Broadside.run(
            ["doctor", "--print-token", "--endpoint", simulation.endpoint] + credentials,
            in: directory)
        guard token.exitCode == 0 else { throw TestFailure("doctor: \(token.errors)") }
        let words = try client(directory)
        let ended = try Subprocess(
            words[0],
            words.dropFirst() + [
                simulation.endpoint, token.output.trimmingCharacters(in: .whitespacesAndNewlines),
                simulation.options(["topic"])[1], simulation.options(["ca-file"])[1],
            ], in: directory
        ).wait(limit: 60)
        #expect(ended.exitCode == 0 && ended.errors.isEmpty, "\(ended.errors)")
        let accepted = ended.output.split(separator: "\n").compactMap { Int($0) }.sorted()
        #expect(accepted == Array(0..<200))
        let said = try simulation.stop()
        #expect(said.contains("scenario: goaway: "), "\(said)")
        let rows = try String(contentsOfFile: journal, encoding: .utf8).split(separator: "\n")
            .dropFirst().map { $0.split(separator: ",", omittingEmptySubsequences: false) }
        let taken = rows.filter { $0[5] == "200" }.compactMap { Int($0[3].suffix(12)) }.sorted()
        #expect(taken == Array(0..<200))
    }
}
