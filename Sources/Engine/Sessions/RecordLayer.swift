internal import BroadsideTLS

/// The layer between the bytes on the socket and the bytes of HTTP/2: TLS in production, no layer
/// in the deterministic simulation. There, a seed decides every byte.
protocol RecordLayer: ~Copyable {
    /// Configuration of a connection's record layer.
    associatedtype Configuration: Sendable

    /// Creates a session with the server.
    init(configuration: Configuration) throws(RecordLayerError)

    /// Whether application data may be encrypted.
    var isEstablished: Bool { get }

    /// Error to report if the connection ends now and a proxy is the cause, because it has not
    /// opened its tunnel to the server. nil if the server is the cause.
    var closedEarly: RecordLayerError? { get }

    /// Processes received bytes from `offset` on. Appends their plaintext to `plaintext`. Appends
    /// replies to the peer, such as handshake messages and alerts, to `ciphertext`. The first call
    /// has no input.
    mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> RecordLayerResult

    /// Encrypts at most `recordPlaintextLimit` bytes. `ciphertext` must have as many free bytes as
    /// `sealedCount` returns for them.
    ///
    /// - Returns: False if the session has failed.
    mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool

    /// Writes the message that closes this side (close_notify in TLS). `ciphertext` must have as
    /// many free bytes as `sealedCount` returns for 2 bytes. Nothing can be encrypted afterwards.
    mutating func close(ciphertext: inout OutputRawSpan)

    /// Maximum number of bytes after encrypting `plaintextCount` bytes.
    static func sealedCount(_ plaintextCount: Int) -> Int
}

/// Result of processing received bytes.
enum RecordLayerResult: Sendable {
    /// All input was processed.
    case more
    /// `plaintext` is full: call again with an empty one.
    case plaintextFull
    /// The peer closed its side in an orderly way.
    case closed
    /// The session has failed.
    case failed(RecordLayerError)
}

/// Error that prevented or ended a session.
package struct RecordLayerError: Error, Sendable {
    /// One-line description of the error and its remedy.
    package var message: String
    /// Whether a retry can't help. For example, the certificate was refused, or the server has no
    /// HTTP/2 or no TLS at all.
    var isLasting: Bool
    /// Whether the message already names the peer that is to blame.
    var namesPeer = false
    /// Whether the server certainly processed no data of the session.
    var precedesData = false

    init(message: String, isLasting: Bool) {
        self.message = message
        self.isLasting = isLasting
    }
}

/// Maximum plaintext of one record (RFC 8446, section 5.1).
let recordPlaintextLimit = 16_384

/// No record layer, for the deterministic simulation: bytes pass unchanged.
struct TransparentRecords: RecordLayer, ~Copyable {
    typealias Configuration = Void

    let isEstablished = true
    var closedEarly: RecordLayerError? { nil }

    init(configuration: Void) {}

    mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> RecordLayerResult {
        let count = min(input.byteCount - offset, plaintext.freeCapacity)
        copy(input.extracting(offset..<(offset + count)), into: &plaintext)
        offset += count
        return offset < input.byteCount ? .plaintextFull : .more
    }

    mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool {
        copy(plaintext, into: &ciphertext)
        return true
    }

    mutating func close(ciphertext: inout OutputRawSpan) {}

    static func sealedCount(_ plaintextCount: Int) -> Int { plaintextCount }

    private func copy(_ bytes: RawSpan, into output: inout OutputRawSpan) {
        // SAFETY: the room is checked here, and nothing else accesses the output's memory
        // meanwhile.
        unsafe bytes.withUnsafeBytes { source in
            unsafe output.withUnsafeMutableBytes { target, count in
                precondition(target.count - count >= source.count)
                if let base = source.baseAddress {
                    unsafe (target.baseAddress! + count).copyMemory(
                        from: base, byteCount: source.count)
                }
                count += source.count
            }
        }
    }
}
