import BroadsideSupport

/// What the value of an option is. Parser, help, completions, the campaign file and the rules for
/// files go by it.
enum OptionKind: Sendable, Equatable {
    /// What becomes of the file that an option names.
    enum FileUse: Sendable {
        /// It is read.
        case read
        /// It is written, or replaced.
        case written
        /// A socket is made there.
        case socket
        /// It is a ledger's directory.
        case ledger
        /// It is a folder in which files are made.
        case folder
        /// It is a ledger's directory, or has ledgers below it, and outputs beside these; `none`: none is read.
        case ledgers
    }

    /// The option has no value.
    case flag
    /// Any text.
    case text
    /// A number; a campaign file may write it without quotes.
    case number
    /// One of these.
    case choice([String])
    /// Any text; these are known.
    case known([String])
    /// Some of these, with commas between them.
    case list([String])
    /// A file or a directory.
    case file(FileUse)
    /// One of these, or else a file that is read.
    case choiceOrFile([String])
    /// A file that is read, unless the value begins with one of these.
    case fileUnless([String])
    /// `COLUMN=DIR`: a directory that is read, behind a column's name.
    case columnDirectory
    /// A file that is written, or `HOST:PORT`.
    case fileOrEndpoint

    /// Whether a campaign file may give the value as a JSON number.
    var takesNumber: Bool {
        switch self {
        case .number: true
        case .choice(let choices):
            choices.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
        default: false
        }
    }

    /// What becomes of the file that a value names; nil if it names none.
    func fileUse(of value: String) -> FileUse? {
        guard value != "-" else { return nil }
        switch self {
        case .file(.ledgers) where value == EarlierLedgerOptions.none: return nil
        case .file(let use): return use
        case .columnDirectory: return .read
        case .fileUnless(let prefixes):
            return prefixes.contains { value.starts(withBytes: $0) } ? nil : .read
        case .choiceOrFile(let choices): return choices.contains(value) ? nil : .read
        case .fileOrEndpoint: return value.contains("/") || !value.contains(":") ? .written : nil
        case .flag, .text, .number, .choice, .known, .list: return nil
        }
    }
}
