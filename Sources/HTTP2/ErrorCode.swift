/// An error code of RST_STREAM and GOAWAY (RFC 9113 section 7). Unknown ones are kept.
public struct ErrorCode: RawRepresentable, Hashable, Sendable {
    /// The code on the wire.
    public var rawValue: UInt32

    /// Creates a code, known or not.
    @inlinable
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Orderly end.
    public static var noError: Self { Self(rawValue: 0x0) }
    /// Error without a more specific code.
    public static var protocolError: Self { Self(rawValue: 0x1) }
    /// Internal failure of the endpoint.
    public static var internalError: Self { Self(rawValue: 0x2) }
    /// Violation of flow control.
    public static var flowControlError: Self { Self(rawValue: 0x3) }
    /// SETTINGS without a timely acknowledgement.
    public static var settingsTimeout: Self { Self(rawValue: 0x4) }
    /// A frame for a closed stream.
    public static var streamClosed: Self { Self(rawValue: 0x5) }
    /// A frame with an invalid size.
    public static var frameSizeError: Self { Self(rawValue: 0x6) }
    /// A stream that was not processed. In a GOAWAY from APNs: the stream limit was exceeded.
    public static var refusedStream: Self { Self(rawValue: 0x7) }
    /// A stream that is no longer needed.
    public static var cancel: Self { Self(rawValue: 0x8) }
    /// Header tables that may no longer agree.
    public static var compressionError: Self { Self(rawValue: 0x9) }
    /// Failed tunnel of a CONNECT.
    public static var connectError: Self { Self(rawValue: 0xa) }
    /// Excessive load by the peer.
    public static var enhanceYourCalm: Self { Self(rawValue: 0xb) }
    /// Insufficiently secure transport.
    public static var inadequateSecurity: Self { Self(rawValue: 0xc) }
    /// Requirement to use HTTP/1.1 instead of HTTP/2.
    public static var http11Required: Self { Self(rawValue: 0xd) }

    /// Whether the code reports a protocol violation by one side.
    public var isProtocolError: Bool {
        switch self {
        case .protocolError, .flowControlError, .streamClosed, .frameSizeError, .compressionError,
            .inadequateSecurity, .http11Required:
            true
        default: false
        }
    }

    /// Name in RFC 9113 section 7; nil for an unknown code.
    public var name: StaticString? {
        switch rawValue {
        case 0x0: "NO_ERROR"
        case 0x1: "PROTOCOL_ERROR"
        case 0x2: "INTERNAL_ERROR"
        case 0x3: "FLOW_CONTROL_ERROR"
        case 0x4: "SETTINGS_TIMEOUT"
        case 0x5: "STREAM_CLOSED"
        case 0x6: "FRAME_SIZE_ERROR"
        case 0x7: "REFUSED_STREAM"
        case 0x8: "CANCEL"
        case 0x9: "COMPRESSION_ERROR"
        case 0xa: "CONNECT_ERROR"
        case 0xb: "ENHANCE_YOUR_CALM"
        case 0xc: "INADEQUATE_SECURITY"
        case 0xd: "HTTP_1_1_REQUIRED"
        default: nil
        }
    }
}

extension ErrorCode: CustomStringConvertible {
    /// Name in RFC 9113 section 7, or the number of an unknown code.
    public var description: String { name?.description ?? "error \(rawValue)" }
}

/// Violation that ends the connection (RFC 9113 section 5.4.1).
public struct ConnectionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The code in our GOAWAY.
    public var code: ErrorCode
    /// One-line description of the peer's violation, or of the limit that it exceeded.
    public var message: StaticString

    /// Creates a violation.
    public init(_ code: ErrorCode, _ message: StaticString) {
        self.code = code
        self.message = message
    }

    /// The message with its subject. RFC 9113 permits what exceeds a limit of this client.
    public var sentence: String {
        code == .enhanceYourCalm
            ? "the server exceeded a limit of Broadside: \(message)"
            : "the server broke HTTP/2: \(message)"
    }

    /// The code and the message in one line.
    public var description: String {
        "\(code): \(message)"
    }

    /// Whether both errors have the same code and message.
    public static func == (one: Self, other: Self) -> Bool {
        one.code == other.code && one.message.description == other.message.description
    }
}
