import BroadsideEngine
internal import Glibc

/// Advice about a connection that could not be opened.
enum ConnectAdvice {
    /// Returns the advice for the `errno` value of a failed connection attempt.
    ///
    /// - Parameter otherPort: Value of `--port` to try; nil if the option can't change the port.
    static func text(errno code: Int32, isProxy: Bool, otherPort: UInt16?) -> String {
        let other = otherPort.map { ", try --port \($0), or give --proxy" } ?? ", or give --proxy"
        var port = isProxy ? "check --proxy" : "open the port\(other)"
        if !isProxy, let variable = ProxyAddress.unusedVariable {
            port += " (\(ProxyAddress.hint(of: variable)))"
        }
        switch code {
        case ECONNREFUSED:
            return isProxy
                ? "nothing listens there, or a firewall refuses it: check --proxy; is the proxy running?"
                : "nothing listens there, or a firewall refuses it: check host and port; " + port
        case ETIMEDOUT:
            return "no reply: a firewall drops the packets; \(port)"
        case ENETUNREACH, EHOSTUNREACH:
            return "this machine has no route to it: check its network and routes; \(port)"
        default:
            return "the port is closed or a firewall blocks it: \(port)"
        }
    }
}
