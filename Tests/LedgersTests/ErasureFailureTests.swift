import BroadsideLists
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// `ledger forget` with several ledgers, some of which it can't erase devices from.
@Suite(.timeLimit(.minutes(60)))
struct ErasureFailureTests {
    @Test(arguments: [true, false])
    func `The other ledgers lose the devices, and the error names each that could not`(
        isDryRun: Bool
    ) throws {
        let directory = try TemporaryDirectory()
        let paths = ["a", "b", "c", "d"].map { "\(directory.path)/\($0)" }
        for path in paths { try DraftedLedger.write(path, firstRow: 0x1234) }
        let segment = "\(paths[1])/segment-0001-00"
        var bytes = try #require(FileManager.default.contents(atPath: segment))
        bytes[50] ^= 1
        try bytes.write(to: URL(filePath: segment))
        try directory.write("x", to: "d/rows.csv")

        func forget(_ ledgers: [String]) -> (lines: [String], error: BroadsideError?) {
            var lines: [String] = []
            do throws(BroadsideError) {
                try LedgerErasure.run(
                    tokens: .single(DraftedLedger.token(0x1234)), ledgers: ledgers,
                    isDryRun: isDryRun
                ) { lines.append($0) }
                return (lines, nil)
            } catch {
                return (lines, error)
            }
        }
        let (lines, error) = forget(paths)
        #expect(lines.count == 3, "\(lines)")
        for path in [paths[0], paths[2]] {
            let start = "\(path): \(isDryRun ? "would forget" : "forgot") 1 device"
            #expect(lines.contains { $0.hasPrefix(start) }, "\(lines)")
        }
        let message = error?.message ?? ""
        #expect(error?.exitCode == ExitCode.disk)
        #expect(
            message.hasPrefix("--ledger \(paths[1]), \(paths[3]): devices in these ledgers are "),
            "\(message)")
        // The error of a single ledger is that ledger's own.
        let alone = forget([paths[3]])
        #expect(alone.error?.exitCode == ExitCode.badRequest && alone.lines.isEmpty)
        #expect(alone.error?.message.contains("rows.csv") == true, "\(alone)")
    }
}
