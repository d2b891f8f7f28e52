import BroadsideTestSupport
import Foundation
import Testing

/// What holds device tokens is for its owner alone, and what people see holds nothing that moves their
/// terminal's cursor.
@Suite(.timeLimit(.minutes(60)))
struct PrivateOutputTests {
    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `An export, a journal and deliveries are readable by their owner alone`() throws {
        let campaign = try Campaign(rows: 20)
        let folder = campaign.directory.path
        let (journal, deliveries) = ("\(folder)/journal.csv", "\(folder)/deliveries.csv")
        for round in 0..<2 {
            if round == 1 {
                for file in [journal, deliveries] { #expect(chmod(file, 0o644) == 0) }
            }
            let simulation = try Simulation([
                "--journal", journal, "--deliveries", deliveries,
            ])
            let options = try simulation.options([
                "auth-key", "key-id", "team-id", "ca-file", "topic",
            ])
            let sent = try Broadside.run(
                campaign.arguments(
                    to: simulation.endpoint,
                    options + ["--ledger", "\(campaign.ledger)\(round)"],
                    without: ["auth-key", "key-id", "team-id", "ca-file", "topic"]),
                in: campaign.directory)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            try simulation.stop()
            #expect(try mode(journal) == 0o600)
            #expect(try mode(deliveries) == 0o600)
        }
        for name in ["rows.csv", "rows.csv.gz", "rows.jsonl.zst"] {
            let output = "\(folder)/\(name)"
            for _ in 0..<2 {
                let exported = try Broadside.run(
                    ["ledger", "export", "--ledger", campaign.ledger + "0", "--output", output],
                    in: campaign.directory)
                #expect(exported.exitCode == 0, "\(exported.errors)")
                #expect(try mode(output) == 0o600, "\(name)")
                #expect(chmod(output, 0o644) == 0)
            }
        }
        // A list has its mode, and what is made of a pipe its owner's.
        let pruned = "\(folder)/pruned.txt"
        #expect(chmod(campaign.list, 0o640) == 0)
        func prune() throws {
            let kept = try Broadside.run(
                [
                    "prune", "--ledger", campaign.ledger + "0", "--tokens", campaign.list,
                    "--output", pruned,
                ], in: campaign.directory)
            #expect(kept.exitCode == 0, "\(kept.errors)")
        }
        try prune()
        #expect(try mode(pruned) == 0o640)
        // A file that others may not read stays so.
        #expect(chmod(pruned, 0o600) == 0)
        try prune()
        #expect(try mode(pruned) == 0o600)
    }

    /// Runs a command at a pseudo terminal and prints what it wrote there.
    private static let terminal = """
        import os, pty, sys
        def read(descriptor):
            return os.read(descriptor, 65536)
        pty.spawn(sys.argv[1:], read)
        """

    @Test func `Control characters in a server's reasons are escaped in each command`() throws {
        let reason = "Bad\u{9b}2J\u{202e}x\u{2066}y\u{7f}z\u{1b}[1m\u{200f}"
        let server = try RecordingServer(
            "reason", ["--status", "400", "--reason", reason])
        let campaign = try Campaign(rows: 3)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--summary", "-", "--progress", "auto", "--abort-after", "100", "--max-bad-tokens",
                "100",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let ledger = ["--ledger", campaign.ledger]
        let row = ["--token", campaign.tokens.token(1)]
        var outputs = [sent.output, sent.errors]
        for arguments in [
            ["stats"], ["stats", "--json"], ["find"] + row, ["find", "--json"] + row,
            ["export", "--format", "jsonl"],
        ] {
            let finished = try Broadside.run(
                ["ledger"] + arguments + ledger, in: campaign.directory)
            #expect(finished.exitCode == 0, "\(finished.errors)")
            outputs.append(finished.output)
            guard arguments.contains("--json") else { continue }
            let data = try JSONSerialization.jsonObject(with: Data(finished.output.utf8))
            #expect("\(data)".contains("Bad"))
        }
        for arguments in [["export"], ["export", "--format", "jsonl"], ["stats"]] {
            let shown = try Subprocess(
                "python3",
                ["-c", Self.terminal, Broadside.path(), "ledger"] + arguments + ledger,
                in: campaign.directory
            ).wait(limit: 60)
            #expect(shown.output.contains("Bad"), "\(shown.output)")
            outputs.append(shown.output)
        }
        for output in outputs {
            #expect(output.contains("Bad"), "\(output)")
            for scalar in output.unicodeScalars where scalar != "\n" && scalar != "\r" {
                let isControl =
                    scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value)
                    || [0x200f, 0x202e, 0x2066].contains(scalar.value)
                #expect(!isControl, "\(output)")
            }
        }
        // Elsewhere the file is as the server said it.
        let exported = try Broadside.run(
            ["ledger", "export"] + ledger, in: campaign.directory)
        #expect(exported.output.contains("\u{202e}"))
    }

    /// Whether the file system of temporary directories has files without names.
    private static let hasNamelessFiles: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        let file = open(directory.path, O_WRONLY | O_DIRECTORY | 0o20_000_000 | O_CLOEXEC, 0o600)
        if file >= 0 { close(file) }
        return file >= 0
    }()

    @Test(
        .enabled(if: hasNamelessFiles, "the file system has no files without names"),
        arguments: [SIGTERM, SIGKILL])
    func `A command that is ended while it writes a list leaves nothing of it`(signal: Int32) throws
    {
        let campaign = try Campaign(rows: 1)
        let server = try LocalAPNs()
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let list = try campaign.directory.write(
            DeviceTokens(count: 100_000).list(), to: "large.txt")
        // A list that never ends.
        let endless = "\(campaign.directory.path)/endless"
        #expect(mkfifo(endless, 0o600) == 0)
        let writer = try Subprocess(
            "sh", ["-c", "exec > '\(endless)'; cat '\(list)'; exec sleep 200"],
            in: campaign.directory)
        defer { writer.stop() }
        let folder = "\(campaign.directory.path)/outputs"
        let files = FileManager.default
        try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let pruning = try Broadside.start(
            [
                "prune", "--ledger", campaign.ledger, "--tokens", "-", "--output",
                "\(folder)/clean.txt",
            ], in: campaign.directory, input: endless)
        let open = "/proc/\(pruning.identifier)/fd"
        try pruning.wait {
            let numbers = (try? files.contentsOfDirectory(atPath: open)) ?? []
            return numbers.contains { number in
                let path = "\(open)/\(number)"
                let file = try? files.destinationOfSymbolicLink(atPath: path)
                var information = stat()
                return file?.contains("/outputs/") == true && stat(path, &information) == 0
                    && information.st_size > 0
            }
        }
        pruning.send(signal: signal)
        #expect(try pruning.wait().exitCode == -signal)
        #expect(try files.contentsOfDirectory(atPath: folder) == [])
    }
}
