internal import BroadsideTLS

/// What stands between the bytes on the socket and the bytes of HTTP/2: TLS in earnest, nothing at
/// all in the deterministic simulation. A seam, so that a seed decides every byte there.
protocol RecordLayer: ~Copyable {
    /// What one connection of this layer is made from.
    associatedtype Configuration: Sendable

    /// A new session towards the server.
    init(configuration: Configuration) throws(RecordLayerError)

    /// True once application data may be sealed.
    var isEstablished: Bool { get }

    /// What it means where the connection ends now, if somebody other than the server is to blame: a
    /// proxy that has not opened its tunnel; nil otherwise.
    var closedEarly: RecordLayerError? { get }

    /// Takes received bytes from `offset` on; appends what they say to `plaintext` and what the peer
    /// has to be told (handshake, alerts) to `ciphertext`. Called first with no input at all.
    mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> RecordLayerResult

    /// Seals at most `recordPlaintextLimit` bytes; `ciphertext` has room for `sealedCount` of them.
    ///
    /// - Returns: False where the session is dead.
    mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool

    /// Tells the peer that nothing follows.
    mutating func close(ciphertext: inout OutputRawSpan)

    /// The most bytes that sealing so many bytes may make.
    static func sealedCount(_ plaintextCount: Int) -> Int
}

/// What became of received bytes.
enum RecordLayerResult: Sendable {
    /// All input was taken.
    case more
    /// `plaintext` is full; call again with a fresh one.
    case plaintextFull
    /// The peer ended its side in order.
    case closed
    /// The session is dead.
    case failed(RecordLayerError)
}

/// Why a session could not be made or went dead.
package struct RecordLayerError: Error, Sendable {
    /// One line that says what is wrong and how to mend it.
    package var message: String
    /// True where trying again can't help: a certificate refused, no HTTP/2, no TLS at all.
    var isLasting: Bool
    /// True where the message says already who is to blame.
    var namesPeer = false

    init(message: String, isLasting: Bool) {
        self.message = message
        self.isLasting = isLasting
    }
}

/// The most plaintext that one record carries (RFC 8446, section 5.1).
let recordPlaintextLimit = 16_384

/// No record layer: the deterministic simulation's, where bytes are what they are.
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
        // SAFETY: the room is checked here, and the output is memory that nothing else reaches
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
