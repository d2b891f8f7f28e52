import BroadsideTestSupport
import Foundation
import Testing

/// What may be in the ledger's directory when a run starts: `--resume` needs a ledger, `--resume-or-begin` does
/// not, and neither takes files of others for one.
@Suite(.timeLimit(.minutes(60)))
struct LedgerUseTests {
    /// What is where the ledger is to be.
    enum Place: String, CaseIterable, Sendable {
        case nothing, emptyDirectory, file
        /// A directory with files of others.
        case letter, list, webManifest, lockOfOthers
        /// An empty lock, as earlier versions left it, or what is left of such a ledger.
        case emptyLock
        /// The run before was killed before its campaign was begun.
        case preparation

        /// What a directory has in it; nil: it is none.
        var files: [String: String]? {
            switch self {
            case .nothing, .file: nil
            case .emptyDirectory: [:]
            case .letter: ["letter.txt": "mine"]
            case .list: ["tokens": "aabb\n"]
            case .webManifest: ["manifest.json": #"{"name":"shop"}"#, "tokens": "aabb\n"]
            case .lockOfOthers: ["lock": "4711\n", "tokens": "aabb\n"]
            case .emptyLock: ["lock": ""]
            case .preparation: ["lock": "broadside ledger\n", "skips": "x"]
            }
        }

        var isOfOthers: Bool {
            [.file, .letter, .list, .webManifest, .lockOfOthers].contains(self)
        }

        func make(_ campaign: Campaign) throws {
            if self == .file { try campaign.directory.write("x", to: "ledger") }
            guard let files else { return }
            try FileManager.default.createDirectory(
                atPath: campaign.ledger, withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700])
            for (name, text) in files { try campaign.directory.write(text, to: "ledger/\(name)") }
        }

        /// Checks that everything is as it was.
        func expectUntouched(_ campaign: Campaign) throws {
            let there = FileManager.default.fileExists(atPath: campaign.ledger)
            #expect(there == (self != .nothing))
            guard let files else { return }
            #expect(Set(try campaign.directory.names(in: campaign.ledger)) == Set(files.keys))
            for (name, text) in files {
                let found = try String(
                    contentsOfFile: "\(campaign.ledger)/\(name)", encoding: .utf8)
                #expect(found == text, "\(name)")
            }
        }
    }

