internal import BroadsideRing
internal import BroadsideSupport

/// The reason why the simulator can't start: a one-line message that also explains how to fix it.
public struct SimulatorError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The problem and its remedy, without a full stop.
    public var message: String
    /// The process exit code: 2 for an invalid request, 1 for an operation that failed, 5 for a
    /// file or disk error.
    public var exitCode: Int32

    /// Creates an error with its exit code.
    public init(_ message: String, exitCode: Int32) {
        self.message = message
        self.exitCode = exitCode
    }

    /// The message.
    public var description: String { message }

    /// Converts an error of the type that all commands share.
    init(_ error: BroadsideError) { self.init(error.message, exitCode: error.exitCode) }

    /// Converts an error of the ring or of a socket.
    init(_ error: RingError) { self.init(error.description, exitCode: 1) }

    /// Performs `work`, and rethrows its errors as simulator errors.
    static func converted<Value>(
        _ work: () throws(BroadsideError) -> Value
    ) throws(SimulatorError) -> Value {
        do throws(BroadsideError) {
            return try work()
        } catch {
            throw SimulatorError(error)
        }
    }
}
