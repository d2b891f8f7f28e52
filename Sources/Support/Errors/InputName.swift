/// The name of an input file in messages, with the option that names it.
package struct InputName: Sendable, CustomStringConvertible {
    /// The long name, without dashes, of the option that names the file; nil if no option names it.
    let option: String?
    package let description: String

    /// Creates the name of a file given by an option. If the value may be a secret instead of a
    /// file's name, only the option is named. If it is a device token, the token is shortened.
    package init(_ file: String, option: String) {
        assert(!option.hasPrefix("-"), "an option is named without its dashes")
        self.option = option
        description =
            FileValue.isShown(file, option: option)
            ? "--\(option) \(FileValue.shown(file))" : "--\(option)"
    }

    /// Creates the name of an input that is not given by an option.
    package init(_ description: String) {
        option = nil
        self.description = FileValue.shown(description)
    }

    /// Returns whether the file was given by this option.
    package func isOf(option: String) -> Bool { self.option == option }

    package static let standardInput = InputName("standard input")
}
