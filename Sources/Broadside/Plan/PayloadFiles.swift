internal import BroadsideAPNs
internal import BroadsideLegacyGateway
internal import BroadsidePayloads
import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// A campaign's payloads, read from their files and compiled, and the columns that they need.
struct PayloadFiles {
    let set: PayloadSet
    /// SHA-256 that identifies the campaign's payloads, hexadecimal.
    let digest: String
    /// Columns in use besides the token column, each with the option or location that requires it.
    let columns: [(name: String, location: String)]
    /// The columns of `columns` that a row may lack, because each use has a default.
    let columnsWithDefault: Set<String>
    /// Value of apns-collapse-id if it is the same for all rows.
    let collapseID: String?
    /// Warnings of `payload check`.
    let warnings: [String]
    /// The texts of the warnings, without locations.
    let warningTexts: Set<String>
    /// File names in the order of the set's templates, with their options.
    let names: [String]

    /// Limit on the size of a payload file, including whitespace, bytes.
    static let fileLimit = 1 << 20
    /// Limit on the size of all payload files together, bytes.
    static let directoryLimit = 16 << 20

    init(_ options: SendOptions) throws(BroadsideError) {
        try options.checkArms()
        let collapse = try Self.collapse(options)
        let hasRowCollapse = collapse?.isPersonal == true || options.armsHaveCollapse
        collapseID = collapse.flatMap { template in
            hasRowCollapse ? nil : String(decoding: template.constant, as: UTF8.self)
        }
        let command = options.wireProtocol == .binary ? options.binaryCommand : nil
        var reader = Reader(
            pushType: options.pushType, topic: Self.commonTopic(options), command: command,
            checks: options.payloadCheck == .error)
        var choice: PayloadSet.Choice?
        var common: Int?
        if let path = options.payload {
            common = try reader.add(path, shownAs: InputName(path, option: "payload"))
        }
        if let byValue = options.payloadBy {
            choice = try Self.choice(byValue, common: common, &reader)
        } else if let bytes = options.payloadBytes {
            _ = try reader.add(bytes, shownAs: InputName("--payload"))
        } else if common == nil, options.arms.allSatisfy({ $0.payload == nil }) {
            throw .usage("payload", "is missing: add --payload FILE")
        }
        let hasCommon = choice != nil || common != nil || options.payloadBytes != nil
        var armIdentity: [UInt8] = []
        let arms = try Self.arms(options, hasCommon: hasCommon, identity: &armIdentity) {
            (path, name, identity) throws(BroadsideError) in
            let before = reader.identity.count
            let template = try reader.add(path, shownAs: name)
            identity += reader.identity[before...]
            reader.identity.removeSubrange(before...)
            return template
        }
        reader.identity += armIdentity
        if let failure = PayloadReport.failure(of: reader.reports) { throw .request(failure) }
        var warnings = PayloadReport.warnings(of: reader.reports)
        if reader.checks, choice?.hasFallback == false, let option = options.payloadBy {
            warnings.append(PayloadReport.missingDefault(option))
        }
        self.warnings = warnings
        warningTexts = PayloadReport.warningTexts(of: reader.reports)
        assert(reader.names.count == reader.templates.count, "each template has its file's name")
        names = reader.names
        set = PayloadSet(
            templates: reader.templates, choice: choice,
            collapse: hasRowCollapse ? collapse : nil,
            topic: try Self.rowTopic(options), arms: arms,
            limit: command?.payloadLimit
                ?? PayloadRules.maximumCount(for: options.pushType))
        digest = hexadecimal(sha256(reader.identity))
        let headers =
            [collapse, set.topic?.template].compactMap(\.self)
            + (arms?.own.compactMap(\.collapse) ?? [])
        var required = reader.requiredColumns.union(headers.flatMap(\.requiredColumns))
        if let choice, !choice.hasFallback { required.insert(choice.column) }
        var columns: [(name: String, location: String)] = []
        if let choice { columns.append((choice.column, "--payload-by \(options.payloadBy ?? "")")) }
        for name in collapse?.columns ?? [] { columns.append((name, "--collapse-id")) }
        for name in arms?.own.compactMap(\.collapse).flatMap(\.columns) ?? [] {
            columns.append((name, "--arm-collapse-id"))
        }
        for name in set.topic?.template.columns ?? [] { columns.append((name, Self.topicLocation)) }
        self.columns = (columns + reader.columns).reduce(into: []) { known, column in
            if !known.contains(where: { $0.name == column.name }) { known.append(column) }
        }
        columnsWithDefault = Set(self.columns.map(\.name)).subtracting(required)
    }

