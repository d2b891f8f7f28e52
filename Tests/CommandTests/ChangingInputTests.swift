import BroadsideTestSupport
import Foundation
import Testing

/// Files that change while they are read, before the first row is sent: payloads, lists of opt-outs, a list
/// that is searched for copies. Half of the old and half of the new is nobody's campaign. The process is
/// stopped in the middle of the file (`Tests/Shims/stop-at-read.c`), which is changed meanwhile.
@Suite(.timeLimit(.minutes(60)))
struct ChangingInputTests {
    enum Input: String, CaseIterable, Sendable {
        case payload, payloadBy, optOuts, searchedList
    }

    enum Change: String, CaseIterable, Sendable { case longer, shorter, rewritten, replaced }

    private static func change(_ path: String, _ change: Change) throws {
        let bytes = try Data(contentsOf: URL(filePath: path))
        let file = open(path, O_RDWR | O_CLOEXEC)
        defer { close(file) }
        func put(_ text: Data, at offset: Int) {
            let count = text.withUnsafeBytes {
                pwrite(file, $0.baseAddress, $0.count, off_t(offset))
            }
            #expect(count == text.count)
        }
        switch change {
        case .longer: put(bytes.suffix(65), at: bytes.count)
        case .shorter: #expect(ftruncate(file, off_t(bytes.count / 2)) == 0)
        case .rewritten: put(Data(bytes.suffix(30).reversed()), at: bytes.count - 30)
        case .replaced:
            try Data(bytes.reversed()).write(to: URL(filePath: path + ".new"))
            #expect(rename(path + ".new", path) == 0)
        }
    }

    @Test(arguments: Input.allCases, Change.allCases)
    func `An input that changes while it is read is exit 5, and nothing is sent`(
        input: Input, change: Change
    ) throws {
        let campaign = try Campaign(rows: 9000)
        let library = try Shim.compile("stop-at-read", in: campaign.directory)
        let (file, options) = try write(input, campaign)
        let server = try LocalAPNs()
        let arguments = campaign.arguments(to: server.endpoint, options + ["--resume-or-begin"])
        let process = try Broadside.start(
            arguments, in: campaign.directory,
            environment: ["LD_PRELOAD": library, "STOP_FILE": try Self.resolved(file)])
        try process.wait { try Self.isStopped(process.identifier) }
        let whole = try Data(contentsOf: URL(filePath: file))
        try Self.change(file, change)
        process.send(signal: SIGCONT)
        let ended = try process.wait(limit: 120)
        #expect(ended.exitCode == 5, "\(ended.errors)")
        let last = try #require(ended.errorLines.last)
        #expect(last.contains("changed while it was read") && last.contains(file), "\(last)")

        // As it was, it is sent, each row once.
        try whole.write(to: URL(filePath: file))
        let sent = try Broadside.run(arguments, in: campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let taken = try server.finish().map { $0[4] }
        let expected = input == .optOuts ? 9000 - 3000 : 9000
        #expect(taken.count == expected && Set(taken).count == expected)
    }

    @Test(arguments: ["tokens dedupe", "prune"])
    func `A command that only reads a list advises to repeat it`(words: String) throws {
        let campaign = try Campaign(rows: 9000)
        if words == "prune" {
            let server = try LocalAPNs()
            let sent = try campaign.send(to: server.endpoint)
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let library = try Shim.compile("stop-at-read", in: campaign.directory)
        let arguments =
            words.split(separator: " ").map(String.init) + [
                "--tokens", campaign.list, "--output", "\(campaign.directory.path)/out.txt",
            ] + (words == "prune" ? ["--ledger", campaign.ledger] : [])
        let process = try Broadside.start(
            arguments, in: campaign.directory,
            environment: ["LD_PRELOAD": library, "STOP_FILE": try Self.resolved(campaign.list)])
        try process.wait { try Self.isStopped(process.identifier) }
        try Self.change(campaign.list, .longer)
        process.send(signal: SIGCONT)
        let ended = try process.wait(limit: 120)
        #expect(ended.exitCode == 5, "\(ended.errors)")
        #expect(ended.errors.hasSuffix("run the command again when no program writes to it\n"))
        let again = try Broadside.run(arguments, in: campaign.directory)
        #expect(again.exitCode == 0, "\(again.errors)")
    }

    /// The options of a run with that input, and the file.
    private func write(_ input: Input, _ campaign: Campaign) throws -> (String, [String]) {
        let path = campaign.directory.path
        switch input {
        case .payload: return (campaign.payloadFile, [])
        case .payloadBy:
            let tokens = (0..<9000).map { "en,\(campaign.tokens.token($0))\n" }
            try campaign.directory.write("language,token\n" + tokens.joined(), to: "list.csv")
            try FileManager.default.createDirectory(
                atPath: "\(path)/texts", withIntermediateDirectories: false)
            let file = try campaign.directory.write(Campaign.payload, to: "texts/en.json")
            return (
                file, ["--tokens", "\(path)/list.csv", "--payload-by", "language=\(path)/texts"]
            )
        case .optOuts:
            let out = (0..<3000).map { campaign.tokens.token($0 * 3) + "\n" }
            // Longer than what is read at once.
            let others = DeviceTokens(seed: campaign.tokens.seed &+ 1, count: 6000).list()
            let file = try campaign.directory.write(
                Array(out.joined().utf8) + others, to: "out.txt")
            return (file, ["--suppress", file])
        case .searchedList: return (campaign.list, ["--duplicates", "skip"])
        }
    }

    /// As the system calls an open file.
    private static func resolved(_ path: String) throws -> String {
        let resolved = try #require(realpath(path, nil))
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func isStopped(_ identifier: pid_t) throws -> Bool {
        let text = try String(contentsOfFile: "/proc/\(identifier)/stat", encoding: .utf8)
        return text.split(separator: ")").last?.hasPrefix(" T") ?? false
    }
}
