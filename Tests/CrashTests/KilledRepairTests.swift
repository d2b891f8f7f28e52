import BroadsideTestSupport
import Foundation
import Testing

/// `ledger repair` and `ledger merge`, killed at each of their calls that change files: what is left is a whole
/// ledger or none, and no run that is started there sends a row again.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct KilledRepairTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private let library: String
    private let failing: String
    private let files = FileManager.default
    private var folder: String { "\(campaign.directory.path)/made" }

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 60)
        library = try Shim.compile("kill-at-call", in: campaign.directory)
        failing = try Shim.compile("fail-files", in: campaign.directory)
    }

    /// Runs a command that makes `made/ledger`, and kills it at its calls.
    ///
    /// - Parameter options: Of the runs that are started in what is left.
    /// - Returns: How many calls it makes, and how often what was left was whole.
    private func kill(_ arguments: [String], options: [String]) throws -> (calls: Int, whole: Int) {
        var whole = 0
        let calls = try KilledCalls.each { call in
            try? files.removeItem(atPath: folder)
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let ended = try Broadside.run(
                arguments + ["--output", "\(folder)/ledger"], in: campaign.directory,
                environment: ["LD_PRELOAD": library, "KILL_AT": "\(call)"])
            guard ended.exitCode != 0 else { return false }
            try #require(ended.exitCode == -SIGKILL, "call \(call): \(ended.errors)")
            for name in try campaign.directory.names(in: folder) where name.hasPrefix("ledger") {
                if try isWhole(name, call: call, options) { whole += 1 }
            }
            return true
        }
        return (calls, whole)
    }

    /// The same for a command that fails at the end, and takes away what it has made.
    ///
    /// - Parameter first: Kills at this call, and at those behind it.
    private func killFailing(
        _ arguments: [String], from first: Int, options: [String]
    ) throws -> Int {
        var killed = first - 1
        while true {
            try? files.removeItem(atPath: folder)
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let ended = try Broadside.run(
                arguments + ["--output", "\(folder)/ledger"], in: campaign.directory,
                environment: [
                    "LD_PRELOAD": "\(library) \(failing)", "KILL_AT": "\(killed + 1)",
                    "FAIL_CALLS": "rename \(EIO) made/ledger",
                ])
            if ended.exitCode == 5 {
                #expect(try campaign.directory.names(in: folder).isEmpty)
                return killed
            }
            try #require(ended.exitCode == -SIGKILL, "call \(killed + 1): \(ended.errors)")
            killed += 1
            for name in try campaign.directory.names(in: folder) {
                _ = try isWhole(name, call: killed, options)
            }
        }
    }

    /// Starts runs in copies that a merge left, as the part that each is of.
    private func checkCopies(in name: String, call: Int) throws {
        for copy in try campaign.directory.names(in: "\(folder)/\(name)")
        where copy.hasPrefix("shard-") {
            let place = "\(folder)/\(name)/\(copy)"
            let left = try campaign.directory.names(in: place)
            let part = ["--shard", "\(Int(copy.suffix(4))!)/2"]
            for word in left.isEmpty ? ["--resume"] : ["--resume", "--resume-or-begin"] {
                let run = try campaign.send(
                    to: server.endpoint, [word, "--ledger", place] + part)
                #expect(
                    [2, 5].contains(run.exitCode),
                    "call \(call), \(name)/\(copy): \(left): \(run.errors)")
            }
        }
    }

    /// Starts runs in what is left, and checks what they say.
    private func isWhole(_ name: String, call: Int, _ options: [String]) throws -> Bool {
        let place = "\(folder)/\(name)"
        let left = try campaign.directory.names(in: place)
        let at: Comment = "call \(call), \(name): \(left)"
        let isWhole = left.contains("manifest.json")
        #expect(isWhole || name != "ledger", at)
        if isWhole {
            let verified = try Broadside.run(
                ["ledger", "verify", "--ledger", place], in: campaign.directory)
            #expect(verified.exitCode == 0, "\(at): \(verified.errors)")
        }
        try checkCopies(in: name, call: call)
        // An empty directory says nothing: a campaign may begin in it.
        for word in left.isEmpty ? ["--resume"] : ["--resume", "--resume-or-begin"] {
            let run = try campaign.send(
                to: server.endpoint, [word, "--ledger", place] + options)
            if !isWhole { #expect(run.exitCode == 2, "\(at): \(word): \(run.errors)") }
            if !isWhole, !left.isEmpty {
                #expect(
                    run.errors.contains("was interrupted: remove it"), "\(at): \(run.errors)")
            }
        }
        return isWhole
    }

    private func expectOnce(_ count: Int) throws {
        let sent = try server.finish().map { $0[4] }
        #expect(sent.count == count)
        #expect(Set(sent).count == count)
    }

    @Test func `A killed repair leaves nothing that sends a row again`() throws {
        let limit = ["--limit", "40"]
        let sent = try campaign.send(to: server.endpoint, limit)
        try #require(sent.exitCode == 0, "\(sent.errors)")
        let segment = "\(campaign.ledger)/segment-0001-00"
        var bytes = try [UInt8](Data(contentsOf: URL(filePath: segment)))
        bytes[bytes.count / 2] ^= 1
        try Data(bytes).write(to: URL(filePath: segment))
        let found = try kill(["ledger", "repair", "--ledger", campaign.ledger], options: limit)
        #expect(found.calls > 20 && found.whole > 2, "\(found)")
        let failed = try killFailing(
            ["ledger", "repair", "--ledger", campaign.ledger], from: found.calls - 3,
            options: limit)
        #expect(failed > found.calls)
        try expectOnce(40)
    }

    @Test func `A killed merge leaves nothing that sends a row again`() throws {
        let parts = ["1/2", "2/2"].map { ($0, "\(campaign.ledger)-\($0.prefix(1))") }
        for (shard, ledger) in parts {
            let sent = try campaign.send(
                to: server.endpoint, ["--shard", shard, "--ledger", ledger])
            try #require(sent.exitCode == 0, "\(sent.errors)")
        }
        let found = try kill(["ledger", "merge"] + parts.map { $0.1 }, options: [])
        #expect(found.calls > 20 && found.whole > 2, "\(found)")
        let failed = try killFailing(
            ["ledger", "merge"] + parts.map { $0.1 }, from: found.calls - 3, options: [])
        #expect(failed > found.calls)
        try expectOnce(60)
    }
}
