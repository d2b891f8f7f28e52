import Foundation
import TestSupport
import Testing

/// The scripts that a timer or a cluster starts again and again: run as they stand in `contrib`.
@Suite(.timeLimit(.minutes(60)))
struct NightlyScriptTests {
    /// A script in a file, and what has to be put in other words to run it here.
    struct Script: Sendable, CustomTestStringConvertible {
        var file: String
        /// Between these words; the last one is left out.
        var start: String
        var end: String
        /// Where ledgers lie, below the directory that stands for all others.
        var ledger: String

        var testDescription: String { file }
    }

    static let scripts: [Script] = [
        .init(
            file: "systemd/broadside.service", start: "ExecStart=/bin/sh -ec '\\\n",
            end: "'\n# SIGHUP", ledger: "2026-11-21"),
        .init(
            file: "kubernetes/cronjob.yaml", start: "args:\n                - |\n",
            end: "              env:", ledger: "ledgers/night"),
    ]

    private func text(_ script: Script, in path: String) throws -> String {
        let file = try String(
            contentsOfFile: "\(Tool.packageRoot)/contrib/\(script.file)", encoding: .utf8)
        let start = try #require(file.range(of: script.start))
        let rest = file[start.upperBound...]
        let end = try #require(rest.range(of: script.end))
        var text = String(rest[..<end.lowerBound])
        if script.file.hasPrefix("systemd") {
            // systemd joins continued lines and takes $$ for a dollar sign.
            text = text.replacingOccurrences(of: "\\\n", with: " ")
                .replacingOccurrences(of: "$$", with: "$")
                .replacingOccurrences(of: "/etc/broadside", with: path)
        } else {
            // So does kubelet.
            text = text.replacingOccurrences(of: "$$", with: "$")
                .replacingOccurrences(of: "/campaign/", with: "\(path)/")
                .replacingOccurrences(of: "/key/", with: "\(path)/")
        }
        return text
    }

    @Test(
        "Rows that are left are sent by the next start; failed and unknown ones wait for a person",
        arguments: scripts)
    func restart(script: Script) throws {
        let server = try RecordingServer("reset")
        let campaign = try Campaign(rows: 60)
        let path = campaign.directory.path
        let printed = try Broadside.run(
            campaign.arguments(
                to: server.endpoint, ["--print-campaign", "--connections", "1"],
                without: ["ledger", "progress", "auth-key"]),
            in: campaign.directory)
        try campaign.directory.write(printed.output, to: "campaign.json5")
        try FileManager.default.copyItem(
            atPath: campaign.authority.authKey, toPath: "\(path)/auth-key")
        try FileManager.default.createSymbolicLink(
            atPath: "\(path)/broadside", withDestinationPath: try Broadside.path())
        // The night that the first start takes down.
        try campaign.directory.write("#!/bin/sh\necho 2026-11-21\n", to: "date")
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: "\(path)/date")
        let text = try text(script, in: path)
        func start() throws -> Finished {
            try Subprocess(
                "sh", ["-ec", text], in: campaign.directory,
                environment: [
                    "PATH": "\(path):/usr/bin:/bin", "RUNTIME_DIRECTORY": path,
                    "STATE_DIRECTORY": path, "CREDENTIALS_DIRECTORY": path, "JOB_NAME": "night",
                ]
            ).wait(limit: 120)
        }
        // A start that begins no ledger, as where io_uring is forbidden, is not a campaign's.
        try FileManager.default.moveItem(atPath: "\(path)/broadside", toPath: "\(path)/real")
        try campaign.directory.write("#!/bin/sh\nexit 1\n", to: "broadside")
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: "\(path)/broadside")
        #expect(try start().exitCode == 1)
        try FileManager.default.removeItem(atPath: "\(path)/broadside")
        try FileManager.default.moveItem(atPath: "\(path)/real", toPath: "\(path)/broadside")

        let first = try start()
        #expect(first.exitCode == 6, "\(first.errors)")
        let ledger = "\(path)/\(script.ledger)"
        func statistics() throws -> SendSummary {
            try SendSummary(
                json: Broadside.run(
                    ["ledger", "stats", "--json", "--ledger", ledger], in: campaign.directory
                ).output)
        }
        #expect(try statistics().unknown > 0 && statistics().remaining == 0)
        // As kubelet does with a volume of a group of its own, at each start of a pod.
        if !script.file.hasPrefix("systemd") {
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o2770], ofItemAtPath: ledger)
        }
        let connections = try server.events().filter { $0.event == "preface" }.count
        let second = try start()
        #expect(second.exitCode == 6, "\(second.errors)")
        #expect(second.errors.contains("--retry"), "\(second.errors)")
        #expect(try server.events().filter { $0.event == "preface" }.count == connections)
        let retried = try Broadside.run(
            [
                "send", "--campaign", "\(path)/campaign.json5", "--ledger", ledger, "--resume",
                "--retry", "failed,unknown", "--auth-key", "\(path)/auth-key",
            ],
            in: campaign.directory)
        #expect(retried.exitCode == 0, "\(retried.errors)")
        // What is complete may be started again: there is nothing to do, and that is fine.
        let last = try start()
        #expect(last.exitCode == 0, "\(last.errors)")

        // From its second start on it begins no campaign: the first may have reached everybody.
        try FileManager.default.moveItem(atPath: ledger, toPath: ledger + ".elsewhere")
        let lost = try start()
        #expect(lost.exitCode == 2 && lost.errors.contains("no ledger"), "\(lost.errors)")
        #expect(!FileManager.default.fileExists(atPath: ledger))
        try FileManager.default.moveItem(atPath: ledger + ".elsewhere", toPath: ledger)
        #expect(try start().exitCode == 0)
    }
}
