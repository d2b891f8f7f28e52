/// Identifiers of RFC 9113 section 6.5.2 that are used here.
enum SettingIdentifier {
    static let headerTableSize: UInt16 = 0x1
    static let enablePush: UInt16 = 0x2
    static let maxConcurrentStreams: UInt16 = 0x3
    static let initialWindowSize: UInt16 = 0x4
    static let maxFrameSize: UInt16 = 0x5
}

/// The limits of the server, by its latest SETTINGS.
struct PeerSettings: Sendable {
    /// The stream limit if none is announced. RFC 9113 sets no limit then; this is the limit that
    /// APNs announces.
    static let assumedStreamLimit: UInt32 = 1000

    /// Lowest SETTINGS_HEADER_TABLE_SIZE so far. If the limit falls and rises between two header
    /// blocks, an encoder must still apply the lowest limit (RFC 7541 section 4.2). Our encoder's
    /// table never grows back.
    var headerTableSize: UInt32 = 4096
    var maxConcurrentStreams: UInt32 = PeerSettings.assumedStreamLimit
    var initialWindowSize: UInt32 = 65_535
    var maxFrameSize: UInt32 = 16_384

    /// Applies one setting. "An endpoint that receives a SETTINGS frame with any unknown or
    /// unsupported identifier MUST ignore that setting."
    mutating func apply(_ identifier: UInt16, _ value: UInt32) throws(ConnectionError) {
        switch identifier {
        case SettingIdentifier.headerTableSize:
            headerTableSize = min(headerTableSize, value)
        case SettingIdentifier.enablePush:
            // "A client MUST treat receipt of a SETTINGS frame with SETTINGS_ENABLE_PUSH set to 1
            // as a connection error of type PROTOCOL_ERROR"; any other nonzero value is such an
            // error, too.
            guard value == 0 else {
                throw ConnectionError(.protocolError, "a server must not enable push")
            }
        case SettingIdentifier.maxConcurrentStreams:
            maxConcurrentStreams = value
        case SettingIdentifier.initialWindowSize:
            guard value <= FlowControlWindow.limit else {
                throw ConnectionError(.flowControlError, "the initial window is above 2^31-1")
            }
            initialWindowSize = value
        case SettingIdentifier.maxFrameSize:
            guard value >= 16_384, value <= 16_777_215 else {
                throw ConnectionError(.protocolError, "the frame size is out of its range")
            }
            maxFrameSize = value
        default:
            // SETTINGS_MAX_HEADER_LIST_SIZE is advisory, and requests stay far below any sensible
            // value.
            break
        }
    }
}
