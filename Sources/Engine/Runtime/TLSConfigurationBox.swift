package import BroadsideTLS
internal import Synchronization

/// What every session of a run is made from. Replaced as a whole while the run continues: sessions
/// that stand keep what they were made from.
package final class TLSConfigurationBox: Sendable {
    package struct Value: Sendable {
        package var context: TLSContext
        package var serverName: ServerName
        /// nil: straight to the server.
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

    /// What the next session is made from.
    var current: Value { value.withLock { $0 } }

    /// Makes the sessions to come from something else.
    package func replace(_ value: Value) { self.value.withLock { $0 = value } }
}