    /// Location that messages name for columns that the topic requires.
    static let topicLocation = "--topic"

    /// Topic of the first row that was rendered; nil if no row was rendered, or if rows name no
    /// topics.
    var firstTopic: String? { self.set.topic?.topics.names.first }

    /// Topic of all rows; nil if only the certificate or the rows name topics.
    private static func commonTopic(_ options: SendOptions) -> String? {
        options.topic.flatMap { $0.contains("{{") ? nil : $0 }
    }

    /// Topic template, if each row names its own topic.
    private static func rowTopic(
        _ options: SendOptions
    ) throws(BroadsideError) -> PayloadSet.RowTopic? {
        guard let text = options.topic, text.contains("{{"), options.wireProtocol == .http2 else {
            return nil
        }
        do throws(TextTemplate.Problem) {
            let template = try TextTemplate(text)
            guard template.isPersonal else { return nil }
            return .init(template: template, topics: RowTopics(pushType: options.pushType))
        } catch {
            throw .usage("topic", "\(error.message)")
        }
    }

    private static func collapse(_ options: SendOptions) throws(BroadsideError) -> TextTemplate? {
        guard let text = options.collapseID else { return nil }
        if options.armsHaveCollapse {
            return try collapse(text, option: "collapse-id", ofArm: nil)
        }
        do throws(TextTemplate.Problem) {
            let template = try TextTemplate(text)
            let limit = NotificationHeaders.maximumCollapseIDCount
            if template.isPersonal, template.constant.count > limit {
                throw TextTemplate.Problem(
                    message: "must have at most \(limit) bytes; this has "
                        + "\(template.constant.count) before its columns are filled in")
            }
            return template
        } catch {
            throw .usage("collapse-id", "\(error.message)")
        }
    }

    /// Payloads in a directory, each named after a value of the column.
    private static func choice(
        _ option: String, common: Int?, _ reader: inout Reader
    ) throws(BroadsideError) -> PayloadSet.Choice {
        let (column, directory) = try choiceDirectory(option)
        let names = try payloadNames(in: directory)
        reader.identity += Array("by \(column)\n".utf8)
        var indices: [String: Int] = [:]
        for name in names {
            reader.identity += Array("\(name)\n".utf8)
            guard let value = Self.value(ofName: name) else { continue }
            assert(indices[value] == nil, "each value has one file")
            indices[value] = try reader.add(
                "\(directory)/\(name)",
                shownAs: InputName("\(directory)/\(name)", option: "payload-by"),
                isFromDirectory: true)
        }
        // The file for other values, `default.json`, is also the file of the value `default`.
        return PayloadSet.Choice(
            column: column, names: indices, fallback: indices["default"] ?? common)
    }

    /// Refuses a directory as a payload file, because `--payload-by` is the option for directories.
    static func checkFile(_ path: String, shownAs name: InputName) throws(BroadsideError) {
        guard try isDirectoryPath(path) else { return }
        throw .request(
            name,
            " is a directory: name a file, or add --payload-by COLUMN=DIR to choose each row's "
                + "payload by a column")
    }

    /// Splits `--payload-by COLUMN=DIR`.
    static func choiceDirectory(
        _ option: String
    ) throws(BroadsideError) -> (column: String, directory: String) {
        guard let (column, directory) = option.parts(atFirst: "="), !column.isEmpty,
            !directory.isEmpty
        else {
            throw .usage(
                "payload-by",
                "'\(option)' is not COLUMN=DIR: name a column of the list and a "
                    + "directory, like locale=payloads")
        }
        return (String(column), String(directory))
    }

    /// Returns the column value for which a row gets the payload file with this name; nil if no
    /// payload file can have this name.
    static func value(ofName name: String) -> String? {
        let ending = ".json"
        guard name.lowercased().hasSuffix(ending), !name.hasPrefix(".") else { return nil }
        return String(name.dropLast(ending.count))
    }

    /// Names of a directory's payload files, sorted.
    static func payloadNames(in directory: String) throws(BroadsideError) -> [String] {
        guard let all = SystemCall.names(inDirectory: directory) else {
            throw .file(
                option: "payload-by", directory, errno: errno, "name a directory of payload files")
        }
        var names: [String] = []
        var known: [String: String] = [:]
        for name in all {
            guard let value = Self.value(ofName: name) else { continue }
            if let other = known.updateValue(name, forKey: value) {
                let (first, second) = (visible(other), visible(name))
                throw .usage(
                    "payload-by",
                    "\(directory): '\(min(first, second))' and '\(max(first, second))' are payloads of "
                        + "the same value: remove one")
            }
            names.append(name)
            // Reserves one template for --payload.
            guard names.count < PayloadSet.templateLimit else {
                throw .usage(
                    "payload-by",
                    "\(directory): more than \(PayloadSet.templateLimit - 1) payload "
                        + "files: is it the right directory?")
            }
        }
        guard !names.isEmpty else {
            throw .usage(
                "payload-by",
                "\(directory): has no file like pt-BR.json or default.json: add the "
                    + "payloads")
        }
        return names.sorted()
    }

