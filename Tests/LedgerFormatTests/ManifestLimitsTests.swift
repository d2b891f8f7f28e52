import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsidePolicy
@testable import BroadsideRows

/// Manifests whose checksum fits, and whose values no run can have written.
@Suite struct ManifestLimitsTests {
    private func manifest() -> Manifest {
        var manifest = Manifest(
            campaign: 0xAB, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            expirationSeconds: .max, listPath: "/list.csv")
        manifest.identity.part = CampaignPart(index: 2, count: 3)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 2)
        manifest.endEpoch(
            lengths: [SegmentLength(reactor: 1, byteCount: 4096)], isFinished: false,
            stop: StopRecord(.tooManyInvalid(count: 7, rows: 8), wasAnswered: true))
        _ = manifest.beginEpoch(atMilliseconds: testTime + 5)
        manifest.part = ListExtent(
            firstRow: 5, byteOffset: 325, firstLine: 6, endRow: 105, endByteOffset: 6_825)
        manifest.record(erasedRows: ErasedRows([5, 9]))
        (manifest.rowCount, manifest.rowsLimit, manifest.canaryRowCount) = (105, .max, 3)
        (manifest.counters.retries, manifest.shards) = (12, ["part-0001"])
        manifest.counters.add(shortened: 5)
        return manifest
    }

    /// What is said of a manifest's bytes; nil where they are read.
    private func problem(_ bytes: [UInt8]) -> String? {
        do throws(LedgerError) {
            _ = try Manifest(decoding: bytes)
            return nil
        } catch {
            return error.code == .badManifest ? error.detail : "\(error.code)"
        }
    }

    /// Fields as they are written, what stands in their place, and what is said.
    static let impossible = [
        (#""version" : 3"#, #""version" : 0"#, "its version"),
        (#""version" : 3"#, #""version" : -5"#, "its version"),
        (
            #""firstStartedAtMilliseconds" : 1790000000000"#,
            #""firstStartedAtMilliseconds" : 253402300800000"#, "its times"
        ),
        (
            #""startedAtMilliseconds" : 1790000000005"#,
            #""startedAtMilliseconds" : 18446744073709551615"#, "its times"
        ),
        (#""number" : 1"#, #""number" : 0"#, "its runs"),
        (#""number" : 2"#, #""number" : 1"#, "its runs"),
        (#""number" : 2"#, #""number" : 4294967295"#, "its runs"),
        (#""segmentCount" : 2"#, #""segmentCount" : 257"#, "its runs"),
        (#""byteCount" : 4096"#, #""byteCount" : 9223372036854775808"#, "its runs"),
        (#""total" : 8"#, #""total" : 18446744073709551615"#, "its runs"),
        (#""count" : 7"#, #""count" : 18446744073709551615"#, "its runs"),
        (#""rowCount" : 105"#, #""rowCount" : 18446744073709551615"#, "its numbers of rows"),
        (
            #""canaryRowCount" : 3"#, #""canaryRowCount" : 18446744073709551615"#,
            "its numbers of rows"
        ),
        (#""firstRow" : 5"#, #""firstRow" : 106"#, "its part of the list"),
        (#""endRow" : 105"#, #""endRow" : 18446744073709551615"#, "its part of the list"),
        (#""endByteOffset" : 6825"#, #""endByteOffset" : 324"#, "its part of the list"),
        (
            #""endByteOffset" : 6825"#, #""endByteOffset" : 9223372036854775808"#,
            "its part of the list"
        ),
        (#""firstLine" : 6"#, #""firstLine" : 18446744073709551615"#, "its part of the list"),
        (#""index" : 2"#, #""index" : 0"#, "its part of the campaign"),
        (#""index" : 2"#, #""index" : 4"#, "its part of the campaign"),
        (#""count" : 3"#, #""count" : 65535"#, "its part of the campaign"),
        (#""listByteCount" : 1000"#, #""listByteCount" : 9223372036854775808"#, "the list's size"),
        (#""retries" : 12"#, #""retries" : 18446744073709551615"#, "its counters"),
        (#""shortened" : 5"#, #""shortened" : 281474976710657"#, "its counters"),
        (#""reconnects" : 0"#, #""reconnects" : 281474976710657"#, "its counters"),
        (#""connections" : 0"#, #""connections" : 281474976710657"#, "its counters"),
        (#""part-0001""#, #""..""#, "its shards"), (#""part-0001""#, "\"\"", "its shards"),
        (#""part-0001""#, #""../other""#, "its shards"),
        (#""part-0001""#, #"".""#, "its shards"),
        (#""part-0001""#, #""a\u0000b""#, "its shards"),
    ]

    @Test(arguments: impossible)
    func `An impossible value makes a manifest damaged`(
        field: String, other: String, says: String
    ) throws {
        let bytes = manifest().encoded()
        #expect(problem(bytes) == nil)
        let text = String(decoding: bytes, as: UTF8.self)
        // The field of a run's count may have a namesake elsewhere: one at a time.
        let place = try #require(text.ranges(of: field).last, "\(field) in \(text)")
        let changed = Array(text.replacingCharacters(in: place, with: other).utf8)
        #expect(problem(changed) == "its checksum does not fit")
        let sealed = try #require(Manifest.sealed(changed))
        #expect(problem(sealed)?.hasSuffix(" \(says)") == true, "\(problem(sealed) ?? "")")
    }

    @Test(arguments: [
        "3", "5", "9999999999999", "[3, 2]", "[5, 2]", "[9, 0]", "[9, 1099511627768]",
        "[9, 18446744073709551615]",
    ])
    func `Erased rows out of order or beyond any list make a manifest damaged`(
        row: String
    ) throws {
        let text = String(decoding: manifest().encoded(), as: UTF8.self)
        let field = try #require(text.ranges(of: "\"erasedRows\"").first)
        let second = try #require(text[field.upperBound...].ranges(of: "9").first)
        let changed = text.replacingCharacters(in: second, with: row)
        let sealed = try #require(Manifest.sealed(Array(changed.utf8)))
        #expect(problem(sealed)?.hasSuffix(" its erased rows") == true, "\(problem(sealed) ?? "")")
    }

    @Test func `Values within the bounds are read from a manifest`() throws {
        var manifest = manifest()
        manifest.rowCount = LedgerFormat.rowLimit
        manifest.part = ListExtent(
            firstRow: 0, byteOffset: 0, firstLine: 1, endRow: LedgerFormat.rowLimit,
            endByteOffset: UInt64(Int64.max))
        manifest.identity.listByteCount = UInt64(Int64.max)
        manifest.counters.connections = 1 << 48
        #expect(problem(manifest.encoded()) == nil)
    }
}

extension String {
    fileprivate func replacingCharacters(in range: Range<Index>, with text: String) -> String {
        self[..<range.lowerBound] + text + self[range.upperBound...]
    }
}
