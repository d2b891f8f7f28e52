/// Type of a frame (RFC 9113 section 6). Unknown types are kept and ignored (section 5.5).
public struct FrameType: RawRepresentable, Hashable, Sendable {
    /// The type on the wire.
    public var rawValue: UInt8

    /// Creates a type, known or not.
    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Body of a request or response.
    @inlinable public static var data: Self { Self(rawValue: 0x0) }
    /// Header block of a request or response, or its start.
    @inlinable public static var headers: Self { Self(rawValue: 0x1) }
    /// Deprecated; ignored.
    @inlinable public static var priority: Self { Self(rawValue: 0x2) }
    /// Immediate end of a stream.
    @inlinable public static var resetStream: Self { Self(rawValue: 0x3) }
    /// The limits set by the sender of the frame.
    @inlinable public static var settings: Self { Self(rawValue: 0x4) }
    /// Never valid here: push is off.
    @inlinable public static var pushPromise: Self { Self(rawValue: 0x5) }
    /// Liveness probe.
    @inlinable public static var ping: Self { Self(rawValue: 0x6) }
    /// Announcement that no more streams are accepted.
    @inlinable public static var goAway: Self { Self(rawValue: 0x7) }
    /// Credit for more bytes of DATA.
    @inlinable public static var windowUpdate: Self { Self(rawValue: 0x8) }
    /// Continuation of a header block.
    @inlinable public static var continuation: Self { Self(rawValue: 0x9) }
}

/// Flags of a frame; the meaning of a bit depends on the type (RFC 9113 section 6).
public struct FrameFlags: OptionSet, Hashable, Sendable {
    /// The bits on the wire.
    public var rawValue: UInt8

    /// Creates flags from bits.
    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// SETTINGS, PING: an acknowledgement.
    @inlinable public static var acknowledgement: Self { Self(rawValue: 0x1) }
    /// DATA, HEADERS: the sender's last frame on the stream.
    @inlinable public static var endStream: Self { Self(rawValue: 0x1) }
    /// HEADERS, CONTINUATION: the header block is complete.
    @inlinable public static var endHeaders: Self { Self(rawValue: 0x4) }
    /// DATA, HEADERS: a pad length comes first and padding last.
    @inlinable public static var padded: Self { Self(rawValue: 0x8) }
    /// HEADERS: five bytes of priority come before the block.
    @inlinable public static var priority: Self { Self(rawValue: 0x20) }
}

/// The nine bytes at the start of each frame (RFC 9113 section 4.1).
///
///     0        3      4       5          9
///     length   type   flags   stream id  payload ...
public struct FrameHeader: Equatable, Sendable {
    /// Size of a header in bytes.
    @inlinable public static var byteCount: Int { 9 }

    /// Size of the payload in bytes, below 2^24.
    public var length: Int
    /// Type of the frame.
    public var type: FrameType
    /// Flags, whose meaning depends on the type.
    public var flags: FrameFlags
    /// The stream, 31 bits; 0 for the connection itself.
    public var streamID: UInt32

    /// Creates a header.
    @inlinable
    public init(length: Int, type: FrameType, flags: FrameFlags, streamID: UInt32) {
        self.length = length
        self.type = type
        self.flags = flags
        self.streamID = streamID
    }

    /// Whether the nine bytes begin a response of HTTP/1: they are `HTTP/1.` and a digit. As a
    /// header of HTTP/2, they announce a frame of more than 4 MiB.
    var isHTTP1: Bool {
        length == 0x48_5454 && type.rawValue == UInt8(ascii: "P")
            && flags.rawValue == UInt8(ascii: "/") && streamID >> 16 == 0x312e  // "1."
    }

    /// The nine bytes.
    public var bytes: [UInt8] {
        precondition(length >= 0 && length < 1 << 24, "a length has 24 bits")
        return [
            UInt8(length >> 16), UInt8(length >> 8 & 0xff), UInt8(length & 0xff), type.rawValue,
            flags.rawValue,
        ] + [24, 16, 8, 0].map { UInt8(streamID >> $0 & 0xff) }
    }

    /// Parses the header in the nine bytes from `offset` on.
    @inline(__always)
    init(_ bytes: RawSpan, at offset: Int) {
        let word = bytes.uint32(at: offset)
        length = Int(word >> 8)
        type = FrameType(rawValue: UInt8(truncatingIfNeeded: word))
        flags = FrameFlags(rawValue: bytes.byte(at: offset + 4))
        // "Reserved: ... MUST be ignored when receiving."
        streamID = bytes.uint32(at: offset + 5) & 0x7fff_ffff
    }
}
