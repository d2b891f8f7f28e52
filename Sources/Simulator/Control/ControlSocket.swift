internal import BroadsideRing
internal import BroadsideSupport
internal import Glibc

/// A Unix socket that accepts commands, one per line, and responds to each with one line.
///
/// A connection may send any number of lines. One dedicated thread serves all connections in turn,
/// because commands are rare and short. A `wait` does not occupy the thread.
final class ControlSocket: Sendable {
    /// The limits that keep a client from blocking the thread by not reading its responses.
    private static let limits = UnixLineServer.Limits(lineBytes: 4096, replyMilliseconds: 1000)

    private let thread: EndpointThread

    /// Starts listening.
    ///
    /// - Parameter response: Returns the response to a command. No text includes a line end.
    init(
        path: String, response: @escaping @Sendable (String) -> UnixLineServer.Response
    ) throws(SimulatorError) {
        let made = try SimulatorError.converted { () throws(BroadsideError) in
            try UnixLineServer(path, option: "control", limits: Self.limits)
        }
        // SAFETY: only the thread uses the server from here on.
        nonisolated(unsafe) let server = made
        thread = try EndpointThread { (stopDescriptor, isReady) throws(RingError) in
            isReady()
            while unsafe server.wait(orFor: stopDescriptor) {
                unsafe server.serve(deferring: response)
            }
            // A `wait` ends with the simulator.
            unsafe server.serve(deferring: response)
            unsafe server.end()
            return SimulatorTotals()
        }
    }

    /// Ends all connections and removes the socket file. Must be called exactly once.
    func stop() {
        thread.wake()
        _ = thread.join()
    }
}
