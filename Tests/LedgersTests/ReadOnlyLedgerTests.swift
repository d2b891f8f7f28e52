import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Ledgers that can't be written to: on a disk after an error, or by their permissions.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ReadOnlyLedgerTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Whether this user may mount file systems that nobody else sees.
    static let canMount: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        let place = directory.path
        return
            (try? Subprocess.run(
                "unshare", ["--mount", "mount", "--bind", place, place], in: directory)) != nil
    }()

    private func path(_ name: String) -> String { "\(directory.path)/\(name)" }

    /// Runs the command where a directory is read-only.
    private func run(_ arguments: [String]) throws -> Finished {
        let place = path("disk")
        let script = """
            mount --bind \(place) \(place) && mount -o remount,ro,bind \(place) && exec "$0" "$@"
            """
        return try Subprocess(
            "unshare", ["--mount", "bash", "-c", script, Broadside.path()] + arguments,
            in: directory
        ).wait(limit: 120)
    }

    /// - Parameter hasLock: Without one the directory was copied.
    @Test(
        .enabled(if: canMount, "mounting is not allowed here"), arguments: [true, false])
    func `A read-only ledger is repaired, merged and read`(hasLock: Bool) throws {
        try FileManager.default.createDirectory(
            atPath: path("disk"), withIntermediateDirectories: false)
        let parts = [path("disk/one"), path("disk/two")]
        for (place, part) in parts.enumerated() {
            try DraftedLedger.write(
                part, part: CampaignPart(index: UInt16(place + 1), count: 2),
                firstRow: UInt64(place))
            if !hasLock { #expect(unlink("\(part)/lock") == 0) }
        }
        let repaired = try run(
            ["ledger", "repair", "--ledger", parts[0], "--output", path("repaired")])
        #expect(repaired.exitCode == 0, "\(repaired.errors)")
        let merged = try run(["ledger", "merge", "--output", path("merged")] + parts)
        #expect(merged.exitCode == 0, "\(merged.errors)")
        for ledger in [path("repaired"), path("merged"), parts[1]] {
            let verified = try run(["ledger", "verify", "--ledger", ledger])
            #expect(verified.exitCode == 0, "\(verified.errors)")
        }
        // Nor can an output be made there.
        let refused = try run(
            ["ledger", "repair", "--ledger", parts[0], "--output", path("disk/output")])
        #expect([2, 5].contains(refused.exitCode), "\(refused.errors)")
        #expect(refused.errors.contains("--output \(path("disk/output"))"), "\(refused.errors)")
        #expect(refused.errorLines.count == 1)
    }

    /// Archives are often protected in this way, even from their owner.
    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `A ledger that its permissions protect is repaired and merged, unless a run holds it`()
        throws
    {
        let user = 61_235
        let parts = [path("one"), path("two")]
        #expect(chown(directory.path, uid_t(user), gid_t(user)) == 0)
        for (place, part) in parts.enumerated() {
            try DraftedLedger.write(
                part, part: CampaignPart(index: UInt16(place + 1), count: 2),
                firstRow: UInt64(place))
            for file in try directory.names(in: part).map({ "\(part)/\($0)" }) + [part] {
                #expect(chown(file, uid_t(user), gid_t(user)) == 0)
                #expect(chmod(file, file == part ? 0o500 : 0o400) == 0)
            }
        }
        func run(_ words: [String]) throws -> Finished {
            try Subprocess(
                "setpriv",
                ["--reuid=\(user)", "--regid=\(user)", "--clear-groups", Broadside.path()]
                    + words, in: directory
            ).wait(limit: 60)
        }
        let repair = ["ledger", "repair", "--ledger", parts[0], "--output", path("repaired")]
        let lock = open("\(parts[0])/lock", O_RDONLY | O_CLOEXEC)
        defer { close(lock) }
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        #expect(try run(repair).exitCode == 7)
        #expect(flock(lock, LOCK_UN) == 0)
        #expect(chmod("\(parts[0])/lock", 0) == 0)
        let closed = try run(repair)
        #expect(closed.exitCode == 2 && closed.errorLines.count == 1, "\(closed.errors)")
        #expect(chmod("\(parts[0])/lock", 0o400) == 0)
        let repaired = try run(repair)
        #expect(repaired.exitCode == 0, "\(repaired.errors)")
        let merged = try run(["ledger", "merge", "--output", path("merged")] + parts)
        #expect(merged.exitCode == 0, "\(merged.errors)")
    }

    @Test(.enabled(if: canMount, "mounting is not allowed here"))
    func `A read-only ledger whose run continues elsewhere is locked`() throws {
        try FileManager.default.createDirectory(
            atPath: path("disk"), withIntermediateDirectories: false)
        let ledger = path("disk/ledger")
        try DraftedLedger.write(ledger)
        let lock = open("\(ledger)/lock", O_RDWR | O_CLOEXEC)
        defer { close(lock) }
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        let call = ["ledger", "repair", "--ledger", ledger, "--output", path("repaired")]
        let refused = try run(call)
        #expect(refused.exitCode == 7, "\(refused.errors)")
        #expect(flock(lock, LOCK_UN) == 0)
        #expect(try run(call).exitCode == 0)
    }
}
