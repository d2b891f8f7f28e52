import BroadsideTestSupport
import Foundation
import Testing

/// A disk that fails while `prune` or `ledger export` write: exit 5, the file is named, what was there
/// before is untouched, and nothing half is left beside it.
@Suite(
    .serialized,
    .enabled(if: FailingDisk.isAllowed, "file systems in user space are not allowed here"),
    .timeLimit(.minutes(60)))
struct OutputDiskTests {
    /// Where the disk fails, by the bytes that the output has by then.
    enum Place: String, CaseIterable {
        case sync, lastSync, write, full

        /// The word for the disk, for an output of so many bytes.
        func word(whole: Int) -> String {
            switch self {
            case .sync: "sync 1"
            case .lastSync: "sync \(whole)"
            case .write: "write \(whole / 2)"
            case .full: "full \(whole / 2)"
            }
        }

        var message: String {
            self == .full
                ? "No space left on device: free some space on its file system, then try again"
                : "Input/output error: its disk or file system failed: try again, or name another "
                    + "place"
        }
    }

    /// A settled campaign whose list and export are longer than what goes to the disk at a time: most
    /// of it are rows that nobody sends.
    private static func settled() throws -> Campaign {
        let campaign = try Campaign(rows: 500)
        var list = campaign.tokens.list()
        let line = Array((String(repeating: "no token ", count: 22) + "\n").utf8)
        for _ in 0..<(36 << 20) / line.count { list += line }
        try campaign.directory.write(list, to: "tokens.txt")
        let server = try LocalAPNs(["--unregistered", "0.5"])
        let sent = try campaign.send(to: server.endpoint, ["--max-invalid", "100"])
        guard sent.exitCode == 0 else { throw TestFailure(sent.errors) }
        return campaign
    }

    /// Runs a command whose outputs lie on a disk that fails.
    private func run(_ command: [String], _ word: String, in campaign: Campaign) throws -> Finished
    {
        let path = campaign.directory.path
        try Data(word.utf8).write(to: URL(filePath: "\(path)/back.fail"))
        let words = try FailingDisk.words(path, [Broadside.path()] + command)
        return try Subprocess(words[0], Array(words.dropFirst()), in: campaign.directory).wait()
    }

    @Test
    func `prune and export on a failing disk leave no partial output and keep the old one`() throws
    {
        let campaign = try Self.settled()
        let path = campaign.directory.path
        let output = "\(path)/disk/output"
        let ledger = ["--ledger", campaign.ledger, "--tokens", campaign.list, "--output"]
        for (number, command) in [["prune"] + ledger, ["ledger", "export"] + ledger].enumerated() {
            let sound = try Broadside.run(command + ["\(path)/sound"], in: campaign.directory)
            #expect(sound.exitCode == 0, "\(sound.errors)")
            let whole = try Data(contentsOf: URL(filePath: "\(path)/sound")).count
            #expect(whole > 33 << 20)
            for (index, place) in Place.allCases.enumerated() {
                // Each of the four with a file in the output's place once, and once without.
                let former = (number + index) % 2 == 0 ? ["output": "what was there before\n"] : [:]
                try put(former, in: campaign)
                let failed = try run(command + [output], place.word(whole: whole), in: campaign)
                let told = "\(command[0]) \(place) \(failed.errors)"
                #expect(failed.exitCode == 5, "\(told)")
                #expect(failed.errors == "broadside: \(output): \(place.message)\n", "\(told)")
                #expect(try left(in: campaign) == former, "\(told)")
                // The disk failed there and nowhere else; a long write's second part is tried twice.
                let log = try String(contentsOfFile: "\(path)/disk.log", encoding: .utf8)
                let failures = Set(log.split(separator: "\n")).map { $0.split(separator: " ") }
                try #require(failures.count == 1 && failures[0].count == 4, "\(log)")
                let count = try #require(Int(failures[0][2]))
                #expect((count == whole) == (place == .lastSync), "\(told): \(log)")
            }
        }
    }

    @Test func `Removed rows are not written if the pruned list cannot be synced`() throws {
        let campaign = try Campaign(rows: 500)
        let server = try LocalAPNs(["--unregistered", "0.1"])
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let path = campaign.directory.path
        let command = [
            "prune", "--ledger", campaign.ledger, "--tokens", campaign.list,
            "--output", "\(path)/disk/output", "--removed", "\(path)/disk/removed",
        ]
        let former = ["output": "a list\n", "removed": "what was taken out of it\n"]
        try put(former, in: campaign)
        // More than the rows that go have, less than those that stay.
        let failed = try run(command, "sync \(200 * 65)", in: campaign)
        #expect(failed.exitCode == 5, "\(failed.errors)")
        #expect(
            failed.errors == "broadside: \(path)/disk/output: \(Place.sync.message)\n",
            "\(failed.errors)")
        #expect(try left(in: campaign) == former)

        try put(former, in: campaign)
        let pruned = try run(command, "none", in: campaign)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        let files = try left(in: campaign)
        #expect(files.keys.sorted() == ["output", "removed"])
        let lines = files.mapValues { $0.split(separator: "\n") }
        #expect(lines["removed"]!.count > 0 && lines["removed"]!.count < 200)
        #expect(
            (lines["output"]! + lines["removed"]!).sorted()
                == (0..<500).map { campaign.tokens.token($0)[...] }.sorted())
    }

    /// Makes the files, and no others, that are there before.
    private func put(_ files: [String: String], in campaign: Campaign) throws {
        let back = "\(campaign.directory.path)/back"
        try? FileManager.default.removeItem(atPath: back)
        try FileManager.default.createDirectory(atPath: back, withIntermediateDirectories: false)
        for (name, text) in files { try campaign.directory.write(text, to: "back/\(name)") }
    }

    /// All files that are there now.
    private func left(in campaign: Campaign) throws -> [String: String] {
        let back = "\(campaign.directory.path)/back"
        var files: [String: String] = [:]
        for name in try campaign.directory.names(in: back) {
            files[name] = try String(contentsOfFile: "\(back)/\(name)", encoding: .utf8)
        }
        return files
    }
}