    @Test(arguments: Place.allCases)
    func `--resume and --must-resume begin no campaign`(place: Place) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        try place.make(campaign)
        try campaign.directory.write(#"{"resume": true}"#, to: "campaign.json5")
        let file = ["--campaign", "\(campaign.directory.path)/campaign.json5"]
        for use in [["--resume"], ["--must-resume"], ["--resume", "--dry-run"], file]
        where place != .preparation {
            let sent = try campaign.send(to: server.endpoint, use)
            let words: Comment = "\(use): \(sent.errors)"
            #expect(sent.exitCode == 2, words)
            #expect(sent.errorLines.count == 1 && sent.errors.contains(campaign.ledger), words)
            #expect(sent.errors.contains("--resume-or-begin") == !place.isOfOthers, words)
            try place.expectUntouched(campaign)
        }
        #expect(try server.events().allSatisfy { $0.event != "preface" })
        guard place == .preparation else { return }
        // Nothing was sent, and its lock proves that: it continues.
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test(arguments: Place.allCases)
    func `--resume-or-begin begins a campaign and then continues it`(place: Place) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 40)
        try place.make(campaign)
        let use = ["--resume-or-begin"]
        let dry = try campaign.send(to: server.endpoint, use + ["--dry-run"])
        #expect(dry.exitCode == (place.isOfOthers ? 2 : 0), "\(dry.errors)")
        try place.expectUntouched(campaign)
        let sent = try campaign.send(to: server.endpoint, use + ["--limit", "10"])
        guard !place.isOfOthers else {
            #expect(sent.exitCode == 2 && sent.errorLines.count == 1, "\(sent.errors)")
            // Of a list on standard input no copy is put there either.
            let piped = try Broadside.run(
                campaign.arguments(
                    to: server.endpoint, ["--tokens", "-"] + use, without: ["tokens"]),
                in: campaign.directory, input: campaign.list)
            #expect(piped.exitCode == 2, "\(piped.errors)")
            try place.expectUntouched(campaign)
            return
        }
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try campaign.send(to: server.endpoint, use + ["--limit", "20"]).exitCode == 0)
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test
    func `Resume options exclude each other, and one on the command line replaces the file's`()
        throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        for other in ["--resume", "--must-resume"] {
            let refused = try campaign.send(to: server.endpoint, [other, "--resume-or-begin"])
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errors.contains("exclude each other"), "\(refused.errors)")
        }
        let path = campaign.directory.path
        try campaign.directory.write(#"{"resume-or-begin": true}"#, to: "begin.json5")
        try campaign.directory.write(#"{"resume": true}"#, to: "resume.json5")
        let none = try campaign.send(
            to: server.endpoint, ["--campaign", "\(path)/begin.json5", "--resume"])
        #expect(none.exitCode == 2 && none.errors.contains("contains no ledger"), "\(none.errors)")
        let begun = try campaign.send(
            to: server.endpoint, ["--campaign", "\(path)/resume.json5", "--resume-or-begin"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        let again = try campaign.send(to: server.endpoint, ["--resume", "--must-resume"])
        #expect(again.exitCode == 0, "\(again.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test(arguments: [[], ["--resume"], ["--resume-or-begin"]])
    func `A list in the ledger's directory is neither overwritten nor removed`(use: [String]) throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        let path = campaign.directory.path
        try FileManager.default.createDirectory(
            atPath: campaign.ledger, withIntermediateDirectories: false)
        // Too many invalid rows: what was made for the campaign is taken away again.
        let text = "aabb\n" + String(repeating: "no token\n", count: 50)
        let list = try campaign.directory.write(text, to: "ledger/tokens")
        let link = "\(path)/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: list)
        for tokens in [list, link, "\(path)/ledger/../ledger/tokens"] {
            for more in [[], ["--max-invalid", "100"]] {
                let sent = try campaign.send(
                    to: server.endpoint, ["--tokens", tokens] + use + more)
                #expect(sent.exitCode == 2, "\(tokens): \(sent.errors)")
                #expect(try String(contentsOfFile: list, encoding: .utf8) == text)
            }
        }
        #expect(try campaign.directory.names(in: campaign.ledger) == ["tokens"])
    }

    @Test func `A list in a ledger directory is refused, as --tokens and as --suppress`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        #expect(try campaign.send(to: server.endpoint, ["--limit", "1"]).exitCode == 0)
        let list = try campaign.directory.write("aabb\n", to: "ledger/skips")
        for more in [["--tokens", list], ["--suppress", list]] {
            let sent = try campaign.send(to: server.endpoint, ["--resume"] + more)
            #expect(sent.exitCode == 2, "\(sent.errors)")
            #expect(
                sent.errors.contains("\(more[0]) \(list) is in the ledger's directory"),
                "\(sent.errors)")
        }
        #expect(try String(contentsOfFile: list, encoding: .utf8) == "aabb\n")
    }

    @Test func `A ledger that lost some of its files does not begin another campaign`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 40)
        #expect(try campaign.send(to: server.endpoint, ["--limit", "20"]).exitCode == 0)
        let names = try campaign.directory.names(in: campaign.ledger)
        for kept in [["lock"], ["lock", "telemetry.json"], ["lock", "epoch"]] {
            let ledger = campaign.directory.fresh("rest")
            try FileManager.default.copyItem(atPath: campaign.ledger, toPath: ledger)
            for name in names where !kept.contains(name) {
                try FileManager.default.removeItem(atPath: "\(ledger)/\(name)")
            }
            for use in ["--resume", "--resume-or-begin"] {
                let sent = try campaign.send(to: server.endpoint, ["--ledger", ledger, use])
                #expect(sent.exitCode == 5, "\(kept): \(sent.errors)")
                #expect(sent.errors.contains("has lost its files"), "\(sent.errors)")
            }
        }
        #expect(try server.tally(campaign.tokens).total == 20)
    }
}
