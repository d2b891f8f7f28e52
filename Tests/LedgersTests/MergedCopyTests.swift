import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// A merged ledger of which one part is an old copy: the campaign continued in another directory.
@Suite struct MergedCopyTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func path(_ name: String) -> String { absolutePath("\(directory.path)/\(name)") }

    private func claim(_ name: String) throws {
        let run = try LedgerDirectory.openForRun(path(name), resumes: true)
        #expect(try run.claimAttempt(try run.readManifest()).isEmpty)
    }

    private func refusal(_ name: String) -> String {
        let error = #expect(throws: BroadsideError.self) {
            try LedgerDirectory.openToRead(path(name)).refuseCopies()
        }
        #expect(error?.exitCode == ExitCode.badRequest)
        return error?.message ?? ""
    }

    @Test func `The refusal to resume it names the newer copy`() throws {
        for (index, name) in ["one", "two"].enumerated() {
            try DraftedLedger.write(
                path(name), part: CampaignPart(index: UInt16(index + 1), count: 2),
                firstRow: UInt64(index))
            try claim(name)
        }
        try FileManager.default.copyItem(atPath: path("one"), toPath: path("old"))
        _ = try LedgerMerge.run(output: path("before"), ledgers: [path("old"), path("two")])
        #expect(refusal("before").hasSuffix("each of them: \(path("old")), \(path("two"))"))
        #expect(refusal("before/part-0001").hasSuffix("also sends: resume \(path("old"))"))
        try claim("one")
        _ = try LedgerMerge.run(output: path("merged"), ledgers: [path("old"), path("two")])
        for name in ["before", "merged"] {
            #expect(refusal(name).hasSuffix("each of them: \(path("one")), \(path("two"))"))
            #expect(refusal("\(name)/part-0001").hasSuffix("also sends: resume \(path("one"))"))
            #expect(refusal("\(name)/part-0002").hasSuffix("also sends: resume \(path("two"))"))
        }
    }
}
