import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Names that must survive a power cut: a folder that can't be synced is a disk that fails.
@Suite(.timeLimit(.minutes(60)))
struct FolderSyncTests {
    private let place: TemporaryDirectory
    private let ledger: LedgerDirectory

    init() throws {
        place = try TemporaryDirectory()
        ledger = try LedgerDirectory.create("\(place.path)/ledger")
    }

    @Test func `A ledger whose folder cannot be synced fails as any other write does`() throws {
        try ledger.syncDirectory()
        try ledger.replace("telemetry.json", with: [1])
        // Files can be made through such a descriptor, and fsync(2) refuses it. O_PATH is missing in Swift.
        let pathOnly: Int32 = 0o10_000_000
        close(ledger.folder)
        ledger.folder = open("\(place.path)/ledger", pathOnly | O_DIRECTORY | O_CLOEXEC)
        for write in [{ try ledger.syncDirectory() }, { try ledger.replace("epoch", with: [1]) }] {
            let error = #expect(throws: BroadsideError.self) { try write() }
            #expect(error?.exitCode == 5)
            #expect(error?.message.contains("can't be synced") == true)
        }
    }

    @Test func `A ledger that is not open is opened to be synced`() throws {
        try LedgerDirectory.unlocked("\(place.path)/ledger").syncDirectory()
        #expect(throws: BroadsideError.self) {
            try LedgerDirectory.unlocked("\(place.path)/none").syncDirectory()
        }
    }

    @Test func `A file system that syncs no folders is accepted`() throws {
        let folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(folder) }
        #expect(fsync(folder) != 0)
        #expect(errno == EINVAL || errno == ENOTSUP)
        #expect(syncNames(in: folder) && syncFolder("/proc"))
        #expect(!syncNames(in: -1) && !syncFolder("\(place.path)/none"))
    }
}
