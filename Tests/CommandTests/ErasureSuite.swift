import BroadsideTestSupport
import Foundation
import Testing

/// Tests of `ledger forget` with a campaign of 400 rows, judged by code that is not ours:
/// `Tests/Judge/forgotten_devices.py`.
protocol ErasureSuite {
    var campaign: Campaign { get }
}

extension ErasureSuite {
    /// Returns a server with dead and bad tokens, and a campaign.
    static func start() throws -> (LocalAPNs, Campaign) {
        (
            try LocalAPNs(["--unregistered", "0.3", "--bad-token", "0.1", "--seed", "5"]),
            try Campaign(rows: 400)
        )
    }

    var folder: String { campaign.directory.path }

    /// Rows whose devices are erased: some of the first chunk, and the last.
    static var rows: [Int] { Array(3..<23) + [399] }

    /// Writes a list of the devices of rows.
    func devices(_ rows: [Int] = Self.rows) throws -> String {
        try campaign.directory.write(
            rows.map { campaign.tokens.token($0) + "\n" }.joined(), to: "erase.txt")
    }

    func forget(_ devices: String, _ ledgers: [String]) throws -> Finished {
        try Broadside.run(
            ["ledger", "forget", "--tokens", devices] + ledgers.flatMap { ["--ledger", $0] },
            in: campaign.directory)
    }

    func copy(_ ledger: String) throws -> String {
        let copy = campaign.directory.fresh("before")
        try FileManager.default.copyItem(atPath: ledger, toPath: copy)
        return copy
    }

    /// Compares a ledger with what it was; the output has the numbers of changed records.
    func judge(_ before: String, _ after: String, _ devices: String) throws -> String {
        let judged = try campaign.judgeErasure(of: devices, in: after, before: before)
        #expect(judged.exitCode == 0, "\(judged.output.prefix(2_000))\(judged.errors)")
        return judged.output
    }

    /// Forgets devices, holds the ledger against what it was, and repeats it, which changes nothing.
    func forgetAndJudge(_ ledger: String, _ devices: String) throws -> String {
        let before = try copy(ledger)
        let statistics = try campaign.statistics()
        let finished = try forget(devices, [ledger])
        #expect(finished.exitCode == 0 && finished.errors.isEmpty, "\(finished.errors)")
        let changes = try judge(before, ledger, devices)
        #expect(try campaign.statistics() == statistics)
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0, "\(verified.errors)")
        let after = try copy(ledger)
        let again = try forget(devices, [ledger])
        #expect(
            again.output.contains("contains none of the devices: nothing changed"),
            "\(again.output)")
        let difference = try Subprocess(
            "diff", ["-r", after, ledger], in: campaign.directory
        ).wait(limit: 60)
        #expect(difference.exitCode == 0, "\(difference.output)")
        return finished.output + changes
    }

    func token(_ row: Int) -> String { campaign.tokens.token(row) }
}
