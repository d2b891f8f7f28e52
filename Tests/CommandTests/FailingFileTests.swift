import BroadsideTestSupport
import Foundation
import Testing

/// Files of all kinds whose disk fails, or for which a limit is reached, in every command that reads them:
/// exit code 5, where a scheduler tries again; what the request names wrongly is 2. `Tests/Shims/fail-files.c`.
@Suite(.timeLimit(.minutes(60)))
struct FailingFileTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private let library: String
    private var path: String { campaign.directory.path }

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 20)
        library = try Shim.compile("fail-files", in: campaign.directory)
        let directory = campaign.directory
        try directory.write(campaign.tokens.list(), to: "opt-outs.txt")
        try directory.write("{topic: \"\(Campaign.topic)\"}", to: "campaign.json5")
        try FileManager.default.createDirectory(
            atPath: "\(path)/payloads", withIntermediateDirectories: false)
        try directory.write(Campaign.payload, to: "payloads/default.json")
    }

    /// Something that a command reads.
    struct Case: CustomTestStringConvertible, Sendable {
        /// `%` stands for the campaign's directory, `SEND` for the options of a send.
        let command: String
        /// The end of the file's path.
        let file: String
        let calls: [String]

        init(_ command: String, _ file: String, _ calls: String) {
            self.command = command
            self.file = file
            self.calls = calls.split(separator: " ").map(String.init)
        }

        var testDescription: String { "\(command): \(calls.joined(separator: ", ")) of \(file)" }
    }

    /// Files that the user names.
    private static let named: [Case] = [
        .init("SEND --dry-run", "/tokens.txt", "open fstat read"),
        .init("SEND --ledger %/new", "/tokens.txt", "open fstat read"),
        .init("SEND --dry-run", "/payload.json", "open read"),
        .init("SEND --dry-run", "/AuthKey.key", "open read"),
        .init("SEND --dry-run", "/authority.pem", "open read"),
        .init("SEND --dry-run --suppress %/opt-outs.txt", "/opt-outs.txt", "open fstat read"),
        .init("SEND --dry-run --campaign %/campaign.json5", "/campaign.json5", "open read"),
        .init("SEND --dry-run --payload-by %=%/payloads", "/payloads/default.json", "open read"),
        .init("SEND --ledger %/new --summary %/sum", ".new", "open"),
        .init("SEND --ledger %/new --report %/page", ".new", "open"),
        .init("SEND --ledger %/new", "/new", "mkdir"),
        .init("SEND --ledger %/new --resume-or-begin", "/new", "mkdir"),
        .init("tokens check --tokens %/tokens.txt", "/tokens.txt", "open fstat read"),
        .init(
            "tokens dedupe --tokens %/tokens.txt --output %/out", "/tokens.txt", "open fstat read"),
        .init("tokens dedupe --tokens %/tokens.txt --output %/payloads/out", "/payloads", "open"),
        .init(
            "prune --tokens %/tokens.txt --ledger %/ledger --output %/out", "/tokens.txt",
            "open fstat read"),
        .init("simulate --state %/state", "/state", "mkdir"),
        .init("payload check --payload %/payload.json", "/payload.json", "open read"),
        .init("payload check --payload-by x=%/payloads", "/payloads", "opendir readdir"),
    ]

    /// Files of a ledger.
    private static let recorded: [Case] = [
        .init("SEND --resume --retry failed", "/ledger/manifest.json", "stat open read"),
        .init("SEND --resume --retry failed", "/ledger/epoch", "stat open read"),
        .init("SEND --resume", "/ledger", "opendir readdir open"),
        .init("SEND --resume", "/ledger/lock", "open flock fstat"),
        .init("SEND --resume", "/ledger/segment-0001-00", "open fstat read"),
        .init("SEND --resume --dry-run", "/ledger/manifest.json", "stat open read"),
        .init("ledger stats --ledger %/ledger", "/ledger/manifest.json", "stat open read"),
        .init("ledger stats --ledger %/ledger", "/ledger", "stat opendir readdir"),
        .init("ledger stats --ledger %/ledger", "/segment-0001-00", "open fstat read"),
        .init("ledger export --ledger %/ledger", "/ledger/manifest.json", "stat open read"),
        .init("ledger export --ledger %/ledger", "/segment-0001-00", "open fstat read"),
        .init("ledger export --ledger %/ledger", "/tokens.txt", "stat open read"),
        .init("ledger verify --ledger %/ledger", "/ledger/manifest.json", "stat open read"),
        .init("ledger find --ledger %/ledger --token 00", "/ledger/manifest.json", "stat read"),
        .init("ledger find --ledger %/ledger --token 00", "/tokens.txt", "stat open read"),
        .init("ledger repair --ledger %/ledger --output %/new", "/ledger/lock", "open flock"),
        .init("ledger merge --output %/new %/ledger", "/ledger/manifest.json", "stat open read"),
        .init(
            "prune --tokens %/tokens.txt --ledger %/ledger --output %/out",
            "/ledger/manifest.json", "stat open read"),
        .init(
            "prune --tokens %/tokens.txt --ledger %/ledger --output %/out", "/segment-0001-00",
            "open fstat read"),
        .init("report --ledger %/ledger --output %/out", "/ledger/manifest.json", "stat read"),
        .init("report --all %/nights --output %/out", "/nights/one", "stat opendir readdir"),
        .init("report --all %/nights --output %/out", "/nights/one/manifest.json", "stat read"),
        .init("status %/nights", "/nights/one", "stat opendir readdir"),
        .init("status %/ledger", "/ledger/manifest.json", "stat open read"),
    ]

    private func run(_ one: Case, _ call: String, _ number: Int32) throws -> Finished {
        var arguments: [String] = []
        for word in one.command.split(separator: " ") {
            guard word != "SEND" else { continue }
            arguments.append(
                word.hasPrefix("%=")
                    ? "token=\(path)\(word.dropFirst(3))" : String(word).replacing("%", with: path))
        }
        if one.command.hasPrefix("SEND") {
            arguments = campaign.arguments(to: server.endpoint, arguments)
        }
        return try Broadside.run(
            arguments, in: campaign.directory,
            environment: [
                "LD_PRELOAD": library, "FAIL_CALLS": "\(call) \(number) \(one.file)",
            ])
    }

    private func expect(_ one: Case, _ code: Int32, numbers: [Int32], calls: [String]? = nil) throws
    {
        for call in calls ?? one.calls {
            for number in numbers {
                let done = try run(one, call, number)
                #expect(done.exitCode == code, "\(one), \(call) \(number): \(done.errors)")
                #expect(
                    done.errors.contains(String(cString: strerror(number))),
                    "\(one), \(call) \(number): \(done.errors)")
                #expect(
                    !FileManager.default.fileExists(atPath: "\(path)/new"),
                    "\(one), \(call) \(number)")
            }
        }
    }

    @Test(arguments: named)
    func `An option's file on a failing disk is exit 5 before anything is sent`(
        one: Case
    ) throws {
        try prepare(one)
        try expect(one, 5, numbers: [EIO, EMFILE, ESTALE, ENFILE])
        #expect(try server.finish().count == (one.command.contains("%/ledger") ? 20 : 0))
    }

    @Test(arguments: named)
    func `An option's file that is missing or not permitted is exit 2`(one: Case) throws {
        try prepare(one)
        let calls = one.calls.filter { ["open", "mkdir", "opendir"].contains($0) }
        try expect(one, 2, numbers: [ENOENT, ENOTDIR, EACCES], calls: calls)
    }

    @Test(arguments: recorded)
    func `A ledger on a failing disk is exit 5, and no other campaign begins`(
        one: Case
    ) throws {
        try prepare(one)
        try expect(one, 5, numbers: [EIO, EMFILE, ESTALE])
        #expect(try campaign.ledger("verify").output.contains("finished"))
        #expect(try server.finish().count == 20)
    }

    /// Sends the campaign where its ledger is read.
    private func prepare(_ one: Case) throws {
        guard
            Self.recorded.contains(where: { $0.command == one.command })
                || one.command.contains("%/ledger")
        else { return }
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        guard one.command.contains("%/nights") else { return }
        try FileManager.default.createDirectory(
            atPath: "\(path)/nights", withIntermediateDirectories: false)
        try FileManager.default.copyItem(atPath: campaign.ledger, toPath: "\(path)/nights/one")
    }

    @Test(arguments: [ENOSYS, ENOLCK, EOPNOTSUPP])
    func `A file system without locks is named as the cause`(
        number: Int32
    ) throws {
        for more in [[], ["--resume-or-begin"]] {
            let done = try Broadside.run(
                campaign.arguments(to: server.endpoint, more), in: campaign.directory,
                environment: [
                    "LD_PRELOAD": library, "FAIL_CALLS": "flock \(number) /ledger/lock",
                ])
            #expect(done.exitCode == 5)
            #expect(done.errors.contains("does not lock files"), "\(done.errors)")
            #expect(done.errors.contains("name a ledger on another file system"))
            #expect(!done.errors.contains("in use"))
            // Nothing is left that the same request would find in its way.
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let done = try Broadside.run(
            campaign.arguments(to: server.endpoint, ["--resume"]), in: campaign.directory,
            environment: ["LD_PRELOAD": library, "FAIL_CALLS": "flock \(number) /ledger/lock"])
        #expect(done.exitCode == 5 && done.errors.contains("does not lock files"))
        #expect(try server.finish().count == 20)
    }
}
