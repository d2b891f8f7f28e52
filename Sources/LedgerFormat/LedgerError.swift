/// Fault of a ledger, with its location.
///
/// The location is a segment's name and a byte offset in it, for `ledger verify`.
public struct LedgerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Kind of fault.
    public enum Code: String, Hashable, Sendable {
        /// The file could not be read or written; `detail` has the cause.
        case inputOutput
        /// The reader was asked to stop; the ledger has no fault.
        case interrupted
        /// A segment's header is invalid, or names another campaign, epoch or reactor.
        case badSegmentHeader
        /// The segment was written by a newer format.
        case unsupportedVersion
        /// A checksummed block is damaged although it had been synced.
        case damagedBlock
        /// A block's checksum is right, but its records are invalid.
        case malformedRecord
        /// The end of a segment is missing: the segment is shorter than its recorded length.
        case missingTail
        /// A segment that the manifest names is missing.
        case missingSegment
        /// A segment belongs to no epoch of the manifest.
        case strangeSegment
        /// Two reservations of one epoch cover the same row.
        case overlappingReservations
        /// Two reservations describe the same chunk differently.
        case changedChunk
        /// A row has a verdict from an epoch that did not reserve the row.
        case unreservedRow
        /// An epoch settled a row twice, or settled a row of an earlier epoch without reopening it.
        case settledTwice
        /// A run that is recorded as finished left a row open, or did not cover the whole list.
        case unsettledRow
        /// The manifest cannot be read; `detail` has the cause.
        case badManifest
        /// The list cannot be read, or differs from the list that was sent.
        case badList
        /// After some offset of the list, it is unknown where rows start; see `ListFault`.
        case faultyList
    }

    /// Kind of the fault.
    public var code: Code
    /// File name of the segment; empty if the fault is in no segment.
    public var segment: String
    /// Byte offset in the segment.
    var offset: UInt64
    /// Description of the finding; may be empty.
    public var detail: String

    /// Creates a fault.
    public init(_ code: Code, segment: String = "", offset: UInt64 = 0, detail: String = "") {
        self.code = code
        self.segment = segment
        self.offset = offset
        self.detail = detail
    }

    /// One line: the location, then the fault.
    public var description: String {
        let location = segment.isEmpty ? "ledger" : "\(segment) at byte \(offset)"
        return detail.isEmpty
            ? "\(location): \(code.message)" : "\(location): \(code.message): \(detail)"
    }
}

extension LedgerError.Code {
    /// Whether synced bytes are lost or changed, for example by a faulty disk or copy.
    public var isDamage: Bool {
        switch self {
        case .badSegmentHeader, .damagedBlock, .malformedRecord, .missingTail, .missingSegment,
            .strangeSegment:
            true
        default: false
        }
    }

    /// Description of the fault, without its location.
    var message: String {
        switch self {
        case .inputOutput: "cannot be read or written"
        case .interrupted: "not read to the end: interrupted"
        case .badSegmentHeader: "the segment's header is damaged, or belongs to another run"
        case .unsupportedVersion: "written by a newer version"
        case .damagedBlock: "a block is damaged"
        case .malformedRecord: "a record is invalid"
        case .missingTail: "the end of the segment is missing or damaged"
        case .missingSegment: "the segment is missing"
        case .strangeSegment: "the manifest does not list this segment"
        case .overlappingReservations: "rows are reserved twice in one run"
        case .changedChunk: "a part of the list is reserved again with other bounds"
        case .unreservedRow: "a verdict for a row that was never reserved"
        case .settledTwice: "a row is settled twice"
        case .unsettledRow: "a finished run left a row open"
        case .badManifest: "the manifest cannot be read"
        case .faultyList: "the list cannot be read further"
        case .badList: "the list cannot be read, or is a different list"
        }
    }
}
