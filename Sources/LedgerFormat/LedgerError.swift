/// What is wrong with a ledger, and where.
///
/// The place is a segment's name and a byte offset in it, so that `ledger verify` can name it.
public struct LedgerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of faults.
    public enum Code: String, Hashable, Sendable {
        /// The file could not be read or written; `detail` says why.
        case inputOutput
        /// Whoever reads was asked to stop; nothing is wrong with the ledger.
        case interrupted
        /// A segment's header is not one, or names another campaign, epoch or reactor.
        case badSegmentHeader
        /// The segment was written by a newer format.
        case unsupportedVersion
        /// A checksummed block is damaged although it had been synced.
        case damagedBlock
        /// A block's checksum holds, but its records make no sense.
        case malformedRecord
        /// A segment lacks bytes that the manifest says it has.
        case missingTail
        /// A segment that the manifest names is not there.
        case missingSegment
        /// A segment that no epoch of the manifest accounts for.
        case strangeSegment
        /// Two reservations of one epoch cover the same row.
        case overlappingReservations
        /// A later reservation of a chunk describes it differently.
        case changedChunk
        /// A verdict for a row that its epoch never reserved.
        case unreservedRow
        /// A row has two verdicts in one epoch, or one in a later epoch that did not open it again.
        case settledTwice
        /// A run that says it finished left a row open, or a part of the list untouched.
        case unsettledRow
        /// The manifest cannot be read; `detail` says why.
        case badManifest
        /// The list the run read cannot be read, or is not the one that was sent.
        case badList
        /// From a place in the list on nobody knows where its rows begin: `ListFault`.
        case faultyList
    }

    /// The kind of fault.
    public var code: Code
    /// The segment's file name; empty where the fault is in no segment.
    public var segment: String
    /// Byte offset in the segment.
    var offset: UInt64
    /// What was found, in words; may be empty.
    public var detail: String

    /// Describes a fault.
    public init(_ code: Code, segment: String = "", offset: UInt64 = 0, detail: String = "") {
        self.code = code
        self.segment = segment
        self.offset = offset
        self.detail = detail
    }

    /// One line: the place, then what is wrong there.
    public var description: String {
        let location = segment.isEmpty ? "ledger" : "\(segment) at byte \(offset)"
        return detail.isEmpty
            ? "\(location): \(code.message)" : "\(location): \(code.message): \(detail)"
    }
}

extension LedgerError.Code {
    /// Whether bytes that were synced are lost or changed, as disks and copies lose them.
    public var isDamage: Bool {
        switch self {
        case .badSegmentHeader, .damagedBlock, .malformedRecord, .missingTail, .missingSegment,
            .strangeSegment:
            true
        default: false
        }
    }

    /// The fault in words, without its place.
    var message: String {
        switch self {
        case .inputOutput: "cannot be read or written"
        case .interrupted: "not read to its end: asked to stop"
        case .badSegmentHeader: "the segment's header is damaged or another run's"
        case .unsupportedVersion: "written by a newer version"
        case .damagedBlock: "a block is damaged"
        case .malformedRecord: "a record makes no sense"
        case .missingTail: "the end of the segment is missing or damaged"
        case .missingSegment: "the segment is missing"
        case .strangeSegment: "the manifest does not know this segment"
        case .overlappingReservations: "rows are reserved twice in one run"
        case .changedChunk: "a part of the list is reserved again with other bounds"
        case .unreservedRow: "a verdict for a row that was never reserved"
        case .settledTwice: "a row is settled twice"
        case .unsettledRow: "a finished run left a row open"
        case .badManifest: "the manifest cannot be read"
        case .faultyList: "the list cannot be read further"
        case .badList: "the list cannot be read or is another one"
        }
    }
}
