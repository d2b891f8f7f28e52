import BroadsideSupport

/// Description of an option for `--help`, the parser and suggestions of similar names.
struct OptionDescription: Sendable {
    /// Long name without dashes.
    let name: String
    let kind: OptionKind
    /// Placeholder of the value in the help; nil for a flag without a value.
    let placeholder: String?
    var help: String
    /// Whether the option may be repeated.
    var isRepeatable = false
    /// Whether the words of the command are the option's values, as in `--all DIR...`. Such a flag
    /// may be repeated, and its first word may follow an equals sign.
    var isBeforeOperands = false

    init(
        _ name: String, _ kind: OptionKind, _ placeholder: String?, _ help: String,
        isRepeatable: Bool = false, isBeforeOperands: Bool = false
    ) {
        assert(
            name.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x2D || $0 <= 0x39 },
            "\(name): an option is written in lower case")
        assert(!help.isEmpty, "\(name): an option has a description")
        precondition((kind == .flag) == (placeholder == nil), "only a flag has no value")
        self.name = name
        self.kind = kind
        self.placeholder = placeholder
        self.help = help
        self.isRepeatable = isRepeatable
        self.isBeforeOperands = isBeforeOperands
    }

    /// Option with its placeholder, such as `--ledger DIR`.
    var call: String { "--\(name)" + (placeholder.map { " \($0)" } ?? "") }

    /// Whether a value of this option may be empty. False for paths and repeatable options, because
    /// their empty values would select nothing.
    var mayBeEmpty: Bool { !isPath("") && !isRepeatable }

    /// Whether a value of this option is a path of a file or directory.
    func isPath(_ text: String) -> Bool { kind.fileUse(of: text) != nil }

    /// Whether a value consists of a name, an equals sign and a path.
    private var hasName: Bool { kind == .columnDirectory || kind == .namedFile }

    /// Returns the path that an option's value contains: the text after `=` if the value consists
    /// of a name and a path, and otherwise the whole value.
    func path(in text: String) -> String {
        guard hasName, let parts = text.parts(atFirst: "=") else { return text }
        return String(parts.behind)
    }

    /// Returns the option's value. If the path in it is relative, the folder is put before the
    /// path.
    func withPath(_ text: String, in folder: String) -> String {
        guard hasName, let (column, path) = text.parts(atFirst: "=") else {
            return folder + text
        }
        return path.isEmpty || path.starts(withBytes: "/") ? text : "\(column)=\(folder)\(path)"
    }
}

/// Options under a heading of the help.
struct OptionSection: Sendable {
    let title: String
    let options: [OptionDescription]

    /// Returns the section with more options at its end.
    func adding(_ more: [OptionDescription]) -> OptionSection {
        OptionSection(title: title, options: options + more)
    }
}
