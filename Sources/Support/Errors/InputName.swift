/// A file that is read, as messages call it: with the option that names it, if one does.
package struct InputName: Sendable, CustomStringConvertible {
    /// The option's long name, without dashes; nil if none names it.
    let option: String?
    package let description: String

    /// A file that an option names. What may be a secret in a name's place is left out.
    package init(_ file: String, option: String) {
        assert(!option.hasPrefix("-"), "an option is named without its dashes")
        self.option = option
        description =
            FileValue.isShown(file, option: option) ? "--\(option) \(file)" : "--\(option)"
    }

    /// A file, or what is read in place of one, that no option names.
    package init(_ description: String) {
        option = nil
        self.description = description
    }

    package static let standardInput = InputName("standard input")
}
