import Foundation

/// The command under test.
package enum Broadside {
    /// The path of the release binary, where there is one; `tools/test` names it.
    package static func path() throws -> String {
        if let path = ProcessInfo.processInfo.environment["BROADSIDE_COMMAND"] { return path }
        for build in ["release", "debug"] {
            let path = "\(Tool.packageRoot)/.build/\(build)/broadside"
            if access(path, X_OK) == 0 { return path }
        }
        throw TestFailure(
            "there is no broadside command: run swift build -c release --product broadside")
    }

    /// Runs it to its end.
    package static func run(
        _ arguments: [String], in directory: TemporaryDirectory, input: String? = nil,
        limit: Double = 240, environment: [String: String] = [:]
    ) throws -> Finished {
        try start(arguments, in: directory, input: input, environment: environment)
            .wait(limit: limit)
    }

    /// Runs it to its end, and reads from the kernel how much memory it had at most.
    ///
    /// The process is forked by a small Python process: one that the test runner starts shares the
    /// runner's memory for a moment, and the kernel counts that too. What is less than Python's 10 MB
    /// can't be seen.
    ///
    /// - Returns: Its end, and the peak of its resident memory in bytes.
    package static func runMeasured(
        _ arguments: [String], in directory: TemporaryDirectory, limit: Double = 240
    ) throws -> (finished: Finished, peakResidentBytes: Int) {
        let peak = directory.fresh("peak")
        let script = """
            import os, resource, sys
            code = os.spawnvp(os.P_WAIT, sys.argv[2], sys.argv[2:])
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            open(sys.argv[1], "w").write(str(usage.ru_maxrss * 1024))
            sys.exit(code if code >= 0 else 128 - code)
            """
        let finished = try Subprocess(
            "timeout",
            try ["\(limit)", Tool.path(of: "python3"), "-BS", "-c", script, peak, path()]
                + arguments, in: directory
        ).wait(limit: limit + 10)
        guard let bytes = try Int(String(contentsOfFile: peak, encoding: .utf8)) else {
            throw TestFailure("no peak of memory was measured: \(finished.errors.suffix(2000))")
        }
        return (finished, bytes)
    }

    /// Starts it.
    package static func start(
        _ arguments: [String], in directory: TemporaryDirectory, input: String? = nil,
        environment: [String: String] = [:]
    ) throws -> Subprocess {
        // libfaketime changes the environment when it is loaded for the first time, and Swift finds
        // its arguments by where the environment lies: `timeout` takes that upon itself, and tidies
        // up what the library leaves in shared memory.
        let path = try path()
        return environment["FAKETIME_DONT_FAKE_MONOTONIC"] == nil
            ? try Subprocess(
                path, arguments, in: directory, input: input, environment: environment)
            : try Subprocess(
                "timeout", ["300", path] + arguments, in: directory, input: input,
                environment: environment)
    }
}

/// A campaign's files in a directory of their own, and the options that name them.
package struct Campaign: Sendable {
    package static let payload =
        #"{"aps":{"alert":{"title":"Broadside","body":"Hello"},"badge":1}}"#
    package static let topic = "com.example.app"
    package static let keyID = "ABC123DEFG"
    package static let teamID = "DEF123GHIJ"

    package let directory: TemporaryDirectory
    package let tokens: DeviceTokens
    package let list: String
    package let payloadFile: String
    package let authority: TestAuthority

    package var ledger: String { "\(directory.path)/ledger" }

    package init(rows: Int, payload: String = Campaign.payload) throws {
        directory = try TemporaryDirectory()
        tokens = DeviceTokens(count: rows)
        list = try directory.write(tokens.list(), to: "tokens.txt")
        payloadFile = try directory.write(payload, to: "payload.json")
        authority = try TestAuthority.shared()
    }

    /// A campaign whose list, `list.csv`, has rows in these time zones.
    package init(zones: [String], header: String = "token,tz") throws {
        try self.init(rows: zones.count)
        let lines = String(decoding: tokens.list(), as: UTF8.self).split(separator: "\n")
        let rows = zip(lines, zones).map { "\($0),\($1)\n" }
        _ = try directory.write(header + "\n" + rows.joined(), to: "list.csv")
    }

    /// The options of a whole send; `without` leaves some out, to be given otherwise.
    package func arguments(
        to endpoint: String, _ more: [String] = [], without: Set<String> = []
    ) -> [String] {
        let options = [
            ("tokens", list), ("payload", payloadFile), ("topic", Self.topic),
            ("auth-key", authority.authKey), ("key-id", Self.keyID), ("team-id", Self.teamID),
            ("endpoint", endpoint), ("ca-file", authority.caFile), ("ledger", ledger),
            ("progress", "none"),
        ]
        var arguments = ["send"]
        for (name, value) in options
        where !without.contains(name) && !more.contains("--\(name)") {
            arguments += ["--\(name)", value]
        }
        return arguments + more
    }

    /// Waits until rows of a run are being answered: so much is in the ledger's segments.
    package func waitForRows(_ sending: Subprocess) throws {
        try sending.wait {
            let names = (try? directory.names(in: ledger)) ?? []
            return names.contains { name in
                let file = try? FileManager.default.attributesOfItem(atPath: "\(ledger)/\(name)")
                return name.hasPrefix("segment") && (file?[.size] as? Int ?? 0) > 4096
            }
        }
    }

    /// Sends it.
    package func send(
        to endpoint: String, _ more: [String] = [], limit: Double = 240,
        environment: [String: String] = [:]
    ) throws -> Finished {
        try Broadside.run(
            arguments(to: endpoint, more), in: directory, limit: limit, environment: environment)
    }

    /// Runs `ledger` with a subcommand on this campaign's ledger.
    package func ledger(_ subcommand: String, _ more: [String] = []) throws -> Finished {
        try Broadside.run(
            ["ledger", subcommand, "--ledger", ledger] + more, in: directory, limit: 120)
    }

    /// Runs `control` with these words on the run that writes this campaign's ledger.
    @discardableResult
    package func control(_ words: String...) throws -> Finished {
        try Broadside.run(
            ["control", "--ledger", ledger] + words, in: directory, limit: 120)
    }

    /// Has a run whose list was sent slowly, so that something would happen in the middle of it, send the rest at once.
    package func hurry() throws {
        let told = try control("rate", "unlimited")
        guard told.exitCode == 0 else { throw TestFailure("the run is not there: \(told.errors)") }
    }

    /// The rows of the ledger, by the export.
    package func export(_ more: [String] = []) throws -> [ExportedRow] {
        let finished = try ledger("export", more)
        guard finished.exitCode == 0 else {
            throw TestFailure("export ended with \(finished.exitCode): \(finished.errors)")
        }
        return try ExportedRow.read(finished.output)
    }

    /// The counts of `ledger stats --json`.
    package func statistics() throws -> SendSummary {
        let finished = try ledger("stats", ["--json"])
        guard finished.exitCode == 0 else {
            throw TestFailure("stats ended with \(finished.exitCode): \(finished.errors)")
        }
        return try SendSummary(json: finished.output)
    }
}

