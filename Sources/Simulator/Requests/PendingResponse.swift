/// An answer on its way: which stream gets it, and when.
struct PendingResponse {
    var slot: UInt32
    var generation: UInt32
    var streamID: UInt32
    var isAuthenticated: Bool
    var response: Response
    var identifier: NotificationIDText
    /// A response to HEAD has no body (RFC 9110 section 9.3.2).
    var omitsBody = false
}
