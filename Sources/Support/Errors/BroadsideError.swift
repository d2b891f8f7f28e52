/// Why a command could not do its work, with the exit code that says so.
public struct BroadsideError: Error, Sendable {
    /// One line: what is wrong, and how to fix it.
    public var message: String
    /// The documented exit code.
    public var exitCode: Int32
    /// The long name, without dashes, of the option that is wrong; nil if it is none of them.
    public private(set) var option: String?
    /// A file is not what it was when it was opened.
    package private(set) var isChange = false
    /// A file is not what its writer wrote.
    package private(set) var isDamage = false
    /// A list has a place from which on nobody knows where its rows begin.
    package private(set) var isFaultyList = false

    /// An error with the exit code that it leads to.
    public init(_ message: String, exitCode: Int32) {
        self.message = ForeignText.escaped(SecretText.masked(message))
        self.exitCode = exitCode
    }

    /// An error about an option.
    ///
    /// - Parameters:
    ///   - option: Its long name, without dashes.
    ///   - problem: What follows the name in the message: what is wrong, and how to fix it.
    package init(option: String, _ problem: String, exitCode: Int32) {
        assert(!option.hasPrefix("-"), "an option is named without its dashes")
        self.init("--\(option) \(problem)", exitCode: exitCode)
        self.option = option
    }

    /// The request itself is wrong; nothing was sent.
    package static func request(_ message: String) -> BroadsideError {
        BroadsideError(message, exitCode: ExitCode.badRequest)
    }

    /// An option of the request is wrong; nothing was sent.
    package static func usage(_ option: String, _ problem: String) -> BroadsideError {
        BroadsideError(option: option, problem, exitCode: ExitCode.badRequest)
    }

    /// An error about a file that is read.
    ///
    /// - Parameter problem: What follows the file's name in the message, its blank or colon first.
    package init(_ name: InputName, _ problem: String, exitCode: Int32) {
        self.init("\(name)\(problem)", exitCode: exitCode)
        option = name.option
    }

    /// A file that the request names is wrong; nothing was sent.
    ///
    /// - Parameter problem: What follows the file's name in the message, its blank or colon first.
    package static func request(_ name: InputName, _ problem: String) -> BroadsideError {
        BroadsideError(name, problem, exitCode: ExitCode.badRequest)
    }

    /// A file that the request names is cut off or damaged; nothing was sent.
    ///
    /// - Parameter problem: What follows the file's name in the message, its blank or colon first.
    package static func damaged(_ name: InputName, _ problem: String) -> BroadsideError {
        var error = BroadsideError.request(name, problem)
        error.isDamage = true
        return error
    }

    /// A list has a place from which on nobody knows where its rows begin.
    ///
    /// - Parameter problem: What follows the list's name in the message, its blank or colon first.
    package static func faultyList(_ name: InputName, _ problem: String) -> BroadsideError {
        var error = BroadsideError.request(name, problem)
        error.isFaultyList = true
        return error
    }

    /// A file changed while it was read.
    package static func changed(_ name: InputName, _ how: String) -> BroadsideError {
        var error = BroadsideError(
            name, " has changed while it was read, \(how): put it back as it was",
            exitCode: ExitCode.disk)
        error.isChange = true
        return error
    }

    /// The reader of the output has closed its pipe: nothing is wrong, and nothing is left to do.
    package static var outputClosed: BroadsideError {
        BroadsideError("", exitCode: ExitCode.complete)
    }

    /// The error with the location of its option in a campaign file in front of its message.
    package func located(at location: String) -> BroadsideError {
        var error = self
        error.message = ForeignText.escaped("\(location): \(message)")
        return error
    }
}
