import BroadsideTestSupport
import Foundation
import Testing

/// What starts the nightly campaign: a command line in `contrib`, and the directories that it finds at each start.
struct NightlyScript: Sendable, CustomTestStringConvertible {
    var file: String
    /// The campaign's folder, below the directory that stands for all others.
    var ledgers: String

    var testDescription: String { file }
    var isUnit: Bool { file.hasPrefix("systemd") }

    static let all: [NightlyScript] = [
        .init(file: "systemd/broadside.service", ledgers: "state/campaign"),
        .init(file: "kubernetes/cronjob.yaml", ledgers: "campaign"),
    ]

    var source: String {
        get throws {
            try String(contentsOfFile: "\(Tool.packageRoot)/contrib/\(file)", encoding: .utf8)
        }
    }

    /// The words of the command line, as its manager takes them.
    var words: [String] {
        get throws {
            let source = try source
            let (start, end) = isUnit ? ("\nExecStart=", "\n# SIGHUP") : ("command: [", "]")
            guard let start = source.range(of: start),
                let end = source[start.upperBound...].range(of: end)
            else { throw TestFailure("\(file): the command is not found") }
            let text = source[start.upperBound..<end.lowerBound]
                .replacingOccurrences(of: "\\\n", with: " ")
            return text.split { $0.isWhitespace || !isUnit && $0 == "," }.map(String.init)
        }
    }
}

/// A command line that is started again and again, with a clock of its own. Directories are handled between starts as
/// systemd.exec(5) says of a unit's; a volume keeps everything.
final class NightlyUnit {
    let campaign: Campaign
    private let script: NightlyScript
    private let words: [String]
    private let path: String
    /// `RuntimeDirectoryPreserve=` of the unit.
    private let preserve: String
    /// Number of the job in a cluster, in the place of its UID. A restart belongs to the same job.
    private var job = 0

    init(_ script: NightlyScript, rows: Int, endpoint: String, _ more: [String]) throws {
        self.script = script
        campaign = try Campaign(rows: rows)
        let path = campaign.directory.path
        self.path = path
        preserve =
            try script.source.split(separator: "\n")
            .first { $0.hasPrefix("RuntimeDirectoryPreserve=") }
            .map { String($0.drop { $0 != "=" }.dropFirst()) } ?? "no"
        let directories = [
            ("${STATE_DIRECTORY}", "\(path)/state"), ("${RUNTIME_DIRECTORY}", "\(path)/runtime"),
            ("${CREDENTIALS_DIRECTORY}", path), ("/etc/broadside", path), ("/campaign", path),
            ("/key", path),
        ]
        words = try script.words.map { word in
            for (name, directory) in directories where word.hasPrefix(name) {
                return directory + word.dropFirst(name.count)
            }
            return word
        }
        guard words.first == "broadside", words.dropFirst().first == "night" else {
            throw TestFailure("\(script.file): it does not start a night: \(words)")
        }
        let printed = try Broadside.run(
            campaign.arguments(
                to: endpoint, ["--print-campaign", "--connections", "1"] + more,
                without: ["ledger", "progress", "auth-key"]),
            in: campaign.directory)
        try campaign.directory.write(printed.output, to: "campaign.json5")
        try FileManager.default.copyItem(
            atPath: campaign.authority.authKey, toPath: "\(path)/auth-key")
    }

    /// The ledger of a night.
    func ledger(_ day: Int) -> String { "\(path)/\(script.ledgers)/\(FakeTime.date(day))" }

    func has(_ day: Int) -> Bool { FileManager.default.fileExists(atPath: ledger(day)) }

    /// Starts the command line at a time.
    ///
    /// - Parameters:
    ///   - command: What is started in the place of `broadside`; nil: that.
    ///   - more: Options that the command line does not have.
    func start(
        _ day: Int, _ clock: String, command: String? = nil, _ more: [String] = []
    ) throws -> Subprocess {
        if script.isUnit {
            for folder in ["state", "runtime"] {
                try FileManager.default.createDirectory(
                    atPath: "\(path)/\(folder)", withIntermediateDirectories: true)
            }
        }
        return try Subprocess(
            "timeout",
            ["--foreground", "300", command ?? Broadside.path()]
                + words.dropFirst().map {
                    $0.replacingOccurrences(of: "$(JOB_UID)", with: "\(job)")
                }
                + more,
            in: campaign.directory, environment: FakeTime.at(day, clock))
    }

    /// Waits for its end, and removes the directories that do not outlive it.
    ///
    /// - Parameter restarts: Whether its manager starts it again.
    func end(_ process: Subprocess, restarts: Bool = false) throws -> Finished {
        let finished = try process.wait(limit: 120)
        if !restarts { job += 1 }
        if script.isUnit, preserve != "yes", !(preserve == "restart" && restarts) {
            try FileManager.default.removeItem(atPath: "\(path)/runtime")
        }
        return finished
    }

    func run(
        _ day: Int, _ clock: String, command: String? = nil, restarts: Bool = false
    ) throws -> Finished {
        try end(start(day, clock, command: command), restarts: restarts || command != nil)
    }

    /// Starts a night, and ends it as its manager does once rows of it are settled: so slow that others are left.
    func stop(_ day: Int, _ clock: String, restarts: Bool = false) throws -> Finished {
        let process = try start(day, clock, ["--rate", "200"])
        try process.wait {
            let file = try? FileManager.default.attributesOfItem(
                atPath: "\(ledger(day))/segment-0001-00")
            return (file?[.size] as? Int ?? 0) > 4096
        }
        process.send(signal: SIGTERM)
        return try end(process, restarts: restarts)
    }

    func statistics(_ day: Int) throws -> SendSummary {
        try SendSummary(
            json: Broadside.run(
                ["ledger", "stats", "--json", "--ledger", ledger(day)], in: campaign.directory
            ).output)
    }
}
