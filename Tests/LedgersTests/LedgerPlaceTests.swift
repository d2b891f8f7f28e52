import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Whether a ledger's directory is still under its name.
@Suite(.timeLimit(.minutes(60)))
struct LedgerPlaceTests {
    private let directory: TemporaryDirectory
    private var path: String { "\(directory.path)/folder/ledger" }

    init() throws { directory = try TemporaryDirectory() }

    private func place() throws -> (LedgerDirectory, LedgerLocation) {
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/folder", withIntermediateDirectories: false)
        let ledger = try LedgerDirectory.create(path)
        return (ledger, ledger.location)
    }

    @Test(arguments: [false, true])
    func `A link without a target is named as one, and a file as a file`(resumes: Bool) throws {
        let (link, file) = ("\(directory.path)/link", "\(directory.path)/file")
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: "\(directory.path)/nothing")
        try directory.write("", to: "file")
        func refusal(_ path: String) -> BroadsideError? {
            do throws(BroadsideError) {
                try LedgerDirectory.checkForRun(path, resumes: resumes, begins: true)
                return nil
            } catch {
                return error
            }
        }
        let broken = try #require(refusal(link))
        #expect(broken.exitCode == 2)
        #expect(broken.message.contains("\(link) is a symbolic link that leads nowhere: put its"))
        #expect(refusal(file)?.message.contains("leads nowhere") == false)
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/nothing", withIntermediateDirectories: false)
        #expect(refusal(link)?.message.contains("leads nowhere") != true)
    }

    @Test func `A ledger directory that stays is found`() throws {
        let (ledger, place) = try place()
        #expect(!place.isLost)
        // Files come and go in it.
        try ledger.replace("epoch", with: Array("text".utf8))
        #expect(!place.isLost)
    }

    @Test func `A ledger directory that was removed, or whose folder was, is not found`() throws {
        for lost in ["folder/ledger", "folder"] {
            let (ledger, place) = try place()
            try FileManager.default.removeItem(atPath: "\(directory.path)/\(lost)")
            #expect(place.isLost, "\(lost)")
            try? FileManager.default.removeItem(atPath: "\(directory.path)/folder")
            _ = ledger
        }
    }

    @Test func `A ledger directory without a segment of the run is not found`() throws {
        let (ledger, found) = try place()
        var place = found
        place.segments = ["segment-0001-00", "segment-0001-01"]
        #expect(place.isLost)
        for name in place.segments { try ledger.replace(name, with: []) }
        #expect(!place.isLost)
        try FileManager.default.removeItem(atPath: "\(path)/segment-0001-01")
        #expect(place.isLost)
        _ = ledger
    }

    @Test func `Another directory or file in its place is not the ledger`()
        throws
    {
        let (ledger, place) = try place()
        let files = FileManager.default
        try files.moveItem(atPath: path, toPath: path + "-aside")
        #expect(place.isLost)
        try files.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(place.isLost)
        try files.removeItem(atPath: path)
        try Data().write(to: URL(filePath: path))
        #expect(place.isLost)
        try files.removeItem(atPath: path)
        try files.moveItem(atPath: path + "-aside", toPath: path)
        #expect(!place.isLost)
        // By way of a link it is the same directory.
        try files.moveItem(atPath: path, toPath: path + "-aside")
        try files.createSymbolicLink(atPath: path, withDestinationPath: path + "-aside")
        #expect(!place.isLost)
        _ = ledger
    }
}
