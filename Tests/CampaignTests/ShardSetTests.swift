import Testing

@testable import Campaign

@Suite struct ShardSetTests {
    private func shard(
        _ index: UInt32, of count: UInt32, isByRow: Bool = false, topic: String = "a",
        rows: Range<UInt64>? = nil
    ) -> Manifest {
        let identity = CampaignIdentity(
            listByteCount: 100, listFormat: "lines", columns: ["token"], payloadSHA256: "00",
            topic: topic, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
            environment: "production",
            shard: .init(index: index, count: count, isByRow: isByRow), suppressSHA256: nil)
        var manifest = Manifest(
            campaign: UInt64(index), identity: identity, firstStartedAtMilliseconds: 1,
            listPath: nil)
        if let rows {
            manifest.part = ListGap(
                firstRow: rows.lowerBound, byteOffset: rows.lowerBound * 5,
                firstLine: rows.lowerBound + 1, endRow: index == count ? nil : rows.upperBound,
                endByteOffset: index == count ? nil : rows.upperBound * 5)
        }
        return manifest
    }

    private func problem(_ manifests: [Manifest]) -> ShardSet.Problem? {
        do throws(ShardSet.Problem) {
            _ = try ShardSet(manifests)
            return nil
        } catch {
            return error
        }
    }

    @Test func `All shards of a campaign, in any order`() throws {
        let set = try ShardSet([
            shard(3, of: 3, rows: 4..<9), shard(1, of: 3, rows: 0..<2),
            shard(2, of: 3, rows: 2..<4),
        ])
        #expect(set.order == [1, 2, 0] && !set.isByRow)
        #expect(try ShardSet([shard(1, of: 1, isByRow: true)]).isByRow)
    }

    @Test func `Each thing that does not fit is named`() {
        let one = shard(1, of: 2, rows: 0..<2)
        let two = shard(2, of: 2, rows: 2..<4)
        #expect(problem([one]) == .missing(index: 2, count: 2))
        #expect(problem([two]) == .missing(index: 1, count: 2))
        #expect(problem([one, two, one]) == .sameShard(0, 2))
        #expect(problem([one, shard(2, of: 2, rows: 3..<4)]) == .notAdjacent(0, 1))
        var whole = two
        whole.identity.shard = nil
        #expect(problem([one, whole]) == .noShard(1))
        for other in [
            shard(2, of: 2, topic: "b"), shard(2, of: 3), shard(2, of: 2, isByRow: true),
        ] {
            guard case .otherCampaign(1, let words) = problem([one, other]) else {
                Issue.record("\(other.identity)")
                continue
            }
            #expect(words.contains("topic") || words.contains("shard"))
        }
    }

    @Test func `Rows of a selection are counted in any range`() {
        for divisor: UInt64 in 1...5 {
            for remainder in 0..<divisor {
                let selection = RowSelection(divisor: divisor, remainder: remainder)
                for first: UInt64 in 0..<12 {
                    for end in first..<14 {
                        let counted = (first..<end).count { selection.contains($0) }
                        #expect(selection.count(in: first..<end) == UInt64(counted))
                    }
                }
            }
        }
    }
}