/// What a summary says, as far as tests look at it.
package struct SendSummary: Decodable, Sendable, Equatable {
    package var campaign: String
    package var outcome: String
    package var rows: Int?
    package var accepted: Int
    package var rejected: Int
    package var invalid: Int
    package var skipped: Int
    package var failed: Int
    package var unknown: Int
    package var remaining: Int?
    package var reasons: [String: Int]
    /// -1 if null.
    package var retries: Int { knownRetries ?? -1 }
    /// -1 if null.
    package var reconnects: Int { knownReconnects ?? -1 }
    package var peak_rss_bytes: Int?
    package var in_doubt: Int?
    private var knownRetries: Int?
    private var knownReconnects: Int?

    private enum CodingKeys: String, CodingKey {
        case campaign, outcome, rows, accepted, rejected, invalid, skipped, failed, unknown
        case remaining, reasons, peak_rss_bytes, in_doubt
        case knownRetries = "retries"
        case knownReconnects = "reconnects"
    }

    package init(json: String) throws {
        self = try JSONDecoder().decode(SendSummary.self, from: Data(json.utf8))
    }
}

/// A line of an export.
package struct ExportedRow: Sendable {
    package var line: Int?
    package var token: String
    package var state: String
    package var status: Int?
    package var reason: String
    package var timestamp: String
    package var attempts: Int
    package var identifier: String
    /// Milliseconds since 1970; 0: not settled.
    package var settledAt: Int
    /// Empty in a campaign without arms.
    package var arm: String
    /// Empty in a campaign whose rows name no topics.
    package var topic: String

    static let header =
        "line,token,state,status,reason,apns_timestamp_ms,attempts,apns_id,settled_at_ms"

    /// Reads CSV; a quoted field has no line breaks.
    package static func read(_ text: String) throws -> [ExportedRow] {
        var lines = text.utf8.split(separator: 0x0a)
        let first = lines.isEmpty ? nil : String(lines.removeFirst())
        let further = first?.dropFirst(header.count).split(separator: ",").map(String.init) ?? []
        guard first?.hasPrefix(header) == true,
            [[], ["arm"], ["topic"], ["arm", "topic"]].contains(further)
        else {
            throw TestFailure("an export without its header: \(text.prefix(200))")
        }
        return try lines.map { line in
            let fields = fields(Array(line))
            guard fields.count == 9 + further.count else {
                throw TestFailure("a line of an export with \(fields.count) fields: \(line)")
            }
            func text(_ index: Int) -> String { String(decoding: fields[index], as: UTF8.self) }
            func text(_ column: String) -> String {
                further.firstIndex(of: column).map { text(9 + $0) } ?? ""
            }
            return ExportedRow(
                line: Int(text(0)), token: text(1), state: text(2), status: Int(text(3)),
                reason: text(4), timestamp: text(5), attempts: Int(text(6)) ?? -1,
                identifier: text(7), settledAt: Int(text(8)) ?? 0, arm: text("arm"),
                topic: text("topic"))
        }
    }

    private static func fields(_ line: [UInt8]) -> [[UInt8]] {
        guard line.contains(UInt8(ascii: "\"")) else {
            return line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
                .map([UInt8].init)
        }
        var fields: [[UInt8]] = [[]]
        var isQuoted = false
        for byte in line {
            if byte == UInt8(ascii: "\"") {
                // Of a doubled quote the second one opens again: it belongs to the text.
                if !isQuoted, fields[fields.count - 1].last != nil {
                    fields[fields.count - 1].append(byte)
                }
                isQuoted.toggle()
            } else if byte == UInt8(ascii: ","), !isQuoted {
                fields.append([])
            } else {
                fields[fields.count - 1].append(byte)
            }
        }
        return fields
    }
}
