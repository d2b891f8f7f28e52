/// Response that some relays give, but APNs never does: "the server refuses to accept the request
/// without a defined Content-Length" (RFC 9110 section 15.5.12). The body comes from the relay, so
/// it does not contain one of APNs' reasons.
public enum LengthRequired {
    /// HTTP status.
    public static var status: UInt16 { 411 }
    /// Reason in the ledger and in messages.
    public static var reason: StaticString { "LengthRequired" }
}
