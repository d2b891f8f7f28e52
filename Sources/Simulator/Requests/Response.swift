internal import BroadsideAPNs

/// The response to a request.
struct Response: Equatable, Sendable {
    /// The HTTP status.
    var status: UInt16
    /// The body's `reason`; nil for a 200.
    var reason: Reason?
    /// The body's `timestamp`, milliseconds since the epoch; only with status 410.
    var timestampMilliseconds: UInt64 = 0
    /// The `retry-after` header, seconds; nil for none.
    var retryAfterSeconds: UInt32?

    /// Stands for the missing response to a request that is not processed. Its status is 0.
    static let untaken = Response(status: 0, reason: nil)

    /// Acceptance of the notification.
    static let accepted = Response(status: 200, reason: nil)

    /// Returns a refusal, with the status that Apple's table has for the reason.
    static func refused(_ reason: Reason) -> Response {
        let status: UInt16 =
            switch reason {
            case .badCertificate, .badCertificateEnvironment, .expiredProviderToken, .forbidden,
                .invalidProviderToken, .missingProviderToken, .unrelatedKeyIDInToken,
                .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken, .topicMismatch:
                403
            case .badPath: 404
            case .methodNotAllowed: 405
            case .expiredToken, .unregistered: 410
            case .payloadTooLarge: 413
            case .tooManyProviderTokenUpdates, .tooManyRequests: 429
            case .internalServerError: 500
            case .serviceUnavailable, .shutdown: 503
            default: 400
            }
        return Response(status: status, reason: reason)
    }

    /// True for a 410 whose `timestamp` is not set yet. The session sets the timestamp to the time
    /// of the request.
    var isUndatedGone: Bool { status == 410 && timestampMilliseconds == 0 }

    /// Maximum number of bytes that `appendBody` writes.
    static let maximumBodyCount = 96

    /// Writes the JSON body, such as `{"reason":"Unregistered","timestamp":1458518400000}`, and
    /// returns its number of bytes. Returns 0 for a response without a body.
    func appendBody(to output: inout ByteBuffer) -> Int {
        guard let reason else { return 0 }
        let start = output.count
        output.append("{\"reason\":\"")
        output.append(reason.staticText)
        output.append("\"")
        if status == 410 {
            output.append(",\"timestamp\":")
            output.append(decimal: timestampMilliseconds)
        }
        output.append("}")
        let count = output.count - start
        precondition(count <= Self.maximumBodyCount)
        return count
    }
}
