internal import BroadsideRing
internal import BroadsideSupport

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

    /// An error of what every command uses.
    init(_ error: BroadsideError) { self.init(error.message, exitCode: error.exitCode) }

    /// The kernel refused what the simulator cannot do without.
    init(_ error: RingError) { self.init(error.description, exitCode: 1) }

    /// Does work whose errors are those of every command, and throws them as the simulator's.
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
