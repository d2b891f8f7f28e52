/// A response that waits to be sent on its stream.
struct PendingResponse {
    var slot: UInt32
    var generation: UInt32
    var streamID: UInt32
    var isAuthenticated: Bool
    var response: Response
    var identifier: NotificationIDText
    /// True for HEAD, whose response has no body (RFC 9110 section 9.3.2).
    var omitsBody = false
}
