import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

/// No command writes over what it reads, over a ledger, or in the place of a link; known before
/// anything is sent.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct OutputRuleTests {
    /// An output of a command, and the rest of a call that would be good.
    struct Output: Sendable, CustomTestStringConvertible {
        var option: String
        var command: [String]

        var testDescription: String { "\(command.prefix(2).joined(separator: " ")) --\(option)" }
    }

    static let send = [
        "send", "--tokens", "@tokens.txt", "--suppress", "@suppress.txt", "--campaign",
        "@campaign.json5", "--ledger", "@new",
    ]
    static let probe = [
        "probe", "--tokens", "@tokens.txt", "--campaign", "@campaign.json5", "--ledger", "@new",
        "--progress", "none",
    ]

    static let outputs: [Output] =
        ["summary", "report", "metrics", "trace-frames"]
        .map { .init(option: $0, command: send) }
        + [
            .init(option: "then-prune", command: probe), .init(option: "summary", command: probe),
            .init(
                option: "output",
                command: ["prune", "--ledger", "@ledger", "--tokens", "@tokens.txt"]),
            .init(
                option: "removed",
                command: [
                    "prune", "--ledger", "@ledger", "--tokens", "@tokens.txt", "--output", "@out",
                ]),
            .init(option: "output", command: ["tokens", "dedupe", "--tokens", "@tokens.txt"]),
            .init(option: "output", command: ["ledger", "export", "--ledger", "@ledger"]),
            .init(
                option: "output",
                command: ["ledger", "export", "--ledger", "@merged", "--tokens", "@tokens.txt"]),
            .init(
                option: "output", command: ["ledger", "export", "--follow", "--ledger", "@ledger"]),
            .init(
                option: "cursor", command: ["ledger", "export", "--follow", "--ledger", "@ledger"]),
            .init(option: "output", command: ["report", "--ledger", "@ledger"]),
            .init(option: "output", command: ["report", "--all", "@ledger", "@merged"]),
            .init(option: "output", command: ["ledger", "merge", "@part1", "@part2"]),
        ]

    /// What must stay as it is, whatever command is told to write there.
    static let everywhere = [
        "ledger/manifest.json", "ledger/lock", "ledger/@segment", "ledger/new-name",
        "ledger/../ledger/./manifest.json", "merged/shard-0001/manifest.json",
        "merged/shard-0001/@segment", "other/manifest.json", "damaged/@segment",
        "damaged/new-name", "link", "dangling", "link-to-folder/manifest.json",
        "evening/nights", ".broadside-0123456789abcdef.1",
    ]

    @Test(arguments: outputs)
    func `No output option writes to a protected file under any name`(_ output: Output) throws {
        let fixture = try OutputFixture.shared()
        let arguments = output.command.map(fixture.expand)
        var targets = Self.everywhere.map { "\(fixture.path)/\(fixture.segment($0))" }
        // What the command itself reads, under three names.
        var read = zip(arguments, arguments.dropFirst())
            .filter { name, _ in
                name.hasPrefix("--") && !["--output", "--ledger", "--progress"].contains(name)
            }.map(\.1)
        if arguments.contains("--campaign") {
            read += ["payload.json", "key.p8", "texts/pt.json", "texts/new.json"].map {
                "\(fixture.path)/\($0)"
            }
        }
        if arguments.contains("--ledger"), output.command[0] != "send" {
            read.append("\(fixture.path)/tokens.txt")
        }
        for path in Set(read) {
            targets.append(path)
            targets.append(
                path.replacingOccurrences(of: "\(fixture.path)/", with: "\(fixture.path)/./"))
            let hard = "\(fixture.path)/hard-\((path as NSString).lastPathComponent)"
            if FileManager.default.fileExists(atPath: hard) { targets.append(hard) }
        }
        for target in targets {
            try fixture.expectRefusal(
                arguments + ["--\(output.option)", target], option: output.option)
        }
    }

    @Test func `An output at the path of a ledger to be made is refused`() throws {
        let fixture = try OutputFixture.shared()
        for target in ["new", "./new", "new/"] {
            try fixture.expectRefusal(
                Self.send.map(fixture.expand) + ["--summary", "\(fixture.path)/\(target)"],
                option: "summary")
        }
    }

    @Test func `A manifest.json of another program does not protect its directory`() throws {
        let fixture = try OutputFixture.shared()
        let directory = try TemporaryDirectory()
        try directory.write(#"{"name":"A web app","start_url":"/"}"#, to: "manifest.json")
        let finished = try Broadside.run(
            [
                "report", "--ledger", "\(fixture.path)/ledger", "--output",
                "\(directory.path)/tonight.html",
            ], in: directory)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(FileManager.default.fileExists(atPath: "\(directory.path)/tonight.html"))
    }

    @Test func `An output through a link to a pipe is written`() throws {
        let fixture = try OutputFixture.shared()
        let finished = try Subprocess.run(
            "sh",
            [
                "-c",
                "'\(try Broadside.path())' ledger export --ledger '\(fixture.path)/ledger' "
                    + "--output /dev/stdout | cat",
            ], in: fixture.scratch)
        #expect(finished.output.hasPrefix("line,token,state"), "\(finished.errors)")
        var information = stat()
        #expect(lstat("/dev/stdout", &information) == 0)
        #expect(information.st_mode & S_IFMT == S_IFLNK)
    }

    @Test(arguments: [
        ("-", "name a file"), ("@texts", "is not a regular file"),
        ("@nowhere/clean.txt", "No such file"), ("@tokens.txt", "--tokens reads"),
    ])
    func `A probe whose pruned list cannot be written is refused before it sends`(
        target: String, says: String
    ) throws {
        let fixture = try OutputFixture.shared()
        let server = try LocalAPNs()
        let finished = try Broadside.run(
            [
                "probe", "--tokens", "\(fixture.path)/tokens.txt", "--campaign",
                "\(fixture.path)/campaign.json5", "--progress", "none", "--endpoint",
                server.endpoint,
                "--ledger",
                "\(fixture.path)/probed", "--then-prune", fixture.expand(target),
            ], in: fixture.scratch)
        #expect(finished.exitCode == 2, "\(finished.errors)")
        #expect(finished.errorLines.count == 1 && finished.errors.contains("--then-prune"))
        #expect(finished.errors.contains(says), "\(finished.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(fixture.path)/probed"))
        #expect(try server.finish().isEmpty)
    }

    @Test
    func `A probe with too many dead tokens names the prune command that writes the list`() throws {
        let server = try LocalAPNs(["--unregistered", "0.9"])
        let campaign = try Campaign(rows: 1_000)
        let output = "\(campaign.directory.path)/clean list.txt"
        var arguments = campaign.arguments(
            to: server.endpoint, ["--then-prune", output], without: ["payload"])
        arguments[0] = "probe"
        let probed = try Broadside.run(arguments, in: campaign.directory)
        // 2 would say that nothing was sent.
        #expect(probed.exitCode == 1, "\(probed.errors)")
        #expect(probed.errorLines.count == 1 && !FileManager.default.fileExists(atPath: output))
        let line = probed.errorLines.first ?? ""
        let call = try #require(line.firstMatch(of: /broadside (prune .*) writes it all the same/))
        let pruned = try Subprocess.run(
            "sh", ["-c", "'\(try Broadside.path())' \(call.1)"], in: campaign.directory)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        #expect(FileManager.default.fileExists(atPath: output))
    }
}