    /// File name with an escape for each character that is not ASCII, so that two Unicode forms of
    /// one text look different.
    private static func visible(_ name: String) -> String {
        name.unicodeScalars.map {
            $0.isASCII ? String($0) : "\\u{\(String($0.value, radix: 16))}"
        }.joined()
    }
}

extension PayloadFiles {
    /// Reads and compiles one file at a time.
    private struct Reader {
        let pushType: PushType
        /// Topic of all rows; nil: unknown, or different per row.
        let topic: String?
        /// The frame format of a legacy gateway, which limits payloads; nil for HTTP/2.
        let command: BinaryCommand?
        var templates: [PayloadTemplate] = []
        var columns: [(name: String, location: String)] = []
        /// Columns with a placeholder that has no default.
        private(set) var requiredColumns: Set<String> = []
        /// Bytes that the digest covers: a single payload, or several payloads with their names.
        var identity: [UInt8] = []
        /// Whether payloads are checked against Apple's rules.
        let checks: Bool
        private(set) var reports: [PayloadReport] = []
        private(set) var names: [String] = []
        private var byteCount = 0
        private var directoryCount = 0

        init(pushType: PushType, topic: String?, command: BinaryCommand?, checks: Bool) {
            self.pushType = pushType
            self.topic = topic
            self.command = command
            self.checks = checks
        }

        mutating func add(
            _ path: String, shownAs name: InputName, isFromDirectory: Bool = false
        ) throws(BroadsideError) -> Int {
            try PayloadFiles.checkFile(path, shownAs: name)
            let payload = try readFile(
                path, shownAs: name, limit: PayloadFiles.fileLimit, mustStay: true)
            return try add(
                payload, path, shownAs: name, isFromDirectory: isFromDirectory)
        }

        /// Adds a payload that is in memory.
        mutating func add(
            _ payload: [UInt8], _ path: String = "", shownAs name: InputName,
            isFromDirectory: Bool = false
        ) throws(BroadsideError) -> Int {
            byteCount += payload.count
            guard byteCount <= PayloadFiles.directoryLimit else {
                throw .request(
                    name,
                    ": the payload files together have more than \(PayloadFiles.directoryLimit) "
                        + "bytes: use fewer or smaller ones")
            }
            let bytes = payload.rawSpan
            identity += payload
            names.append("\(name)")
            if checks {
                let report = report(payload, path, name)
                // Keeps the order of `payload check`, in which the files of a directory come first.
                reports.insert(report, at: isFromDirectory ? directoryCount : reports.count)
                if isFromDirectory { directoryCount += 1 }
                // Checks all files before the first error ends the command.
                guard report.failure == nil else {
                    templates.append(PayloadSet(constant: []).templates[0])
                    return templates.count - 1
                }
            }
            if let problem = PayloadCheck.syntaxProblem(bytes) {
                throw .request(name, problem.description(file: ""))
            }
            do throws(PayloadCheck.Problem) {
                let template = try PayloadTemplate(bytes, checksValues: checks)
                if let command, let problem = PayloadFiles.sizeProblem(template, command) {
                    throw problem
                }
                if let problem = PayloadCheck.sizeProblem(template, pushType: pushType) {
                    throw problem
                }
                for use in template.uses {
                    columns.append(
                        (use.column, "\(name), line \(use.line), column \(use.character)"))
                    if !template.hasDefault(for: use.column) { requiredColumns.insert(use.column) }
                }
                templates.append(template)
            } catch {
                throw .request(name, error.description(file: ""))
            }
            return templates.count - 1
        }

        private func report(_ payload: [UInt8], _ path: String, _ name: InputName) -> PayloadReport
        {
            guard let command else {
                return PayloadReport(
                    payload, file: path, shownAs: name, pushType: pushType, topic: topic)
            }
            // The gateway's protocol has no push type: the content determines it.
            let bytes = payload.rawSpan
            return PayloadReport(
                payload, file: path, shownAs: name, pushType: PayloadLint.legacyPushType(bytes),
                sizeProblem: { PayloadFiles.sizeProblem($0, command) })
        }
    }
}
