import BroadsideTestSupport
import Foundation
import Testing

/// `broadside night` on a disk that is full, and on network file systems that fail or know no locks: a date never has a
/// second campaign, and a start that sends nothing says so.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct NightDiskTests {
    private static let rows = 30
    /// Where calls fail: on the notes about nights, the folder of the ledgers, the ledger and its files.
    private static let places =
        TestSize.isLong
        ? ["evening/nights", "/evening", "DATE", "DATE/manifest.json", "DATE/lock"]
        : ["evening/nights", "DATE/manifest.json"]

    /// The requests of one night, whatever was started how often.
    private struct Requests {
        let server: RecordingServer
        let before: Int

        init(_ server: RecordingServer) throws {
            self.server = server
            before = try server.answers().count
        }

        /// How many devices were sent to; records an issue if one was twice.
        func count(_ what: Comment) throws -> Int {
            let paths = try server.answers().dropFirst(before).compactMap(\.path)
            #expect(Set(paths).count == paths.count, what)
            return paths.count
        }
    }

    /// The ledgers that are there.
    private func ledgers(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
            .filter { $0.hasPrefix("20") }
    }

    /// A start that sent nothing, or not all, said so; the next one, on a disk that is sound, sends the rest.
    private func judge(
        _ failed: Finished, then again: Finished, _ requests: Requests, in folder: String,
        _ what: Comment
    ) throws {
        #expect([0, 5, 6].contains(failed.exitCode), what)
        #expect(failed.exitCode != 5 || failed.errors.contains("broadside: "), what)
        #expect([0, 6].contains(again.exitCode), what)
        let count = try requests.count(what)
        // Rows without a verdict on disk are unknown then.
        #expect(count == Self.rows || again.exitCode == 6 && count < Self.rows, what)
        #expect(ledgers(in: folder).count == 1, what)
    }

    @Test(.enabled(if: FailingDisk.isAllowed, "this user may have no file system in user space"))
    func `A night on a disk that is full begins no second campaign when there is room again`()
        throws
    {
        let server = try RecordingServer()
        var codes: Set<Int32> = []
        for room in [0, 10, 19, 100, 130, 200, 600, 1_000, 1_500, 2_500, 4_000, 100_000] {
            let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
            let path = nights.campaign.directory.path
            let folder = "\(path)/back/nights"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)
            func start() throws -> Finished {
                let words = try FailingDisk.words(
                    path,
                    [
                        Broadside.path(), "night", "--campaign", nights.file, "--ledgers",
                        "\(path)/disk/nights",
                    ])
                return try Subprocess(
                    words[0], Array(words.dropFirst()), in: nights.campaign.directory
                ).wait(limit: 120)
            }
            let requests = try Requests(server)
            try nights.campaign.directory.write("full \(room)", to: "back.fail")
            let full = try start()
            codes.insert(full.exitCode)
            #expect(full.exitCode != 5 || full.errors.contains("No space left"), "\(full.errors)")
            try FileManager.default.removeItem(atPath: "\(path)/back.fail")
            let again = try start()
            try judge(
                full, then: again, requests, in: "\(folder)/evening",
                "\(room): \(full.exitCode) \(full.errors)\(again.exitCode) \(again.errors)")
        }
        #expect(codes.isSuperset(of: [0, 5]), "\(codes)")
    }

    @Test(arguments: [
        ("flock", [ENOLCK, EOPNOTSUPP]), ("open", [ESTALE]), ("stat", [ESTALE]), ("fstat", [EIO]),
        ("read", [EIO]), ("fsync", [EDQUOT]),
    ])
    func `A night on a network file system that fails sends each row once, or says why not`(
        _ call: String, _ numbers: [Int32]
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 1)
        let library = try Shim.compile("fail-files", in: campaign.directory)
        var failures = 0
        for number in numbers {
            for place in Self.places {
                for isFinished in [false, true] {
                    let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
                    let requests = try Requests(server)
                    if isFinished {
                        #expect(try nights.run(at: (1, "22:00")).exitCode == 0)
                    }
                    let end = place.replacing("DATE", with: nights.date(1))
                    let failed = try nights.run(
                        at: (1, "23:00"),
                        environment: [
                            "LD_PRELOAD": "\(library) \(FakeTime.fixed("+0")["LD_PRELOAD"] ?? "")",
                            "FAIL_CALLS": "\(call) \(number) \(end)",
                        ])
                    failures += failed.exitCode == 5 ? 1 : 0
                    #expect(
                        try failed.exitCode != 0 || requests.count("\(call)") == Self.rows,
                        "\(call) \(end)")
                    if isFinished {
                        #expect(try requests.count("\(call) \(end)") == Self.rows)
                    }
                    let again = try nights.run(at: (1, "23:30"))
                    try judge(
                        failed, then: again, requests, in: "\(nights.folder)/evening",
                        """
                        \(call) \(number) \(end) \(isFinished): \(failed.exitCode) \(failed.errors)\
                        \(again.exitCode) \(again.errors)
                        """)
                }
            }
        }
        #expect(failures > 0, "nothing failed")
    }
}
