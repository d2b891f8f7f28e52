import BroadsideTestSupport
import Foundation
import Glibc
import Testing

/// A run writes only into a ledger that nobody else can have laid out for it.
@Suite struct LedgerOwnerTests {
    /// A ledger with rows left, in which somebody could prepare something.
    private func interrupted(_ server: RecordingServer) throws -> Campaign {
        let campaign = try Campaign(rows: 50)
        let first = try campaign.send(to: server.endpoint, ["--limit", "10"])
        #expect(first.exitCode == 0, "\(first.errors)")
        return campaign
    }

    private func retried(_ campaign: Campaign, _ server: RecordingServer) throws -> Finished {
        try campaign.send(to: server.endpoint, ["--resume"])
    }

    @Test(arguments: [0o777, 0o755, 0o2750, 0o701] as [mode_t])
    func `A ledger directory that is open to others is refused`(mode: mode_t) throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        #expect(chmod(campaign.ledger, mode) == 0)
        let refused = try retried(campaign, server)
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("chmod 0700 \(campaign.ledger)"), "\(refused.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        #expect(chmod(campaign.ledger, 0o700) == 0)
        #expect(try retried(campaign, server).exitCode == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `A ledger directory of another user is refused`() throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        #expect(chown(campaign.ledger, 65_534, 65_534) == 0)
        let refused = try retried(campaign, server)
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errors.contains("belongs to user 65534"), "\(refused.errors)")
        // What it says may be read.
        #expect(try campaign.ledger("verify").exitCode == 0)
    }

    @Test(arguments: ["lock", ".manifest.json.new", ".manifest.copy.new", ".telemetry.json.new"])
    func `No file is written through a symbolic link in a ledger`(name: String) throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        let precious = "\(campaign.directory.path)/precious"
        try "precious".write(toFile: precious, atomically: true, encoding: .utf8)
        let link = "\(campaign.ledger)/\(name)"
        unlink(link)
        #expect(symlink(precious, link) == 0)
        let finished = try retried(campaign, server)
        #expect(finished.exitCode == (name == "lock" ? 2 : 0), "\(finished.errors)")
        #expect(try String(contentsOfFile: precious, encoding: .utf8) == "precious")
        if name != "lock" { #expect(try campaign.ledger("verify").exitCode == 0) }
    }

    /// What reads a ledger, and what resumes it.
    private static let readers = [
        ["ledger", "stats"], ["ledger", "export"], ["ledger", "verify"],
        ["ledger", "find", "--token", "00"], ["prune"], ["report"], ["resume"],
    ]

    private func read(
        _ campaign: Campaign, _ reader: [String], _ server: RecordingServer, _ more: [String]
    ) throws -> Finished {
        let output = "\(campaign.directory.path)/output"
        switch reader[0] {
        case "resume": return try campaign.send(to: server.endpoint, more + ["--resume"])
        case "prune":
            return try Broadside.run(
                [
                    "prune", "--ledger", campaign.ledger, "--tokens", campaign.list, "--output",
                    output,
                ],
                in: campaign.directory)
        case "report":
            return try Broadside.run(
                ["report", "--ledger", campaign.ledger, "--output", output], in: campaign.directory)
        default:
            return try Broadside.run(
                reader + ["--ledger", campaign.ledger], in: campaign.directory)
        }
    }

    @Test(arguments: ["manifest.json", "segment-0001-00", "skips"], [false, true])
    func `No file is read through a symbolic link or pipe in a ledger`(
        name: String, isPipe: Bool
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 50)
        let more = ["--suppress", try campaign.directory.write("aabb\n", to: "out.txt")]
        let first = try campaign.send(to: server.endpoint, more + ["--limit", "10"])
        #expect(first.exitCode == 0, "\(first.errors)")
        let file = "\(campaign.ledger)/\(name)"
        let moved = "\(campaign.directory.path)/moved"
        #expect(rename(file, moved) == 0)
        #expect((isPipe ? mkfifo(file, 0o600) : symlink(moved, file)) == 0)
        let what = isPipe ? "is not a regular file" : "is a symbolic link"
        for reader in Self.readers where name != "skips" || reader == ["resume"] {
            let refused = try read(campaign, reader, server, more)
            #expect(refused.exitCode == 2, "\(reader): \(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
            #expect(refused.errors.contains("\(file) \(what)"), "\(refused.errors)")
        }
        #expect(unlink(file) == 0 && rename(moved, file) == 0)
        let resumed = try campaign.send(to: server.endpoint, more + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A copy of standard input is not read through a symbolic link`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 50)
        func send(_ more: [String]) throws -> Finished {
            try Broadside.run(
                campaign.arguments(to: server.endpoint, ["--tokens", "-"] + more),
                in: campaign.directory, input: campaign.list)
        }
        #expect(try send(["--limit", "10"]).exitCode == 0)
        let spool = "\(campaign.ledger)/tokens"
        #expect(unlink(spool) == 0 && symlink(campaign.list, spool) == 0)
        for refused in [try send(["--resume"]), try campaign.ledger("export")] {
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errors.contains("\(spool) is a symbolic link"), "\(refused.errors)")
        }
    }

    @Test(arguments: ["telemetry.json", "manifest.copy"])
    func `An optional file that is a symbolic link counts as missing`(name: String) throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        let file = "\(campaign.ledger)/\(name)"
        let moved = "\(campaign.directory.path)/moved"
        #expect(rename(file, moved) == 0 && symlink(moved, file) == 0)
        let before = try Data(contentsOf: URL(filePath: moved))
        #expect(try read(campaign, ["report"], server, []).exitCode == 0)
        #expect(try retried(campaign, server).exitCode == 0)
        #expect(try Data(contentsOf: URL(filePath: moved)) == before)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    /// Gives a file of the ledger a format of later days, with a checksum that fits.
    private func makeNewer(_ campaign: Campaign, segment: Bool) throws {
        let script = """
            import glob, json, struct, sys, zlib
            ledger = sys.argv[1]
            if sys.argv[2] == 'segment':
                path = ledger + '/segment-0001-00'
                bytes = bytearray(open(path, 'rb').read())
                bytes[8:10] = struct.pack('<H', 9)
                bytes[28:32] = struct.pack('<I', zlib.crc32(bytes[:28]))
                open(path, 'wb').write(bytes)
            else:
                for name in ('manifest.json', 'manifest.copy'):
                    manifest = json.load(open(ledger + '/' + name))
                    manifest['version'] = 99
                    manifest['somethingNew'] = True
                    open(ledger + '/' + name, 'w').write(json.dumps(manifest))
            """
        try Subprocess.run(
            "python3", ["-c", script, campaign.ledger, segment ? "segment" : "manifest"],
            in: campaign.directory)
    }

    @Test(arguments: [false, true])
    func `A ledger of a later format is refused as such and kept`(segment: Bool) throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        try makeNewer(campaign, segment: segment)
        let total = try server.tally(campaign.tokens).total
        let says = segment ? "segment-0001-00" : "manifest.json"
        let repaired = "\(campaign.directory.path)/repaired"
        var found = try Self.readers.map { try read(campaign, $0, server, []) }
        found.append(try campaign.ledger("repair", ["--output", repaired]))
        for (place, refused) in found.enumerated() {
            #expect(refused.exitCode == 2, "\(place): \(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
            #expect(
                refused.errors.contains(
                    "\(says) was written by a newer version of broadside (format "),
                "\(place): \(refused.errors)")
        }
        #expect(access(repaired, F_OK) != 0)
        #expect(try server.tally(campaign.tokens).total == total)
        // Nothing is written over it either.
        let over = try Broadside.run(
            [
                "tokens", "dedupe", "--tokens", campaign.list, "--output",
                "\(campaign.ledger)/manifest.json",
            ], in: campaign.directory)
        #expect(over.exitCode == 2, "\(over.errors)")
    }

    @Test(arguments: ["--summary", "--report", "--metrics"])
    func `No output is written through a symbolic link at its temporary name`(option: String) throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        let folder = campaign.directory.path
        try "precious".write(toFile: "\(folder)/precious", atomically: true, encoding: .utf8)
        // The shell becomes the command, so that its number is known before.
        let finished = try Subprocess(
            "/bin/sh",
            [
                "-c", "ln -s \(folder)/precious \(folder)/out.html.$$.new; exec \"$0\" \"$@\"",
                try Broadside.path(),
            ] + campaign.arguments(to: server.endpoint, [option, "\(folder)/out.html"]),
            in: campaign.directory
        ).wait()
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(
            try String(contentsOfFile: "\(folder)/precious", encoding: .utf8) == "precious")
        #expect(try !String(contentsOfFile: "\(folder)/out.html", encoding: .utf8).isEmpty)
    }
}
