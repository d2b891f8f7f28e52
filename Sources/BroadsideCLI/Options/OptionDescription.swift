import BroadsideSupport

/// One option of a command: what `--help`, the parser and the nearest-name advice know of it.
struct OptionDescription: Sendable {
    /// The long name without its dashes.
    let name: String
    let kind: OptionKind
    /// The value's name in the help; nil: a flag without a value.
    let placeholder: String?
    let help: String
    /// May be given more than once.
    var isRepeatable = false

    init(
        _ name: String, _ kind: OptionKind, _ placeholder: String?, _ help: String,
        isRepeatable: Bool = false
    ) {
        precondition((kind == .flag) == (placeholder == nil), "only a flag has no value")
        self.name = name
        self.kind = kind
        self.placeholder = placeholder
        self.help = help
        self.isRepeatable = isRepeatable
    }

    /// How it is written: `--ledger DIR`.
    var call: String { "--\(name)" + (placeholder.map { " \($0)" } ?? "") }

    /// Whether a text names a file or a directory here.
    func isPath(_ text: String) -> Bool { kind.fileUse(of: text) != nil }

    /// The path in a text that names one, with the column in front of it taken off.
    func path(in text: String) -> String {
        guard kind == .columnDirectory, let parts = text.parts(atFirst: "=") else { return text }
        return String(parts.behind)
    }

    /// The text with its path in a folder.
    func withPath(_ text: String, in folder: String) -> String {
        guard kind == .columnDirectory, let (column, path) = text.parts(atFirst: "=") else {
            return folder + text
        }
        return path.isEmpty || path.starts(withBytes: "/") ? text : "\(column)=\(folder)\(path)"
    }
}

/// A group of options under a heading of the help.
struct OptionSection: Sendable {
    let title: String
    let options: [OptionDescription]

    /// The same with more options behind.
    func adding(_ more: [OptionDescription]) -> OptionSection {
        OptionSection(title: title, options: options + more)
    }
}
