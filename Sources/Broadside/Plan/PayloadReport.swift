public import BroadsideAPNs
import BroadsidePayloads
public import BroadsideSupport

/// Result of `payload check`: properties and problems of a payload file.
public struct PayloadReport: Sendable {
    /// Path of the payload.
    public let file: String
    /// Name of the file, with the option that names it.
    private let name: String
    private let pushType: PushType
    /// Whether the payload is for a broadcast channel.
    private let isBroadcast: Bool
    /// Size of the file, bytes.
    private let byteCount: Int
    /// Size without whitespace between JSON tokens, bytes; nil if the file is not JSON.
    private let minifiedByteCount: Int?
    /// Columns that the template contains; their values add to the size.
    private let columns: [String]
    /// Column whose value is shortened so that the payload fits; nil: none.
    private var fittedColumn: String?
    private var problems: [PayloadCheck.Problem] = []
    private var warnings: [PayloadCheck.Problem] = []

    /// Reads and checks a file.
    ///
    /// - Parameters:
    ///   - file: Path of the payload.
    ///   - pushType: Push type, which determines the size limit and the permitted keys.
    ///   - topic: Topic to compare with the push type's suffix; nil: not checked.
    ///   - isBroadcast: Whether the payload is for a broadcast channel.
    ///   - option: Option that names the file.
    /// - Throws: If the file can't be read.
    public init(
        file: String, pushType: PushType, topic: String?, isBroadcast: Bool = false,
        option: String = "payload"
    ) throws(BroadsideError) {
        let name = InputName(file, option: option)
        try PayloadFiles.checkFile(file, shownAs: name)
        let payload = try readFile(file, option: option, limit: PayloadFiles.fileLimit)
        self.init(
            payload, file: file, shownAs: name, pushType: pushType, topic: topic,
            isBroadcast: isBroadcast)
        if let topic { check(topic) }
    }

    /// Checks a payload that is in memory.
    ///
    /// - Parameters:
    ///   - name: Name of the file, with the option that names it.
    ///   - topic: Topic of all rows; nil: unknown, or different per row.
    ///   - sizeProblem: Checks the size of a template; nil: the limit of the push type applies.
    init(
        _ payload: [UInt8], file: String, shownAs name: InputName, pushType: PushType,
        topic: String? = nil, isBroadcast: Bool = false,
        sizeProblem: ((PayloadTemplate) -> PayloadCheck.Problem?)? = nil
    ) {
        self.file = file
        self.name = name.description
        self.pushType = pushType
        self.isBroadcast = isBroadcast
        byteCount = payload.count
        let bytes = payload.rawSpan
        if let problem = PayloadCheck.syntaxProblem(bytes) {
            minifiedByteCount = nil
            columns = []
            problems = [problem]
            return
        }
        do throws(PayloadCheck.Problem) {
            let template = try PayloadTemplate(bytes)
            // The text of a placeholder is not filled in, so it counts.
            minifiedByteCount =
                isBroadcast && template.isPersonal
                ? PayloadMinifier.minify(bytes).count : template.constantCount
            columns = template.uses.map(\.column)
            fittedColumn = template.fittedColumn
            let tooLarge =
                sizeProblem ?? { template in
                    isBroadcast
                        ? PayloadCheck.broadcastSizeProblem(template)
                        : PayloadCheck.sizeProblem(template, pushType: pushType)
                }
            if let problem = tooLarge(template) { problems.append(problem) }
        } catch {
            minifiedByteCount = PayloadMinifier.minify(bytes).count
            columns = []
            problems.append(error)
        }
        for finding in PayloadLint.findings(
            bytes, pushType: pushType, topic: topic, isBroadcast: isBroadcast,
            now: Clock.now().wallMilliseconds / 1000)
        {
            if finding.isError {
                problems.append(finding.problem)
            } else {
                warnings.append(finding.problem)
            }
        }
    }

    private mutating func check(_ topic: String) {
        let headers = NotificationHeaders(topic: topic, pushType: pushType)
        for problem in headers.validate(credential: .providerToken)
        where problem.field == .topic {
            let found = PayloadCheck.Problem(
                line: nil, column: nil, message: "--topic \(problem.message)")
            if problem.isError { problems.append(found) } else { warnings.append(found) }
        }
    }

    /// Reads and checks all payloads of a directory for `--payload-by COLUMN=DIR`.
    ///
    /// - Throws: If a payload can't be read, or if the directory has no payload.
    public static func directory(
        _ option: String, pushType: PushType, topic: String?
    ) throws(BroadsideError) -> [PayloadReport] {
        let directory = try PayloadFiles.choiceDirectory(option).directory
        var reports: [PayloadReport] = []
        for name in try PayloadFiles.payloadNames(in: directory) {
            reports.append(
                try PayloadReport(
                    file: "\(directory)/\(name)", pushType: pushType, topic: topic,
                    option: "payload-by"))
        }
        return reports
    }

