import BroadsideTestSupport
import Foundation
import Glibc
import Testing

/// Commands that messages about keys, payloads and ledgers print, run by a shell: what they make is taken.
@Suite(.timeLimit(.minutes(60)))
struct PrintedCommandTests {
    private let campaign: Campaign
    private let directory: TemporaryDirectory

    init() throws {
        campaign = try Campaign(rows: 3)
        directory = campaign.directory
    }

    private func dryRun(_ more: [String]) throws -> Finished {
        try campaign.send(to: "localhost:1", more + ["--dry-run"])
    }

    /// Runs the command that a message has, from some words to others.
    ///
    /// - Parameters:
    ///   - names: What to put in place of the names in capitals.
    ///   - input: What it asks for.
    private func run(
        _ errors: String, from first: String, to last: String, names: [String: String] = [:],
        input: String = ""
    ) throws {
        let start = try #require(errors.range(of: first), "\(errors)").lowerBound
        var command = String(errors[start...])
        command = String(
            command[..<(try #require(command.range(of: last), "\(errors)").lowerBound)])
        for (name, file) in names { command = command.replacing(name, with: "'\(file)'") }
        let ended = try Subprocess(
            "setsid", ["--wait", "/bin/sh", "-c", command], in: directory,
            input: try directory.write(input, to: "input")
        ).wait(limit: 60)
        #expect(ended.exitCode == 0, "\(command): \(ended.errors)")
    }

    @Test func `The printed chmod command makes a key private`() throws {
        let key = "\(directory.path)/Bo's key.p8"
        try FileManager.default.copyItem(atPath: campaign.authority.authKey, toPath: key)
        #expect(chmod(key, 0o644) == 0)
        let warned = try dryRun(["--auth-key", key])
        try run(warned.errors, from: "chmod 600", to: "\n")
        let quiet = try dryRun(["--auth-key", key])
        #expect(quiet.exitCode == 0 && !quiet.errors.contains("chmod"), "\(quiet.errors)")
    }

    @Test func `The printed command decrypts a protected key`() throws {
        let (key, plain) = ("\(directory.path)/protected key.p8", "\(directory.path)/plain key.p8")
        let made = try Subprocess.run(
            "openssl",
            [
                "pkcs8", "-topk8", "-v2", "aes256", "-passout", "pass:secret", "-in",
                campaign.authority.authKey, "-out", key,
            ], in: directory)
        try #require(made.exitCode == 0, "\(made.errors)")
        let refused = try dryRun(["--auth-key", key])
        #expect(refused.exitCode == 2)
        // One of the two names is a part of the other.
        try run(
            refused.errors.replacing("NEWFILE", with: "'\(plain)'"), from: "openssl pkey",
            to: "'\n", names: ["FILE": key], input: "secret\n")
        let taken = try dryRun(["--auth-key", plain])
        #expect(taken.exitCode == 0, "\(taken.errors)")
    }

    @Test func `The printed command converts a bundle with old ciphers`() throws {
        let identity = try campaign.authority.clientCertificate(in: directory)
        let bundle = try identity.bundle(passphrase: "secret", ["-legacy"], in: directory)
        let word = try directory.write("secret", to: "word")
        func dryRun(_ file: String, _ environment: [String: String] = [:]) throws -> Finished {
            try Subprocess(
                Broadside.path(),
                campaign.arguments(
                    to: "localhost:1",
                    ["--certificate", file, "--passphrase-file", word, "--dry-run"],
                    without: ["auth-key", "key-id", "team-id"]),
                in: directory, environment: environment
            ).wait()
        }
        let refused = try dryRun(bundle, ["OPENSSL_MODULES": "/nonexistent"])
        let all = "\(directory.path)/ALL.pem"
        try run(
            refused.errors, from: "openssl pkcs12", to: "' and name",
            names: ["FILE": bundle, "ALL.pem": all], input: "secret\nsecret\nsecret\n")
        let taken = try dryRun(all, ["OPENSSL_MODULES": "/nonexistent"])
        #expect(taken.exitCode == 0, "\(taken.errors)")
    }

    @Test(arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian])
    func `The printed command converts a payload from UTF-16`(encoding: String.Encoding) throws {
        let text = #"{"aps":{"alert":"Grüße"}}"#
        let (wide, plain) = ("\(directory.path)/wide one.json", "\(directory.path)/plain.json")
        try text.write(toFile: wide, atomically: true, encoding: encoding)
        let refused = try dryRun(["--payload", wide])
        #expect(refused.exitCode == 2)
        try run(
            refused.errors.replacing("NEWFILE", with: "'\(plain)'"), from: "iconv", to: "'\n",
            names: ["FILE": wide])
        #expect(try String(contentsOfFile: plain, encoding: .utf8) == text)
        let taken = try dryRun(["--payload", plain])
        #expect(taken.exitCode == 0, "\(taken.errors)")
    }

    @Test func `The report's prune command reads the list that was sent`() throws {
        let server = try LocalAPNs(["--unregistered", "1"])
        let list = try directory.write(
            "device;user\n\(campaign.tokens.token(0));1\nzz;2\n", to: "Bo's list.txt")
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", list, "--format", "csv", "--token-column", "device", "--max-invalid",
                "99",
            ])
        try #require(sent.exitCode == 0, "\(sent.errors)")
        let report = try Broadside.run(["report", "--ledger", campaign.ledger], in: directory)
        let page = report.output.replacing(/<[^>]*>/, with: "").replacing("&#39;", with: "'")
        let prune = "cd '\(directory.path)' && '\(try Broadside.path())' prune"
        try run(page.replacing("broadside prune", with: prune), from: prune, to: "\n")
        #expect(
            try String(contentsOfFile: "\(directory.path)/Bo's list.clean.txt", encoding: .utf8)
                == "device;user\nzz;2\n")
    }

    @Test func `The printed chmod command lets a ledger be resumed`() throws {
        let server = try LocalAPNs()
        let ledger = ["--ledger", "\(directory.path)/Bo's ledger"]
        let first = try campaign.send(to: server.endpoint, ["--limit", "1"] + ledger)
        try #require(first.exitCode == 0, "\(first.errors)")
        #expect(chmod(ledger[1], 0o755) == 0)
        let refused = try campaign.send(to: server.endpoint, ["--resume"] + ledger)
        #expect(refused.exitCode == 2)
        try run(refused.errors, from: "chmod 0700", to: ", after")
        let resumed = try campaign.send(to: server.endpoint, ["--resume"] + ledger)
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try server.finish().count == 3)
    }
}
