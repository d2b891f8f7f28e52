import BroadsideTestSupport
import Foundation
import Testing

/// Limits of the system are raised where that is allowed, and named where it isn't.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ResourceLimitTests {
    /// Runs a send under a shell that sets limits first. Locked memory is counted only where
    /// CAP_IPC_LOCK is missing, which root can do without.
    private func send(
        _ limits: String, isPrivileged: Bool = true, _ campaign: Campaign, to endpoint: String,
        _ more: [String]
    ) throws -> Finished {
        let drop = !isPrivileged && geteuid() == 0
        let command = (drop ? "setpriv --bounding-set -ipc_lock " : "") + "\"$0\" \"$@\""
        return try Subprocess(
            "bash",
            ["-c", "\(limits) && exec \(command)", Broadside.path()]
                + campaign.arguments(to: endpoint, more), in: campaign.directory
        ).wait(limit: 60)
    }

    @Test
    func `Too few file descriptors for the connections are exit 2 before anything begins`() throws {
        let campaign = try Campaign(rows: 10)
        let finished = try send(
            "ulimit -n 256", campaign, to: "127.0.0.1:1", ["--connections", "1000"])
        #expect(finished.exitCode == 2)
        #expect(finished.errorLines.count == 1)
        #expect(finished.errors.contains("--connections 1000 needs 1036 open files"))
        #expect(finished.errors.contains("only 256"))
        #expect(finished.errors.contains("ulimit -n 1036"))
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }

    @Test func `Clients of the metrics and of the control socket count as open files`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 10)
        let outlets = [
            "--metrics", "127.0.0.1:0", "--control", "\(campaign.directory.path)/control",
        ]
        let refused = try send("ulimit -n 82", campaign, to: server.endpoint, outlets)
        #expect(refused.exitCode == 1, "\(refused.errors)")
        #expect(refused.errors.contains("broadside: a run needs 83 open files"))
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let sent = try send("ulimit -n 83", campaign, to: server.endpoint, outlets)
        #expect(sent.exitCode == 0, "\(sent.errors)")
    }

    @Test(arguments: [300, 639, 640])
    func `A limit on memory is exit 1 before anything begins, or does not matter`(
        mebibytes: Int
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 10)
        let ended = try send("ulimit -v \(mebibytes << 10)", campaign, to: server.endpoint, [])
        guard mebibytes < 640 else {
            #expect(ended.exitCode == 0, "\(ended.errors)")
            return
        }
        #expect(ended.exitCode == 1 && ended.errorLines.count == 1, "\(ended.errors)")
        let says = "needs 640 MiB of address space, but only \(mebibytes) MiB are allowed here"
        #expect(ended.errors.contains(says), "\(ended.errors)")
        #expect(ended.errors.contains("ulimit -v 655360"), "\(ended.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }

    @Test func `A simulator without free files says so once, and accepts connections later`() throws
    {
        let campaign = try Campaign(rows: 10)
        let directory = campaign.directory
        let simulator = try Subprocess(
            "bash",
            [
                "-c", "ulimit -n 40 && exec \"$0\" \"$@\"", Broadside.path(), "simulate",
                "--listen",
                "127.0.0.1:0", "--state", "\(directory.path)/state",
            ], in: directory)
        func said(_ path: String) throws -> String {
            try String(contentsOfFile: path, encoding: .utf8)
        }
        try simulator.wait { try said(simulator.outputPath).contains("--ledger LEDGER\n") }
        let lines = try said(simulator.outputPath).split(separator: "\n")
        let port = try #require(lines[0].split(separator: ":").last)
        let script = """
            import socket, sys, time
            clients = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(60)]
            time.sleep(200)
            """
        let clients = try Subprocess("python3", ["-c", script, String(port)], in: directory)
        defer { clients.stop() }
        let warning = "no more files can be opened, so new connections wait"
        try simulator.wait { try said(simulator.errorsPath).contains(warning) }
        // Several more attempts fail.
        usleep(500_000)
        clients.stop()
        let send = lines[1].split(separator: " ").map(String.init)
        let end = try #require(send.firstIndex(of: "--tokens"))
        let sent = try Broadside.run(
            send[1..<end] + [
                "--tokens", campaign.list, "--payload", campaign.payloadFile, "--ledger",
                campaign.ledger,
            ], in: directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        simulator.send(signal: SIGTERM)
        let ended = try simulator.wait()
        #expect(ended.exitCode == 0, "\(ended.errors)")
        #expect(ended.errors.ranges(of: warning).count == 1, "\(ended.errors)")
    }

    @Test func `A file size limit is exit 5, and no partial file is left`() throws {
        let server = try Nghttpd(isVerbose: false)
        let campaign = try Campaign(rows: 3_000)
        func run(_ arguments: [String], input: String? = nil) throws -> Finished {
            try Subprocess(
                "bash", ["-c", "ulimit -f 40 && exec \"$0\" \"$@\"", Broadside.path()] + arguments,
                in: campaign.directory, input: input
            ).wait(limit: 60)
        }
        func expectRefused(_ finished: Finished, _ what: String) throws {
            #expect(finished.exitCode == 5, "\(what): \(finished.exitCode) \(finished.errors)")
            #expect(finished.errorLines.count == 1, "\(what): \(finished.errors)")
            #expect(finished.errors.contains("File too large"), "\(what): \(finished.errors)")
        }
        try expectRefused(
            run(
                campaign.arguments(to: server.endpoint, ["--tokens", "-"]), input: campaign.list),
            "spool")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let sent = try campaign.send(to: server.endpoint)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let before = try Set(campaign.directory.names(in: campaign.directory.path))
        let output = campaign.directory.path + "/output"
        for call in [
            ["tokens", "dedupe", "--tokens", campaign.list],
            ["prune", "--ledger", campaign.ledger, "--tokens", campaign.list],
            ["ledger", "export", "--ledger", campaign.ledger],
            ["ledger", "repair", "--ledger", campaign.ledger],
        ] {
            try expectRefused(run(call + ["--output", output]), call.joined(separator: " "))
            let names = try campaign.directory.names(in: campaign.directory.path)
            let new = names.filter {
                !before.contains($0) && !$0.hasSuffix("-stdout") && !$0.hasSuffix("-stderr")
            }
            #expect(new.isEmpty, "\(call): \(new)")
        }
    }

    @Test func `A file size limit below a claim's size is named as the cause`() throws {
        let campaign = try Campaign(rows: 3)
        let refused = try Subprocess(
            "bash",
            ["-c", "ulimit -f 8 && exec \"$0\" \"$@\"", Broadside.path()]
                + campaign.arguments(to: "127.0.0.1:\(Ports.free())"), in: campaign.directory
        ).wait(limit: 60)
        #expect(refused.exitCode == 5, "\(refused.errors)")
        #expect(
            refused.errors.contains("File too large: raise this process's limit on the size"),
            "\(refused.errors)")
    }

    /// Whether this user may mount file systems that no other process sees.
    private static let canMount =
        (try? Subprocess.run(
            "unshare", ["--mount", "mount", "-t", "tmpfs", "none", "/proc"],
            in: TemporaryDirectory())) != nil

    @Test(
        .enabled(if: canMount, "mounting is not allowed here"),
        arguments: [
            (
                "mount -t tmpfs none /proc",
                "read: /proc/self/maps: No such file or directory: mount /proc"
            ),
            (
                "touch \"$1\"/empty && mount --bind \"$1\"/empty /proc/$$/maps",
                "in this process's memory, although /proc/self/maps can be read: start"
            ),
        ])
    func `If the arguments can't be found, the message says whether /proc can be read`(
        mount: String, message: String
    ) throws {
        let directory = try TemporaryDirectory()
        let refused = try Subprocess(
            "unshare",
            [
                "--mount", "bash", "-c", "\(mount) && exec \"$0\" --version", Broadside.path(),
                directory.path,
            ], in: directory
        ).wait(limit: 60)
        #expect(refused.exitCode == 1 && refused.errors.contains(message), "\(refused.errors)")
    }

    /// Runs a command with a seccomp filter that refuses one system call with EPERM.
    private static let refusing = """
        import ctypes, os, struct, sys
        def code(*fields): return struct.pack("HBBI", *fields)
        program = b"".join([
            code(0x20, 0, 0, 0), code(0x15, 0, 1, int(sys.argv[1])), code(0x06, 0, 0, 0x50001),
            code(0x06, 0, 0, 0x7fff0000)])
        class Program(ctypes.Structure):
            _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]
        library = ctypes.CDLL(None)
        assert library.prctl(38, 1, 0, 0, 0) == 0
        assert library.prctl(22, 2, ctypes.byref(Program(4, program)), 0, 0) == 0
        os.execv(sys.argv[2], sys.argv[2:])
        """

    @Test(
        arguments: [
            (426, "io_uring_enter is forbidden here (Operation not permitted): allow io_uring_"),
            (427, "io_uring_register is forbidden here (Operation not permitted): allow io_"),
            (435, "a thread can't be started: Operation not permitted: allow clone3 and clone in"),
        ])
    func `send and doctor name a system call that a container forbids, before a run begins`(
        systemCall: Int, message: String
    ) throws {
        let campaign = try Campaign(rows: 10)
        func run(_ arguments: [String]) throws -> Finished {
            try Subprocess(
                "python3",
                ["-c", Self.refusing, String(systemCall), Broadside.path()] + arguments,
                in: campaign.directory
            ).wait(limit: 60)
        }
        let endpoint = try "127.0.0.1:\(Ports.free())"
        let sent = try run(campaign.arguments(to: endpoint))
        #expect(sent.exitCode == 1, "\(sent.errors)")
        #expect(sent.errors.contains("broadside: \(message)"), "\(sent.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let options = campaign.arguments(
            to: endpoint, without: ["tokens", "payload", "ledger", "progress"])
        let examined = try run(["doctor"] + options.dropFirst())
        #expect(examined.exitCode == 1, "\(examined.errors)")
        #expect(examined.output.contains(message), "\(examined.output)")
    }

    @Test func `Soft limits of files and locked memory are raised`() throws {
        let server = try Nghttpd(isVerbose: false)
        let campaign = try Campaign(rows: 300)
        let finished = try send(
            "ulimit -Sn 64 && ulimit -Sl 64", isPrivileged: false, campaign, to: server.endpoint,
            ["--connections", "60", "--summary", "-"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(try SendSummary(json: finished.output).accepted == 300)
    }

    @Test
    func `Too little lockable memory for the reactors is exit 1 before anything begins`() throws {
        let campaign = try Campaign(rows: 10)
        let finished = try send(
            "ulimit -l 400", isPrivileged: false, campaign, to: "127.0.0.1:1",
            ["--connections", "8", "--reactors", "8"])
        #expect(finished.exitCode == 1)
        #expect(finished.errorLines.count == 1)
        #expect(finished.errors.contains("raise the locked-memory limit (ulimit -l)"))
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }
}
