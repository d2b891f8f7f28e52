internal import BroadsidePrimitives
internal import BroadsideSupport

/// The progress of `ledger export --follow`, as stored in the file of `--cursor`: a JSON object.
///
/// The file is written only after the output has all rows before the cursor. If a follower is
/// killed, the next one continues at the cursor.
package struct FollowCursor: Codable, Equatable {
    /// An output that is a regular file.
    package struct Output: Codable, Equatable {
        /// Bytes of the rows before the cursor. Later bytes are from a follower that was killed,
        /// and are cut off.
        package let byteCount: UInt64
        /// Hash of the last rows before the cursor, at most `tailByteCountMax` bytes; 16
        /// hexadecimal digits. A file with another hash is not the follower's output, so the
        /// follower does not cut off any bytes of that file.
        package let tailHash: String

        /// Maximum number of bytes that are hashed.
        package static let tailByteCountMax = 4096

        /// - Parameters:
        ///   - byteCount: Bytes of the rows before the cursor.
        ///   - tail: The last of these bytes, at most `tailByteCountMax`.
        package init(byteCount: UInt64, tail: [UInt8]) {
            assert(tail.count <= Self.tailByteCountMax, "only the last bytes are hashed")
            self.byteCount = byteCount
            tailHash = hexadecimal(MixingHash.hash(tail.rawSpan))
        }
    }

    /// Version of the format.
    package static let currentVersion = 1
    /// Maximum size of a cursor file in bytes, enough for 65,536 segments.
    package static let byteCountMax = 1 << 22

    private let version: Int
    /// Campaign number, 16 hexadecimal digits.
    package let campaign: String
    /// Part of the campaign that the ledger belongs to, from 1; 0 for a campaign of one list.
    package let part: UInt16
    /// The format and selection of rows, which all followers of one output must share.
    package let format: String
    package let states: [String]
    package let reasons: [String]
    package let arm: String?
    /// Optional columns that were requested; nil for none.
    package let columns: [String]?
    /// For each segment, by its name: the offset of the first block with rows that are not in the
    /// output yet.
    package var segments: [String: UInt64] = [:]
    /// The output file; nil for standard output, a pipe or a device.
    package var output: Output?

    /// Creates a cursor before the first row.
    package init(
        campaign: String, part: UInt16, format: ExportFormat, states: [String], reasons: [String],
        arm: String? = nil, columns: Set<ExportColumn> = []
    ) {
        version = Self.currentVersion
        self.campaign = campaign
        self.part = part
        self.format = format.rawValue
        self.states = Set(states).sorted()
        self.reasons = Set(reasons).sorted()
        self.arm = arm
        self.columns = columns.isEmpty ? nil : columns.map(\.rawValue).sorted()
    }

    /// Parses a cursor file.
    ///
    /// - Returns: nil if it is not a cursor of this version.
    package init?(decoding bytes: [UInt8]) {
        guard let read = try? JSONCoding.decode(Self.self, from: bytes),
            read.version == Self.currentVersion, !read.hasImpossibleValue
        else { return nil }
        self = read
    }

    private var hasImpossibleValue: Bool {
        segments.contains { name, offset in
            LedgerFormat.parseSegmentName(name) == nil
                || offset < UInt64(LedgerFormat.segmentHeaderByteCount)
                || offset > LedgerFormat.positionMax
        } || (output?.byteCount ?? 0) > LedgerFormat.positionMax
    }

    /// Returns the bytes of the file.
    package func encoded() -> [UInt8] {
        // Strings and integers can always be encoded.
        assert(!hasImpossibleValue, "what is written can be read again")
        return try! JSONCoding.encode(self, [.pretty, .escapedSlashes]) + [0x0A]
    }
}
