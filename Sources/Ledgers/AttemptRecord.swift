/// What a ledger knows of its own attempts: the file `epoch` in its directory.
///
///     CONFIRMED CLAIMED NONCE PARENT
///
/// A claim is written down here before it is made, and once more when it is made: whatever a crash leaves
/// between the two, the ledger recognizes its own claim.
struct AttemptRecord: Equatable {
    /// The newest attempt whose claim is known to have been made; 0: none.
    var confirmed: UInt32
    /// The newest attempt that was to be claimed.
    var claimed: UInt32
    /// What tells that claim from another copy's: 16 hexadecimal digits.
    var nonce: String
    /// The folder in which the confirmed claim is.
    var parent: String

    /// No ledger has more attempts.
    private static let numberMax: UInt32 = 1 << 31

    /// The file's bytes.
    var encoded: [UInt8] { Array("\(confirmed) \(claimed) \(nonce) \(parent)\n".utf8) }

    init(confirmed: UInt32, claimed: UInt32, nonce: String, parent: String) {
        assert(nonce.utf8.count == 16 && parent.hasPrefix("/"), "a record that can be read back")
        assert(confirmed <= claimed, "an attempt is claimed before it is confirmed")
        self.confirmed = confirmed
        self.claimed = claimed
        self.nonce = nonce
        self.parent = parent
    }

    /// Reads the file; nil if it holds something else.
    init?(_ bytes: [UInt8]) {
        guard bytes.last == 0x0a else { return nil }
        let text = String(decoding: bytes.dropLast(), as: UTF8.self)
        let words = text.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, let confirmed = UInt32(words[0]), let claimed = UInt32(words[1]),
            confirmed <= claimed, claimed <= Self.numberMax, words[2].utf8.count == 16,
            words[3].hasPrefix("/")
        else { return nil }
        self.init(
            confirmed: confirmed, claimed: claimed, nonce: String(words[2]),
            parent: String(words[3]))
    }
}
