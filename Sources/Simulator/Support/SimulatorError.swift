internal import Glibc

/// Why the simulator could not start, in one line that says how to fix it.
public struct SimulatorError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is wrong and how to fix it, without a full stop.
    public var message: String
    /// 2: the request itself is wrong; 1: it could not be done; 5: a file or disk error.
    public var exitCode: Int32

    /// An error with its exit code.
    public init(_ message: String, exitCode: Int32) {
        self.message = message
        self.exitCode = exitCode
    }

    /// The message.
    public var description: String { message }
}

/// What an error number means, in words.
func describe(errno number: Int32) -> String {
    // SAFETY: strerror(3) returns a text of this thread's (glibc 2.32 on) that ends with a zero
    // byte; it is copied.
    unsafe String(cString: strerror(number))
}
