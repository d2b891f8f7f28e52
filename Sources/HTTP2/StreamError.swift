/// Violation that ends one stream (RFC 9113 section 5.4.2). The request of the stream is in doubt.
///
/// One byte, because header blocks in the cache store it. The raw value numbers the cases from 0.
public enum StreamError: UInt8, Sendable, Equatable, CaseIterable {
    /// A connection-specific header field (section 8.2.2).
    case connectionField
    /// A pseudo-header field other than `:status` (section 8.3.2).
    case foreignPseudoHeader
    /// More than one `:status` in a header block.
    case repeatedStatus
    /// A `:status` after a regular field (section 8.3).
    case lateStatus
    /// A `:status` that is not a number of three digits.
    case invalidStatus
    /// A header block without `:status`.
    case missingStatus
    /// A status of 101 (section 8.6).
    case switchingProtocols
    /// An interim response that ends the stream (section 8.1).
    case onlyInterim
    /// A `content-length` that is not a number below 2^31, or two that differ.
    case invalidContentLength
    /// A body that does not have the announced length (section 8.1.1).
    case wrongLength
    /// A field name that is empty or has a character that is not permitted (section 8.2.1).
    case invalidName
    /// A field value with a character that is not permitted (section 8.2.1).
    case invalidValue
    /// DATA before the header fields.
    case bodyBeforeHeaders
    /// Trailers that do not end the stream, or that have a `:status` (section 8.1).
    case invalidTrailers
    /// WINDOW_UPDATE with an increment of 0 (section 6.9).
    case emptyIncrement
    /// A window above 2^31-1 (section 6.9.1).
    case windowOverflow
    /// PRIORITY of a length other than 5 (section 6.3).
    case prioritySize

    /// The code in our RST_STREAM.
    public var code: ErrorCode {
        switch self {
        case .windowOverflow: .flowControlError
        case .prioritySize: .frameSizeError
        default: .protocolError
        }
    }

    /// Whether the error is in the response, and not in another frame of the stream.
    public var isInResponse: Bool {
        switch self {
        case .emptyIncrement, .windowOverflow, .prioritySize: false
        default: true
        }
    }

    /// One-line description of the violation.
    public var message: StaticString {
        switch self {
        case .connectionField:
            "it has a header field that HTTP/2 does not permit, such as connection"
        case .foreignPseudoHeader: "it has a pseudo-header field other than :status"
        case .repeatedStatus: "it has more than one :status"
        case .lateStatus: ":status comes after other header fields"
        case .invalidStatus: ":status is not a number of three digits"
        case .missingStatus: "it has no :status"
        case .switchingProtocols: "its :status is 101, which HTTP/2 does not have"
        case .onlyInterim: "it ends after a status below 200"
        case .invalidContentLength: "content-length is invalid"
        case .wrongLength: "the body does not have the length in content-length"
        case .invalidName: "the name of a header field is invalid"
        case .invalidValue: "a header field has a NUL, a carriage return or a line feed"
        case .bodyBeforeHeaders: "DATA comes before the header fields"
        case .invalidTrailers: "its trailers do not end it, or have a :status"
        case .emptyIncrement: "WINDOW_UPDATE with an increment of 0 on a stream"
        case .windowOverflow: "a stream's window is above 2^31-1"
        case .prioritySize: "PRIORITY must have 5 bytes"
        }
    }
}

extension StreamError: CustomStringConvertible {
    /// The message with its subject.
    public var description: String {
        isInResponse
            ? "the response is malformed: \(message)" : "the server broke HTTP/2: \(message)"
    }
}
