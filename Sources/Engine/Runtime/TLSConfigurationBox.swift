package import BroadsideTLS
internal import Synchronization

/// Configuration of a run's TLS sessions. The run may replace it as a whole; open sessions keep
/// theirs.
package final class TLSConfigurationBox: Sendable {
    package struct Value: Sendable {
        package var context: TLSContext
        package var serverName: ServerName
        /// The tunnel through a proxy; nil: direct connection to the server.
        package var tunnel: ProxyTunnelStateMachine.Configuration?

        init(
            context: TLSContext, serverName: ServerName,
            tunnel: ProxyTunnelStateMachine.Configuration? = nil
        ) {
            self.context = context
            self.serverName = serverName
            self.tunnel = tunnel
        }
    }

    private let value: Mutex<Value>

    package init(_ value: Value) { self.value = Mutex(value) }

    /// Configuration of the next session.
    var current: Value { value.withLock { $0 } }

    /// Replaces the configuration for later sessions.
    package func replace(_ value: Value) { self.value.withLock { $0 = value } }
}
