internal import BroadsidePrimitives
internal import BroadsideSupport
internal import FoundationEssentials

/// How far the followers of a ledger have come, as it is in the file of `--cursor`: a JSON object.
///
/// It is written once the output has all rows before it, so that a follower that is killed in between
/// continues with what follows.
package struct FollowCursor: Codable, Equatable {
    /// An output that is a regular file.
    package struct Output: Codable, Equatable {
        /// So many bytes of it are rows before the cursor; what is behind them was written by a follower
        /// that was killed, and is cut off.
        package let byteCount: UInt64
        /// The hash of its last bytes before that, 16 hexadecimal digits: another file is not cut off.
        package let tailHash: String

        /// So many bytes are hashed, or fewer where there are not so many.
        package static let tailByteCountMax = 4096

        /// - Parameters:
        ///   - byteCount: Bytes that are rows before the cursor.
        ///   - tail: The last of them.
        package init(byteCount: UInt64, tail: [UInt8]) {
            assert(tail.count <= Self.tailByteCountMax, "only the last bytes are hashed")
            self.byteCount = byteCount
            tailHash = hexadecimal(MixingHash.hash(tail.rawSpan))
        }
    }

    /// The version of the format.
    package static let currentVersion = 1
    /// No cursor has more bytes: 65,536 segments.
    package static let byteCountMax = 1 << 22

    private let version: Int
    /// The campaign, 16 hexadecimal digits.
    package let campaign: String
    /// Which of the campaign's lists the ledger is of, from 1; 0 for a campaign of one list.
    package let part: UInt16
    /// How rows are written, and which: the followers of one output agree.
    package let format: String
    package let states: [String]
    package let reasons: [String]
    /// For each segment where its first block begins whose rows were not written.
    package var segments: [String: UInt64] = [:]
    /// The output; nil: standard output, or a pipe or device.
    package var output: Output?

    /// A cursor before the first row.
    package init(
        campaign: String, part: UInt16, format: ExportFormat, states: [String], reasons: [String]
    ) {
        version = Self.currentVersion
        self.campaign = campaign
        self.part = part
        self.format = format.rawValue
        self.states = Set(states).sorted()
        self.reasons = Set(reasons).sorted()
    }

    /// Reads a cursor's file.
    ///
    /// - Returns: nil where it is not one of this version.
    package init?(decoding bytes: [UInt8]) {
        guard let read = try? JSONDecoder().decode(Self.self, from: Data(bytes)),
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

    /// The file's bytes.
    package func encoded() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        // Only strings and integers: there is nothing that could not be encoded.
        return Array(try! encoder.encode(self)) + [0x0A]
    }
}
