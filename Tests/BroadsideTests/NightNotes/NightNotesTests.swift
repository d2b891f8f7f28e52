import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideCampaigns

/// The file with the notes about nights: whole lines, durable one after the other, one process at a time.
@Suite(.timeLimit(.minutes(60))) struct NightNotesTests {
    private let directory: TemporaryDirectory
    private let date = NightDate("2026-11-25")!
    private var file: String { "\(directory.path)/nights" }

    init() throws { directory = try TemporaryDirectory() }

    private func add(_ note: NightHistory.Note) throws {
        try NightNotes(folder: directory.path).add(note, of: date, at: 7, campaign: "\"/c.json5\"")
    }

    @Test func `A folder that has nights is never to be replaced by another folder`() throws {
        try directory.write("<!DOCTYPE html>\n", to: "nights")
        for date in ["2026-11-24", "2026-11-25"] {
            try FileManager.default.createDirectory(
                atPath: "\(directory.path)/\(date)", withIntermediateDirectories: false)
        }
        for read in [
            { _ = try NightNotes(folder: $0) }, { _ = try NightNotes.history(folder: $0) },
        ]
            as [(String) throws -> Void]
        {
            let failure = #expect(throws: BroadsideError.self) { try read(directory.path) }
            #expect(failure?.exitCode == 2)
            let message = failure?.message ?? ""
            #expect(message.contains("the latest of 2026-11-25"), "\(message)")
            #expect(!message.contains("another folder"), "\(message)")
        }
    }

    @Test func `A night whose notes are lost is known by its ledger's first start`() throws {
        let time: UInt64 = 1_795_566_900_000
        let date = try #require(NightDate(localDayOf: time))
        let identity = CampaignIdentity(
            listByteCount: nil, listFormat: "lines", columns: ["token"], payloadSHA256: "00",
            topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
            environment: "production", shard: nil, suppressSHA256: nil)
        try LedgerDirectory.create("\(directory.path)/\(date)").save(
            Manifest(
                campaign: 7, identity: identity, firstStartedAtMilliseconds: time, listPath: nil))
        // The last text has lost its end.
        for text in [nil, "broadside nights 1\n", "broadside nights 1\n2026-11-01 begun 7\n"] {
            if let text { try directory.write(text, to: "nights") }
            let read = try NightNotes.history(folder: directory.path)
            #expect(read[date]?.startedAtMilliseconds == time, "\(text ?? "no file")")
            let opened = try NightNotes(folder: directory.path).history
            #expect(opened[date]?.startedAtMilliseconds == time, "\(text ?? "no file")")
        }
        // An empty file may have been a file with notes of nights without a ledger.
        try directory.write("", to: "nights")
        let failure = #expect(throws: BroadsideError.self) {
            try NightNotes(folder: directory.path)
        }
        #expect(failure?.exitCode == 5)
        #expect(failure?.message.contains("starts are then taken from the ledgers") == true)
    }

    @Test func `Notes are there for the next start, and a second one at a time is exit 7`() throws {
        try add(.intended)
        do {
            let held = try NightNotes(folder: directory.path)
            #expect(held.history[date]?.state == .intended)
            let failure = #expect(throws: BroadsideError.self) {
                try NightNotes(folder: directory.path)
            }
            #expect(failure?.exitCode == 7)
            #expect(failure?.message.contains("the night of 2026-11-25") == true)
            // Who only looks does not need the lock.
            #expect(try NightNotes.history(folder: directory.path)[date]?.state == .intended)
            try held.add(.begun, of: date, at: 8)
        }
        #expect(try NightNotes(folder: directory.path).history[date]?.state == .begun)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(
            text == """
                broadside nights 1
                2026-11-25 intended 7 "/c.json5"
                2026-11-25 begun 8

                """)
    }

    @Test func `Released notes are free although a copy of their descriptor is open`() throws {
        let copy: Int32
        do {
            let held = try NightNotes(folder: directory.path)
            copy = try OpenFile.copiedDescriptor(of: held.path)
        }
        defer { close(copy) }
        _ = try NightNotes(folder: directory.path)
    }

    @Test func `A note that was cut off at any byte says nothing, and the next one is whole`()
        throws
    {
        try add(.intended)
        let before = try Data(contentsOf: URL(filePath: file))
        try add(.begun)
        let whole = try Data(contentsOf: URL(filePath: file))
        for count in 0..<whole.count {
            try whole.prefix(count).write(to: URL(filePath: file))
            let history = try NightNotes(folder: directory.path).history
            #expect(history[date]?.state == (count < before.count ? nil : .intended), "\(count)")
            try add(.begun)
            #expect(try NightNotes(folder: directory.path).history[date]?.state == .begun)
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.hasPrefix("broadside nights 1\n") && text.hasSuffix("begun 7\n"))
        }
    }

    @Test func `A file of another program is left alone with exit 2, and a damaged one with 5`()
        throws
    {
        for (text, code, advice) in [
            ("what I did at night\n", Int32(2), "otherwise, remove it or name another folder"),
            ("broadside nights 2\n", 2, "newer format"),
            ("broadside nights 1\nbegun\n", 5, "backup"),
        ] {
            try directory.write(text, to: "nights")
            let failure = #expect(throws: BroadsideError.self) {
                try NightNotes(folder: directory.path)
            }
            #expect(failure?.exitCode == code, "\(text)")
            #expect(failure?.message.contains(advice) == true, "\(failure?.message ?? "")")
            #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
        }
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.createDirectory(
            atPath: file, withIntermediateDirectories: false)
        #expect(throws: BroadsideError.self) { try NightNotes(folder: directory.path) }
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.createSymbolicLink(
            atPath: file, withDestinationPath: "\(directory.path)/elsewhere")
        let failure = #expect(throws: BroadsideError.self) {
            try NightNotes(folder: directory.path)
        }
        #expect(failure?.exitCode == 2)
    }
}