/// Files of all kinds that must not be written over, and their content.
final class OutputFixture: Sendable {
    private let directory: TemporaryDirectory
    /// Where outputs of processes go.
    let scratch: TemporaryDirectory
    nonisolated(unsafe) private let server: RecordingServer
    /// What `content` returned last.
    private let lastContent = Mutex<[String: Data]?>(nil)

    var path: String { directory.path }

    private static let made = Result { try OutputFixture() }

    static func shared() throws -> OutputFixture { try made.get() }

    private init() throws {
        let campaign = try Campaign(rows: 5)
        directory = campaign.directory
        scratch = try TemporaryDirectory()
        server = try RecordingServer("plain", ["--answer", "silence"]).endingAtExit()
        let path = directory.path
        let manager = FileManager.default
        let apns = try LocalAPNs()
        for more in [
            ["--ledger", "part1", "--shard", "1/2"], ["--ledger", "part2", "--shard", "2/2"], [],
        ] {
            let sent = try campaign.send(
                to: apns.endpoint, more.map { $0.hasPrefix("part") ? "\(path)/\($0)" : $0 })
            guard sent.exitCode == 0 else { throw TestFailure(sent.errors) }
        }
        let merged = try Broadside.run(
            ["ledger", "merge", "--output", "\(path)/merged", "\(path)/part1", "\(path)/part2"],
            in: directory)
        guard merged.exitCode == 0 else { throw TestFailure(merged.errors) }
        try manager.copyItem(atPath: "\(path)/ledger", toPath: "\(path)/other")
        try manager.copyItem(atPath: "\(path)/ledger", toPath: "\(path)/damaged")
        try manager.removeItem(atPath: "\(path)/damaged/manifest.json")
        try manager.removeItem(atPath: "\(path)/damaged/lock")
        try manager.copyItem(atPath: campaign.authority.authKey, toPath: "\(path)/key.p8")
        try manager.createDirectory(atPath: "\(path)/texts", withIntermediateDirectories: false)
        try directory.write(Campaign.payload, to: "texts/pt.json")
        try directory.write("aabb\n", to: "suppress.txt")
        try directory.write("precious\n", to: "precious")
        try manager.createDirectory(atPath: "\(path)/evening", withIntermediateDirectories: false)
        try directory.write("broadside nights 1\n", to: "evening/nights")
        try directory.write(
            """
            {payload: 'payload.json', 'payload-by': 'token=texts', topic: '\(Campaign.topic)',
             'auth-key': 'key.p8', 'key-id': '\(Campaign.keyID)', 'team-id': '\(Campaign.teamID)',
             endpoint: '127.0.0.1:\(server.port)', 'ca-file': '\(campaign.authority.caFile)'}
            """, to: "campaign.json5")
        for (link, target) in [
            ("link", "precious"), ("dangling", "nowhere"), ("link-to-folder", "ledger"),
        ] {
            try manager.createSymbolicLink(
                atPath: "\(path)/\(link)", withDestinationPath: target)
        }
        for name in ["tokens.txt", "payload.json", "suppress.txt", "campaign.json5", "pt.json"] {
            let file = name == "pt.json" ? "texts/pt.json" : name
            try manager.linkItem(atPath: "\(path)/\(file)", toPath: "\(path)/hard-\(name)")
        }
    }

