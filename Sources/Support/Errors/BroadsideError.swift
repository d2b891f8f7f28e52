/// A failure of a command, with its exit code.
public struct BroadsideError: Error, Sendable {
    /// A one-line description of the problem and its remedy.
    public var message: String
    /// The documented exit code.
    public var exitCode: Int32
    /// The long name, without dashes, of the invalid option; nil if the error concerns no option.
    public private(set) var option: String?
    /// True if a file changed after it was opened.
    package private(set) var isChange = false
    /// True if a file's content is not what its writer wrote.
    package private(set) var isDamage = false
    /// True if a list has a position after which the row boundaries are unknown.
    package private(set) var isFaultyList = false

    /// Creates an error with an exit code.
    public init(_ message: String, exitCode: Int32) {
        self.message = ForeignText.escaped(SecretText.masked(message))
        self.exitCode = exitCode
    }

    /// Creates an error about an option.
    ///
    /// - Parameters:
    ///   - option: The option's long name, without dashes.
    ///   - problem: The text after the option's name in the message: the problem and its remedy.
    package init(option: String, _ problem: String, exitCode: Int32) {
        assert(!option.hasPrefix("-"), "an option is named without its dashes")
        self.init("--\(option) \(problem)", exitCode: exitCode)
        self.option = option
    }

    /// Returns the error for a request that was found to be invalid before anything was sent.
    package static func request(_ message: String) -> BroadsideError {
        BroadsideError(message, exitCode: ExitCode.badRequest)
    }

    /// Returns the error for an option that was found to be invalid before anything was sent.
    package static func usage(_ option: String, _ problem: String) -> BroadsideError {
        BroadsideError(option: option, problem, exitCode: ExitCode.badRequest)
    }

    /// Creates an error about an input file.
    ///
    /// - Parameter problem: The text after the file's name in the message, beginning with a space
    ///   or a colon.
    package init(_ name: InputName, _ problem: String, exitCode: Int32) {
        self.init("\(name)\(problem)", exitCode: exitCode)
        option = name.option
    }

    /// Returns the error for a file that the request names and that was found to be invalid before
    /// anything was sent.
    ///
    /// - Parameter problem: The text after the file's name in the message, beginning with a space
    ///   or a colon.
    package static func request(_ name: InputName, _ problem: String) -> BroadsideError {
        BroadsideError(name, problem, exitCode: ExitCode.badRequest)
    }

    /// Returns the error for a file that the request names and that was found to be truncated or
    /// damaged before anything was sent.
    ///
    /// - Parameter problem: The text after the file's name in the message, beginning with a space
    ///   or a colon.
    package static func damaged(_ name: InputName, _ problem: String) -> BroadsideError {
        var error = BroadsideError.request(name, problem)
        error.isDamage = true
        return error
    }

    /// Returns an error for a faulty list. After some position in such a list, the row boundaries
    /// are unknown.
    ///
    /// - Parameter problem: The text after the list's name in the message, beginning with a space
    ///   or a colon.
    package static func faultyList(_ name: InputName, _ problem: String) -> BroadsideError {
        var error = BroadsideError.request(name, problem)
        error.isFaultyList = true
        return error
    }

    /// Returns an error for a file that changed while it was read.
    package static func changed(_ name: InputName, _ how: String) -> BroadsideError {
        var error = BroadsideError(
            name, " has changed while it was read (\(how)): \(restoreAdvice)",
            exitCode: ExitCode.disk)
        error.isChange = true
        return error
    }

    private static let restoreAdvice = "restore it"

    /// Returns the error of a command that has sent nothing and that accepts a changed file.
    package var ofRepeatableCommand: BroadsideError {
        guard isChange, message.hasSuffix(Self.restoreAdvice) else { return self }
        var error = self
        error.message =
            String(message.dropLast(Self.restoreAdvice.count))
            + "run the command again when no program writes to it"
        return error
    }

    /// The error for an output pipe that its reader has closed; the command then ends without a
    /// message.
    package static var outputClosed: BroadsideError {
        BroadsideError("", exitCode: ExitCode.complete)
    }

    /// Returns the error with the name of another option in place of the error's own option. Used
    /// if both options name the same file.
    ///
    /// - Parameter other: The option that was given, without dashes.
    package func attributed(to other: String) -> BroadsideError {
        guard let option, message.starts(withBytes: "--\(option) ") else { return self }
        return BroadsideError(
            option: other, String(message.dropFirst(option.count + 3)), exitCode: exitCode)
    }

    /// Returns the error with `location`, its option's position in a campaign file, at the
    /// beginning of the message.
    package func located(at location: String) -> BroadsideError {
        var error = self
        error.message = ForeignText.escaped("\(location): \(message)")
        return error
    }
}
