/// The error codes of RFC 9113 section 7 that the simulator sends itself.
enum ErrorCode: UInt32 {
    case noError = 0
    case protocolError = 1
    case streamClosed = 5
    case frameSizeError = 6
    case refusedStream = 7
    case compressionError = 9
    case enhanceYourCalm = 11
}
