/// The counts of the rows that all runs of a campaign's list have sent, by outcome.
///
/// A part of a campaign may be too short for every other guard: `--abort-after` has seen too few
/// responses, and `--canary` runs in another part. So if all sent rows of a part were refused, the
/// part ends like a campaign that is wrong as a whole. A dead token (410) is not a refusal: APNs
/// knows the token, for this topic and environment.
public struct SentRows: Sendable, Equatable {
    /// Accepted rows.
    var accepted: UInt64
    /// Rejected rows, except those with 410.
    public var refused: UInt64
    /// Rows rejected with 410.
    var gone: UInt64
    /// Rows that are failed, unknown or in doubt, because no response settled them.
    var open: UInt64

    /// Creates counts from the number of rows per outcome.
    public init(accepted: UInt64, refused: UInt64, gone: UInt64, open: UInt64) {
        self.accepted = accepted
        self.refused = refused
        self.gone = gone
        self.open = open
    }

    /// Whether rows were sent and all of them were refused.
    public var areAllRefused: Bool { refused > 0 && accepted + gone + open == 0 }
}
