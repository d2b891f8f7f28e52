import BroadsideTestSupport

/// A piece of a document that tests look at: a block of commands, of output, or of hidden set-up.
struct DocumentedPiece: Equatable {
    enum Kind: Equatable {
        /// ```` ```sh ````: run in order, ending with this exit code.
        case commands(exitCode: Int)
        /// The same behind `<!-- background: TEXT -->`: runs beside what follows, which waits until it
        /// has said TEXT.
        case background(ready: String)
        /// The same behind `<!-- Ctrl-C when: COMMAND -->`: interrupted once COMMAND succeeds.
        case interrupted(when: String, exitCode: Int)
        /// The same behind `<!-- not run: WHY -->`: its options are looked at alone.
        case notRun
        /// The same behind `<!-- run by: SCRIPT... -->`: these scripts of the repository run its lines.
        case runElsewhere(scripts: [String])
        /// ```` ```json5 ```` or ```` ```json ```` behind `<!-- read by: COMMAND -->`: a file that
        /// COMMAND reads as `shown.json5`, ending with 0.
        case file(reader: String)
        /// ```` ```text ````: what the commands before it print, but for numbers.
        case output
        /// `<!-- test ... -->`: what a reader has, and a test has to make.
        case hidden
    }

    let kind: Kind
    /// The 1-based line on which its text begins.
    let line: Int
    let text: String
    /// Whether it needs a rare program: `<!-- needs: NAME... -->` before it in its section.
    var isRare = false
}

/// The comments in front of a block that say how it is run.
private struct Directives {
    var notRun = false
    var exitCode: Int?
    var background: String?
    var interrupt: String?
    var scripts: [String] = []
    var reader: String?

    /// - Throws: Where the comment is none of them: a typing error would go unnoticed.
    mutating func add(_ comment: Substring) throws {
        func value(_ prefix: String) -> String? {
            comment.hasPrefix(prefix) ? String(comment.dropFirst(prefix.count)) : nil
        }
        if let reason = value("not run: "), !reason.isEmpty {
            notRun = true
        } else if let code = value("exit ").flatMap({ Int($0) }) {
            exitCode = code
        } else if let text = value("background: ") {
            background = text
        } else if let condition = value("Ctrl-C when: ") {
            interrupt = condition
        } else if let names = value("run by: ") {
            scripts = names.split(separator: " ").map(String.init)
        } else if let command = value("read by: ") {
            reader = command
        } else {
            throw TestFailure(
                "unknown comment '\(comment)': test, not run: WHY, run by: SCRIPT..., exit N, "
                    + "background: TEXT, Ctrl-C when: COMMAND, read by: COMMAND or needs: NAME...")
        }
    }

    /// Whether the comment says what is needed up to the next heading: `needs: DuckDB, pandas`.
    ///
    /// - Throws: If a name is not one of `RareProgram`.
    static func needs(_ comment: Substring) throws(TestFailure) -> Bool {
        guard comment.hasPrefix("needs: ") else { return false }
        for name in comment.dropFirst("needs: ".count).split(separator: ", ") {
            guard RareProgram(rawValue: String(name)) == nil else { continue }
            let known = RareProgram.allCases.map(\.rawValue).joined(separator: ", ")
            throw TestFailure("unknown program '\(name)': \(known)")
        }
        return true
    }

    /// What a block of this language is; nil for one that another test looks at.
    func kind(of language: Substring) throws(TestFailure) -> DocumentedPiece.Kind? {
        switch language {
        case "sh": return commands
        case "text": return .output
        case "json", "json5":
            guard let reader else { throw TestFailure("say what reads it: read by: COMMAND") }
            return .file(reader: reader)
        case "swift": return nil
        default: throw TestFailure("say what it is: ```sh, ```text, ```json5")
        }
    }

    private var commands: DocumentedPiece.Kind {
        if notRun { return .notRun }
        if !scripts.isEmpty { return .runElsewhere(scripts: scripts) }
        if let background { return .background(ready: background) }
        if let interrupt { return .interrupted(when: interrupt, exitCode: exitCode ?? 0) }
        return .commands(exitCode: exitCode ?? 0)
    }
}

extension DocumentedPiece {
    /// The pieces of a document, in its order.
    ///
    /// - Throws: `name:line: what is wrong`.
    static func all(in text: String, name: String) throws -> [DocumentedPiece] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var pieces: [DocumentedPiece] = []
        var directives = Directives()
        var isRare = false
        var index = 0
        /// The lines up to `end`, without an indentation.
        func block(upTo end: String, indentation: Int) throws -> String {
            let start = index
            while index < lines.count, trimmed(lines[index]) != end { index += 1 }
            guard index < lines.count else {
                throw TestFailure("\(name):\(start): this block has no end \(end)")
            }
            defer { index += 1 }
            return lines[start..<index].map { line in
                String(line.dropFirst(min(indentation, line.prefix { $0 == " " }.count)))
            }.joined(separator: "\n")
        }
        while index < lines.count {
            let line = lines[index]
            let indentation = line.prefix { $0 == " " }.count
            let content = trimmed(line)
            index += 1
            let first = index + 1
            if content == "<!-- test" {
                let text = try block(upTo: "-->", indentation: indentation)
                pieces.append(
                    DocumentedPiece(kind: .hidden, line: first, text: text, isRare: isRare))
            } else if content.first == "#" {
                isRare = false
            } else if let comment = content.wholeMatch(of: /<!-- (.*) -->/) {
                do {
                    if try Directives.needs(comment.1) {
                        isRare = true
                    } else {
                        try directives.add(comment.1)
                    }
                } catch {
                    throw TestFailure("\(name):\(index): \(error)")
                }
            } else if content.hasPrefix("```") {
                let text = try block(upTo: "```", indentation: indentation)
                do throws(TestFailure) {
                    if let kind = try directives.kind(of: content.dropFirst(3)) {
                        pieces.append(
                            DocumentedPiece(kind: kind, line: first, text: text, isRare: isRare))
                    }
                } catch {
                    throw TestFailure("\(name):\(first - 1): \(error)")
                }
                directives = Directives()
            } else if indentation >= 4,
                content.prefixMatch(
                    of: #/(?:\$ )?(?:broadside|swift|tools/[a-z]|curl|sudo|perf) ?/#)
                    != nil,
                !(index > 1 && isProse(lines[index - 2]))
            {
                throw TestFailure("\(name):\(index): commands stand in ```sh, so that they are run")
            }
        }
        return pieces
    }

    private static func trimmed(_ line: Substring) -> Substring {
        var line = line.drop { $0 == " " }
        while line.last == " " { line.removeLast() }
        return line
    }

    /// Whether an indented line behind this one only goes on with its sentence.
    private static func isProse(_ line: Substring) -> Bool {
        !trimmed(line).isEmpty
    }
}
