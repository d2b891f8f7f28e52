import BroadsideTestSupport
import Foundation
import Testing

/// Files of all kinds whose disk fails, or for which a limit is reached, in every command that reads them:
/// exit code 5, where a scheduler tries again; what the request names wrongly is 2. `Tests/Shims/fail-files.c`.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct FailingFileTests {
    /// A campaign that was sent once, its other files, and a server that takes any row. No call that fails changes them.
    private final class Fixture: Sendable {
        let campaign: Campaign
        let library: String
        nonisolated(unsafe) let server: RecordingServer

        private static let made = Result { try Fixture() }

        static func shared() throws -> Fixture { try made.get() }

        private init() throws {
            campaign = try Campaign(rows: 20)
            let directory = campaign.directory
            library = try Shim.compile("fail-files", in: directory)
            try directory.write(campaign.tokens.list(), to: "opt-outs.txt")
            try directory.write("{topic: \"\(Campaign.topic)\"}", to: "campaign.json5")
            for folder in ["payloads", "nights"] {
                try FileManager.default.createDirectory(
                    atPath: "\(directory.path)/\(folder)", withIntermediateDirectories: false)
            }
            try directory.write(Campaign.payload, to: "payloads/default.json")
            let first = try LocalAPNs()
            defer { withExtendedLifetime(first) {} }
            let sent = try campaign.send(to: first.endpoint)
            guard sent.exitCode == 0 else { throw TestFailure(sent.errors) }
            try FileManager.default.copyItem(
                atPath: campaign.ledger, toPath: "\(directory.path)/nights/one")
            server = try RecordingServer().endingAtExit()
        }
    }

    private let campaign: Campaign
    private let library: String
    private let server: RecordingServer
    private var path: String { campaign.directory.path }

    init() throws {
        let fixture = try Fixture.shared()
        (campaign, library, server) = (fixture.campaign, fixture.library, fixture.server)
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
        .init("ledger verify --ledger %/ledger", "/ledger/epoch", "stat open read"),
        // The claim of the campaign's end.
        .init("ledger verify --ledger %/ledger", ".2", "open read"),
        .init("ledger stats --ledger %/ledger", ".2", "open read"),
        .init("ledger repair --ledger %/ledger --output %/new", "/ledger/epoch", "stat open read"),
        .init("ledger repair --ledger %/ledger --output %/new", ".2", "open read"),
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
            let isOwn = arguments.contains("--ledger") || arguments.contains("--resume")
            arguments = campaign.arguments(
                to: server.endpoint, arguments + (isOwn ? [] : ["--ledger", "\(path)/new"]))
        }
        return try Broadside.run(
            arguments, in: campaign.directory,
            environment: [
                "LD_PRELOAD": library, "FAIL_CALLS": "\(call) \(number) \(one.file)",
            ])
    }

    /// EIO stands for all numbers of a failing machine: `FileFailureTests` have the others. Code of its own reacts to EMFILE
    /// when a segment is opened (`OpenFiles`), and to ESTALE when a ledger's path is checked (`LedgerLocation`).
    private func failures(_ one: Case, _ call: String) -> [Int32] {
        let isSegment = one.file.hasSuffix("/segment-0001-00") && call == "open"
        let isPath = one.file.hasPrefix("/ledger") && ["stat", "open"].contains(call)
        return [EIO] + (isSegment ? [EMFILE] : []) + (isPath ? [ESTALE] : [])
    }

    private func expect(
        _ one: Case, _ code: Int32, calls: [String], numbers: (String) -> [Int32]
    ) throws {
        for call in calls {
            for number in numbers(call) {
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
        try expect(one, 5, calls: one.calls) { failures(one, $0) }
        #expect(try server.answers().isEmpty)
    }

    @Test(arguments: named)
    func `An option's file that is missing or not permitted is exit 2`(one: Case) throws {
        let calls = one.calls.filter { ["open", "mkdir", "opendir"].contains($0) }
        try expect(one, 2, calls: calls) { _ in [ENOENT, EACCES] }
    }

    @Test(arguments: recorded)
    func `A ledger on a failing disk is exit 5, and no other campaign begins`(
        one: Case
    ) throws {
        try expect(one, 5, calls: one.calls) { failures(one, $0) }
        #expect(try campaign.ledger("verify").output.contains("finished"))
        #expect(try server.answers().isEmpty)
    }

    @Test(arguments: [ENOSYS, ENOLCK, EOPNOTSUPP])
    func `A file system without locks is named as the cause`(
        number: Int32
    ) throws {
        let (campaign, server) = (try Campaign(rows: 20), try LocalAPNs())
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
