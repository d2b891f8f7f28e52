/// An error code of RST_STREAM and GOAWAY (RFC 9113 section 7). Unknown ones are kept.
public struct ErrorCode: RawRepresentable, Hashable, Sendable {
    /// The code as it goes over the wire.
    public var rawValue: UInt32

    /// The code `rawValue`, known or not.
    @inlinable
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A graceful end.
    public static var noError: Self { Self(rawValue: 0x0) }
    /// An error without a more specific code.
    public static var protocolError: Self { Self(rawValue: 0x1) }
    /// The endpoint failed within.
    public static var internalError: Self { Self(rawValue: 0x2) }
    /// Flow control was violated.
    public static var flowControlError: Self { Self(rawValue: 0x3) }
    /// SETTINGS were not acknowledged in time.
    public static var settingsTimeout: Self { Self(rawValue: 0x4) }
    /// A frame came for a stream that is closed.
    public static var streamClosed: Self { Self(rawValue: 0x5) }
    /// A frame has an invalid size.
    public static var frameSizeError: Self { Self(rawValue: 0x6) }
    /// The stream was not processed; in a GOAWAY of APNs, the stream limit was exceeded.
    public static var refusedStream: Self { Self(rawValue: 0x7) }
    /// The stream is no longer needed.
    public static var cancel: Self { Self(rawValue: 0x8) }
    /// The two header tables can no longer be known to agree.
    public static var compressionError: Self { Self(rawValue: 0x9) }
    /// The tunnel of a CONNECT failed.
    public static var connectError: Self { Self(rawValue: 0xa) }
    /// The peer makes more work than it should.
    public static var enhanceYourCalm: Self { Self(rawValue: 0xb) }
    /// The transport is not secure enough.
    public static var inadequateSecurity: Self { Self(rawValue: 0xc) }
    /// HTTP/1.1 is asked for.
    public static var http11Required: Self { Self(rawValue: 0xd) }

    /// Whether it says that one side broke the protocol.
    public var isProtocolError: Bool {
        switch self {
        case .protocolError, .flowControlError, .streamClosed, .frameSizeError, .compressionError,
            .inadequateSecurity, .http11Required:
            true
        default: false
        }
    }

    /// The name in RFC 9113 section 7; nil for a code that it doesn't know.
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

/// A violation that ends the connection (RFC 9113 section 5.4.1).
public struct ConnectionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What our GOAWAY says.
    public var code: ErrorCode
    /// What the peer did, in one line.
    public var message: StaticString

    /// A violation that ends the connection.
    public init(_ code: ErrorCode, _ message: StaticString) {
        self.code = code
        self.message = message
    }

    /// The code and the message in one line.
    public var description: String {
        "\(code.name?.description ?? "error \(code.rawValue)"): \(message)"
    }

    /// Whether both say the same.
    public static func == (one: Self, other: Self) -> Bool {
        one.code == other.code && one.message.description == other.message.description
    }
}
