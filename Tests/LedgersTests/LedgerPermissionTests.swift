import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Permissions of a ledger's directory.
@Suite struct LedgerPermissionTests {
    @Test(
        arguments: [
            (0o2770, 0o2700), (0o2750, 0o2700), (0o2710, 0o2700), (0o2705, 0o2700), (0o2700, nil),
            (0o2777, nil), (0o770, nil), (0o755, nil), (0o700, nil),
        ] as [(mode_t, mode_t?)])
    func `A directory with the setgid bit is closed to its group, unless others may write to it`(
        mode: mode_t, closed: mode_t?
    ) throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/ledger"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(chmod(path, mode) == 0)
        #expect(try LedgerDirectory.closeToGroup(path) == (closed != nil))
        var information = stat()
        #expect(stat(path, &information) == 0)
        #expect(information.st_mode & 0o7777 == closed ?? mode)
    }
}
