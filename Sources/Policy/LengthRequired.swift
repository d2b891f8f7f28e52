/// What some relays respond and APNs never does: "the server refuses to accept the request without a
/// defined Content-Length" (RFC 9110 section 15.5.12). The body is the relay's own: it has no reason.
public enum LengthRequired {
    /// The status.
    public static var status: UInt16 { 411 }
    /// What the ledger and messages call it.
    public static var reason: StaticString { "LengthRequired" }
}