    /// Whether this payload is for rows whose value has no payload file.
    public var isDefault: Bool {
        file.parts(atLast: "/").flatMap { PayloadFiles.value(ofName: String($0.behind)) }
            == "default"
    }

    /// Line about payloads that must not be sent; nil if all of them may be sent.
    public static func failure(of reports: [PayloadReport]) -> String? {
        let failures = reports.compactMap(\.failure)
        guard let first = failures.first else { return nil }
        let more = failures.count - 1
        return first + (more > 0 ? "; \(more) more files must not be sent" : "")
    }

    /// Warnings of all reports, one line each.
    static func warnings(of reports: [PayloadReport]) -> [String] {
        reports.flatMap { report in
            report.warnings.map { $0.description(file: report.name) }
        }
    }

    /// Texts of the warnings, without locations.
    static func warningTexts(of reports: [PayloadReport]) -> Set<String> {
        Set(reports.flatMap { $0.warnings.map(\.message) })
    }

    /// Warning that rows may have a value for which there is no payload.
    public static func missingDefault(_ option: String) -> String {
        "--payload-by \(option): rows with other values would be invalid (NoPayload): add a "
            + "default.json or --payload FILE"
    }

    /// The line about the reason why the payload must not be sent; nil if it may be sent.
    public var failure: String? {
        guard let first = problems.first else { return nil }
        let more = problems.count - 1
        return first.description(file: name)
            + (more > 0 ? " (and \(more) more)" : "")
    }

    /// All findings as human-readable text.
    public var text: String { text(problems[...]) }

    /// Findings that `failure` does not mention.
    public var restText: String { text(problems.dropFirst()) }

    private func text(_ shown: ArraySlice<PayloadCheck.Problem>) -> String {
        var text = ""
        func line(_ kind: String, _ problem: PayloadCheck.Problem) {
            text += ForeignText.escaped("\(kind): \(problem.description(file: file))") + "\n"
        }
        for problem in shown { line("error", problem) }
        for warning in warnings { line("warning", warning) }
        if let minifiedByteCount {
            assert(minifiedByteCount <= byteCount, "minifying adds no byte")
            let subject = isBroadcast ? "a broadcast" : "push type \(pushType.rawValue)"
            text +=
                "size      \(grouped(minifiedByteCount)) of \(grouped(limit)) bytes that \(subject) "
            text += "allows (\(grouped(byteCount)) with blanks and line breaks)\n"
            if !isBroadcast, !columns.isEmpty {
                let names = ForeignText.escaped(columns.joined(separator: ", "))
                text += "template  each row adds its \(names)\n"
            }
            if !isBroadcast, let fittedColumn {
                text +=
                    "shortened \(ForeignText.escaped(fittedColumn)), so that each payload fits\n"
            }
            if !isBroadcast { text += Self.legacyText(minifiedByteCount) }
        }
        text += "result    \(problems.isEmpty ? "can be sent" : "must not be sent"): "
        return text + counted(problems.count, "error") + ", "
            + counted(warnings.count, "warning") + "\n"
    }

    /// Line about the legacy gateway; empty if each of its commands can carry the payload.
    private static func legacyText(_ count: Int) -> String {
        let (limit, oldest) = (
            PayloadRules.maximumLegacyCount, PayloadRules.maximumOldestLegacyCount
        )
        if count > limit {
            return "legacy    too large for the binary gateway (\(grouped(limit)))\n"
        }
        guard count > oldest else { return "" }
        return "legacy    fits command 2 of the binary gateway (\(grouped(limit))), but not the "
            + "documented limit of commands 0 and 1 (\(oldest))\n"
    }

    private var limit: Int {
        isBroadcast ? BroadcastChannel.payloadCountMax : PayloadRules.maximumCount(for: pushType)
    }

    /// All findings as JSON, one line.
    public var json: String {
        var text = "{\"file\":\(JSONLine.quoted(file)),\"push_type\":\"\(pushType.rawValue)\","
        text += "\"bytes\":\(byteCount),"
        text += "\"minified_bytes\":\(minifiedByteCount.map { "\($0)" } ?? "null"),"
        text += "\"columns\":[\(columns.map(JSONLine.quoted).joined(separator: ","))],"
        text += "\"fit\":\(fittedColumn.map(JSONLine.quoted) ?? "null"),"
        text += "\"limit\":\(limit),"
        text += "\"errors\":\(Self.json(problems)),\"warnings\":\(Self.json(warnings))}\n"
        return text
    }

    private static func json(_ problems: [PayloadCheck.Problem]) -> String {
        let objects = problems.map { problem in
            "{\"line\":\(problem.line.map { "\($0)" } ?? "null"),"
                + "\"column\":\(problem.column.map { "\($0)" } ?? "null"),"
                + "\"message\":\(JSONLine.quoted(problem.message))}"
        }
        return "[\(objects.joined(separator: ","))]"
    }
}
