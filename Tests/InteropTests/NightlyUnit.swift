import BroadsideTestSupport
import Foundation
import Testing

/// What starts the nightly campaign: a script in `contrib`, and the directories that it finds at each start.
struct NightlyScript: Sendable, CustomTestStringConvertible {
    var file: String
    /// Between these words; the last one is left out.
    var start: String
    var end: String
    /// Where ledgers are, below the directory that stands for all others.
    var ledgers: String

    var testDescription: String { file }
    var isUnit: Bool { file.hasPrefix("systemd") }

    static let all: [NightlyScript] = [
        .init(
            file: "systemd/broadside.service", start: "ExecStart=/bin/sh -ec '\\\n",
            end: "'\n# SIGHUP", ledgers: "state"),
        .init(
            file: "kubernetes/cronjob.yaml", start: "args:\n                - |\n",
            end: "              securityContext:", ledgers: "ledgers"),
    ]

    var source: String {
        get throws {
            try String(contentsOfFile: "\(Tool.packageRoot)/contrib/\(file)", encoding: .utf8)
        }
    }
}

/// A script that is started again and again, with a clock of its own. Directories are handled between starts as
/// systemd.exec(5) says of a unit's; a volume keeps everything.
final class NightlyUnit {
    let campaign: Campaign
    private let script: NightlyScript
    private let text: String
    private let path: String
    /// `RuntimeDirectoryPreserve=` of the unit.
    private let preserve: String

    init(_ script: NightlyScript, rows: Int, endpoint: String, _ more: [String]) throws {
        self.script = script
        campaign = try Campaign(rows: rows)
        path = campaign.directory.path
        let source = try script.source
        preserve =
            source.split(separator: "\n").first { $0.hasPrefix("RuntimeDirectoryPreserve=") }
            .map { String($0.drop { $0 != "=" }.dropFirst()) } ?? "no"
        text = try Self.text(script, source, in: path)
        let printed = try Broadside.run(
            campaign.arguments(
                to: endpoint, ["--print-campaign", "--connections", "1"] + more,
                without: ["ledger", "progress", "auth-key"]),
            in: campaign.directory)
        try campaign.directory.write(printed.output, to: "campaign.json5")
        try FileManager.default.copyItem(
            atPath: campaign.authority.authKey, toPath: "\(path)/auth-key")
        try FileManager.default.createSymbolicLink(
            atPath: "\(path)/broadside", withDestinationPath: try Broadside.path())
        try write(program: "date", "exec /bin/date -u -d \"@$(cat \(path)/now)\" \"$@\"")
    }

    private static func text(_ script: NightlyScript, _ source: String, in path: String) throws
        -> String
    {
        guard let start = source.range(of: script.start),
            let end = source[start.upperBound...].range(of: script.end)
        else { throw TestFailure("\(script.file): the script is not found") }
        let text = String(source[start.upperBound..<end.lowerBound])
        guard script.isUnit else {
            // kubelet takes $$ for a dollar sign.
            return text.replacingOccurrences(of: "$$", with: "$")
                .replacingOccurrences(of: "/campaign/", with: "\(path)/")
                .replacingOccurrences(of: "cd /campaign ", with: "cd \(path) ")
                .replacingOccurrences(of: "/key/", with: "\(path)/")
        }
        // So does systemd, which also joins continued lines, and takes %% for a percent sign.
        return text.replacingOccurrences(of: "\\\n", with: " ")
            .replacingOccurrences(of: "$$", with: "$")
            .replacingOccurrences(of: "%%", with: "%")
            .replacingOccurrences(of: "/etc/broadside", with: path)
    }

    func write(program name: String, _ lines: String) throws {
        try campaign.directory.write("#!/bin/sh\n\(lines)\n", to: name)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: "\(path)/\(name)")
    }

    /// The ledger of a night.
    func ledger(_ night: String) -> String { "\(path)/\(script.ledgers)/\(night)" }

    func has(_ night: String) -> Bool { FileManager.default.fileExists(atPath: ledger(night)) }

    /// Starts the script at a time, written as `2026-11-20 23:55`.
    func start(at time: String) throws -> Subprocess {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "yyyy-MM-dd HH:mm"
        guard let date = format.date(from: time) else { throw TestFailure("\(time) is no time") }
        try campaign.directory.write("\(Int(date.timeIntervalSince1970))", to: "now")
        var environment = ["PATH": "\(path):/usr/bin:/bin"]
        if script.isUnit {
            for (name, folder) in [("STATE_DIRECTORY", "state"), ("RUNTIME_DIRECTORY", "runtime")] {
                try FileManager.default.createDirectory(
                    atPath: "\(path)/\(folder)", withIntermediateDirectories: true)
                environment[name] = "\(path)/\(folder)"
            }
            environment["CREDENTIALS_DIRECTORY"] = path
        }
        return try Subprocess(
            "sh", ["-ec", text], in: campaign.directory, environment: environment)
    }

    /// Waits for the script's end, and removes the directories that do not outlive it.
    ///
    /// - Parameter restarts: Whether its manager starts it again by itself.
    func end(_ process: Subprocess, restarts: Bool = false) throws -> Finished {
        let finished = try process.wait(limit: 120)
        if script.isUnit, preserve != "yes", !(preserve == "restart" && restarts) {
            try FileManager.default.removeItem(atPath: "\(path)/runtime")
        }
        return finished
    }

    func run(at time: String, restarts: Bool = false) throws -> Finished {
        try end(start(at: time), restarts: restarts)
    }

    /// Starts a night, and ends it as its manager does once rows of it are settled.
    func stop(at time: String, night: String) throws -> Finished {
        let process = try start(at: time)
        try process.wait {
            let file = try? FileManager.default.attributesOfItem(
                atPath: "\(ledger(night))/segment-0001-00")
            return (file?[.size] as? Int ?? 0) > 4096
        }
        process.send(signal: SIGTERM)
        return try end(process)
    }

    func statistics(_ night: String) throws -> SendSummary {
        try SendSummary(
            json: Broadside.run(
                ["ledger", "stats", "--json", "--ledger", ledger(night)], in: campaign.directory
            ).output)
    }
}
