import Testing

@testable import BroadsideLedgerFormat

/// What is said of faults in a ledger, and which of them a repair is for.
@Suite struct LedgerErrorTests {
    /// Each code, and whether bytes that were synced are lost or changed.
    private static let codes: [(code: LedgerError.Code, isDamage: Bool)] = [
        (.inputOutput, false), (.interrupted, false), (.badSegmentHeader, true),
        (.unsupportedVersion, false), (.damagedBlock, true), (.malformedRecord, true),
        (.missingTail, true), (.missingSegment, true), (.strangeSegment, true),
        (.overlappingReservations, false), (.changedChunk, false), (.unreservedRow, false),
        (.settledTwice, false), (.unsettledRow, false), (.badManifest, false), (.badList, false),
    ]

    @Test func `Only faults of disks and copies count as damage`() {
        for (code, isDamage) in Self.codes { #expect(code.isDamage == isDamage, "\(code)") }
        #expect(Set(Self.codes.map(\.code.message)).count == Self.codes.count)
    }

    @Test func `A fault is described in one line with its place and what was found`() {
        let words = LedgerError.Code.damagedBlock.message
        let segment = "segment-0001-00"
        #expect(LedgerError(.damagedBlock).description == "ledger: \(words)")
        #expect(LedgerError(.damagedBlock, detail: "x").description == "ledger: \(words): x")
        #expect(
            LedgerError(.damagedBlock, segment: segment, offset: 40).description
                == "\(segment) at byte 40: \(words)")
        #expect(
            LedgerError(.damagedBlock, segment: segment, offset: 40, detail: "x").description
                == "\(segment) at byte 40: \(words): x")
    }
}
