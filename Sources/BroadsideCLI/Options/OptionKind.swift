import BroadsideSupport

/// Kind of an option's value, used by parser, help, completions, the campaign file and the rules
/// for files.
enum OptionKind: Sendable, Equatable {
    /// The use of the file that an option names.
    enum FileUse: Sendable {
        /// The file is read.
        case read
        /// The file is written or replaced.
        case written
        /// Path of a socket to create.
        case socket
        /// Directory of a ledger.
        case ledger
        /// Directory for new files.
        case folder
        /// Directory of a ledger, or of several ledgers with outputs beside them; `none`: no ledger
        /// is read.
        case ledgers
    }

    /// No value.
    case flag
    /// Any text.
    case text
    /// Number, which a campaign file may contain without quotes.
    case number
    /// One of these values.
    case choice([String])
    /// Any text; these values are suggested.
    case known([String])
    /// Comma-separated list of these values.
    case list([String])
    /// File or directory.
    case file(FileUse)
    /// One of these values, or else a file that is read.
    case choiceOrFile([String])
    /// File that is read, unless the value has one of these prefixes.
    case fileUnless([String])
    /// `COLUMN=DIR`: a column's name and a directory that is read.
    case columnDirectory
    /// `NAME=FILE`: a name and a file that is read.
    case namedFile
    /// File that is written, or `HOST:PORT`.
    case fileOrEndpoint

    /// Whether a campaign file may contain the value as a JSON number.
    var takesNumber: Bool {
        switch self {
        case .number: true
        case .choice(let choices):
            choices.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
        default: false
        }
    }

    /// Use of the file that a value names; nil if it names none.
    func fileUse(of value: String) -> FileUse? {
        guard value != "-" else { return nil }
        switch self {
        case .file(.ledgers) where value == EarlierLedgerOptions.none: return nil
        case .file(let use): return use
        case .columnDirectory, .namedFile: return .read
        case .fileUnless(let prefixes):
            return prefixes.contains { value.starts(withBytes: $0) } ? nil : .read
        case .choiceOrFile(let choices): return choices.contains(value) ? nil : .read
        case .fileOrEndpoint: return value.contains("/") || !value.contains(":") ? .written : nil
        case .flag, .text, .number, .choice, .known, .list: return nil
        }
    }
}