    func expand(_ argument: String) -> String {
        argument.hasPrefix("@") ? "\(path)/\(argument.dropFirst())" : argument
    }

    /// Puts the name of a ledger's first segment in the place of `@segment`.
    func segment(_ name: String) -> String {
        guard name.hasSuffix("@segment") else { return name }
        let folder = name.dropLast("@segment".count)
        let names =
            (try? FileManager.default.contentsOfDirectory(atPath: "\(path)/\(folder)")) ?? []
        return folder + (names.sorted().first { $0.hasPrefix("segment") } ?? "no segment")
    }

    func expectRefusal(_ arguments: [String], option: String) throws {
        let before = try lastContent.withLock { $0 } ?? content()
        let finished = try Broadside.run(arguments, in: scratch, limit: 60)
        #expect(finished.exitCode == 2, "\(arguments): \(finished.errors)")
        #expect(finished.errorLines.count == 1, "\(arguments): \(finished.errors)")
        // The option that was given is the one that is named.
        #expect(
            finished.errorLines.first?.contains("--\(option)") == true,
            "\(arguments): \(finished.errors)")
        let after = try content()
        #expect(after == before, "\(arguments)")
        lastContent.withLock { $0 = after }
        #expect(try server.events().isEmpty, "\(arguments)")
    }

    /// Every file's and link's content.
    private func content() throws -> [String: Data] {
        let manager = FileManager.default
        var content: [String: Data] = [:]
        for name in try manager.subpathsOfDirectory(atPath: path) {
            let file = "\(path)/\(name)"
            if let target = try? manager.destinationOfSymbolicLink(atPath: file) {
                content[name] = Data("-> \(target)".utf8)
            } else {
                content[name] = manager.contents(atPath: file) ?? Data()
            }
        }
        return content
    }
}
