internal import BroadsideRing
internal import BroadsideSupport
internal import Glibc

/// A Unix socket that takes commands, a line each, and answers each with a line.
///
/// A connection may send any number of lines. A thread of its own serves all, one after the other:
/// commands are rare and short.
final class ControlSocket: Sendable {
    /// Nobody holds the thread up by not reading its answers.
    private static let limits = UnixLineServer.Limits(lineBytes: 4096, replyMilliseconds: 1000)

    private let thread: EndpointThread

    /// Starts listening.
    ///
    /// - Parameter answer: Gets a line without its end, returns one likewise.
    init(
        path: String, response: @escaping @Sendable (String) -> String
    ) throws(SimulatorError) {
        let made = try SimulatorError.converted { () throws(BroadsideError) in
            try UnixLineServer(path, option: "control", limits: Self.limits)
        }
        // SAFETY: from here on it is the thread's alone.
        nonisolated(unsafe) let server = made
        thread = try EndpointThread { (stopDescriptor, isReady) throws(RingError) in
            isReady()
            while unsafe server.wait(orFor: stopDescriptor) { unsafe server.serve(response) }
            unsafe server.end()
            return SimulatorTotals()
        }
    }

    /// Ends all connections and removes the socket's file. Called once.
    func stop() {
        thread.wake()
        _ = thread.join()
    }
}
