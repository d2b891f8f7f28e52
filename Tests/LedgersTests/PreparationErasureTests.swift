import BroadsideLists
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// `ledger forget` where a run ended before its campaign began.
@Suite(.timeLimit(.minutes(60)))
struct PreparationErasureTests {
    private let directory: TemporaryDirectory
    private var night: String { "\(directory.path)/news/2026-11-30" }

    /// Writes the directory of a run that was killed while it read its list.
    init() throws {
        directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/news", withIntermediateDirectories: false)
        try LedgerDirectory.create(night).release()
        for name in ["tokens", ".tokens.new"] {
            try directory.write(DraftedLedger.token(0x10), to: "news/2026-11-30/\(name)")
        }
    }

    private func forget(_ path: String, isDryRun: Bool = false) throws -> [String] {
        var lines: [String] = []
        try LedgerErasure.run(
            tokens: .single(DraftedLedger.token(0x10)), ledgers: [path], isDryRun: isDryRun
        ) { lines.append($0) }
        return lines
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: night).sorted()
    }

    @Test(arguments: [false, true])
    func `The list of a run that ended before its first row is removed`(isNamed: Bool) throws {
        let path = isNamed ? night : directory.path
        let list = "the list of a run that ended before its first row"
        #expect(try forget(path, isDryRun: true).first == "\(night): would remove \(list)")
        #expect(try names() == [".tokens.new", "lock", "tokens"])
        #expect(try forget(path).first == "\(night): removed \(list)")
        #expect(try names() == ["lock"])
        let end = "contains none of the devices: nothing changed"
        #expect(try forget(path).first == "\(night): \(end)")
    }

    @Test func `The list of a run that is still reading it is not removed`() throws {
        let run = try LedgerDirectory.openForRun(night, resumes: true)
        defer { run.release() }
        #expect {
            try forget(directory.path)
        } throws: {
            ($0 as? BroadsideError)?.exitCode == ExitCode.inUse
        }
        #expect(try names() == [".tokens.new", "lock", "tokens"])
    }

    @Test
    func `A list that can't be removed is an error that names it, and is not reported as removed`()
        throws
    {
        // No user can unlink a directory.
        let list = "\(night)/tokens"
        try FileManager.default.removeItem(atPath: list)
        try FileManager.default.createDirectory(atPath: list, withIntermediateDirectories: false)
        var lines: [String] = []
        let failure = #expect(throws: BroadsideError.self) {
            try LedgerErasure.run(tokens: .single(DraftedLedger.token(0x10)), ledgers: [night]) {
                lines.append($0)
            }
        }
        #expect(failure?.exitCode == ExitCode.disk && lines.isEmpty)
        #expect(failure?.message.contains("\(list) can't be removed: ") == true)
    }

    @Test
    func `The list of a run that began its campaign before the lock was taken is not removed`()
        throws
    {
        try DraftedLedger.write("\(directory.path)/other")
        try FileManager.default.copyItem(
            atPath: "\(directory.path)/other/manifest.json", toPath: "\(night)/manifest.json")
        #expect {
            _ = try PreparationErasure(night)
        } throws: {
            ($0 as? BroadsideError)?.exitCode == ExitCode.inUse
        }
        #expect(try names() == [".tokens.new", "lock", "manifest.json", "tokens"])
    }

    @Test func `Other commands find no ledger there`() throws {
        #expect(throws: BroadsideError.self) { try LedgerCollection([night], option: "ledger") }
        let collection = try LedgerCollection([directory.path], option: nil, mayBeEmpty: true)
        #expect(collection.paths.isEmpty && collection.leftOut == ["\(directory.path)/news"])
    }
}
