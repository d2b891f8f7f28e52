import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// The lock of a ledger.
@Suite struct LedgerLockTests {
    @Test func `A released ledger is free although a copy of its descriptor is open`() throws {
        let place = try TemporaryDirectory()
        let path = "\(place.path)/ledger"
        let ledger = try LedgerDirectory.create(path)
        let copy = try OpenFile.copiedDescriptor(of: "\(path)/lock")
        defer { close(copy) }
        let other = open("\(path)/lock", O_RDWR | O_CLOEXEC)
        defer { close(other) }
        #expect(flock(other, LOCK_EX | LOCK_NB) != 0)
        ledger.release()
        #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
    }
}
