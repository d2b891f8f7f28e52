/// Rows of a campaign's list that were sent, in all its runs, by what their responses said.
///
/// A part of a campaign may be too short for every other guard: `--abort-after` has seen too few
/// responses, and `--canary` waits in another part. So a part that ends with each row that was sent
/// refused ends as a campaign that is wrong as a whole. A device that is gone (410) is not a refusal:
/// APNs knows its token, for this topic and environment.
public struct SentRows: Sendable, Equatable {
    /// Accepted.
    var accepted: UInt64
    /// Rejected, but for devices that are gone.
    public var refused: UInt64
    /// Rejected with 410.
    var gone: UInt64
    /// Failed, unknown or in doubt: no response says what they are.
    var open: UInt64

    /// So many rows, by what became of them.
    public init(accepted: UInt64, refused: UInt64, gone: UInt64, open: UInt64) {
        self.accepted = accepted
        self.refused = refused
        self.gone = gone
        self.open = open
    }

    /// Whether rows were sent, and each of them was refused.
    public var areAllRefused: Bool { refused > 0 && accepted + gone + open == 0 }
}
