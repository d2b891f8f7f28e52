import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

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
            manifest.part = ListExtent(
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

    @Test func `All shards of a campaign in any order are a set`() throws {
        let set = try ShardSet([
            shard(3, of: 3, rows: 4..<9), shard(1, of: 3, rows: 0..<2),
            shard(2, of: 3, rows: 2..<4),
        ])
        #expect(set.order == [1, 2, 0] && !set.isByRow)
        #expect(try ShardSet([shard(1, of: 1, isByRow: true)]).isByRow)
    }

    @Test func `A shard that does not fit is refused with its difference`() {
        let one = shard(1, of: 2, rows: 0..<2)
        let two = shard(2, of: 2, rows: 2..<4)
        #expect(problem([one]) == .missing(index: 2, count: 2))
        #expect(problem([two]) == .missing(index: 1, count: 2))
        #expect(problem([one, two, one]) == .sameShard(0, 2))
        #expect(problem([one, shard(2, of: 2, rows: 3..<4)]) == .notAdjacent(0, 1))
        var whole = two
        whole.identity.shard = nil
        #expect(problem([one, whole]) == .noShard(1))
        guard case .otherCampaign(1, let words) = problem([one, shard(2, of: 2, topic: "b")])
        else {
            Issue.record("another topic")
            return
        }
        #expect(words.contains("topic"))
    }

    @Test func `A shard of another division is refused with both shards`() {
        let one = shard(1, of: 2, rows: 0..<2)
        for (index, count, isByRow, text) in [
            (2, 3, false, "shards 2/3 by bytes and 1/2 by bytes"),
            (1, 3, false, "shards 1/3 by bytes and 1/2 by bytes"),
            (2, 2, true, "shards 2/2 by rows and 1/2 by bytes"),
        ] as [(UInt32, UInt32, Bool, String)] {
            let other = shard(index, of: count, isByRow: isByRow)
            #expect(problem([one, other]) == .otherDivision(1, text))
        }
    }

    @Test func `The merged manifest has the sums of the shards`() {
        func part(_ index: UInt32, rowCount: UInt64?) -> Manifest {
            var part = shard(index, of: 3, isByRow: true)
            part.firstStartedAtMilliseconds = 70 - UInt64(index) * 10
            part.identity.listByteCount = index == 1 ? nil : 100
            part.expirationSeconds = UInt64(index)
            part.rowCount = rowCount
            part.counters.retries = UInt64(index)
            part.counters.add(shortened: index == 2 ? nil : UInt64(index) * 3)
            part.counters.reconnects = UInt64(index) * 10
            part.counters.connections = UInt64(index) * 100
            part.canaryPassed = true
            part.finish(true)
            return part
        }
        func merged(_ shards: [Manifest]) -> Manifest {
            Manifest(campaign: 9, merging: shards, names: shards.indices.map { "d\($0)" })
        }
        let parts = [part(1, rowCount: 28), part(2, rowCount: 30), part(3, rowCount: 29)]
        let whole = merged(parts)
        #expect(whole.counters.retries == 6 && whole.counters.reconnects == 60)
        #expect(whole.counters.connections == 600 && whole.rowCount == 30)
        #expect(whole.counters.shortened == 12)
        #expect(whole.firstStartedAtMilliseconds == 40 && whole.expirationSeconds == 1)
        #expect(whole.identity.shard == nil && whole.identity.listByteCount == 100)
        #expect(whole.shards == ["d0", "d1", "d2"] && whole.campaignNumber == 9)
        #expect(whole.canaryPassed && whole.isFinished)
        for place in parts.indices {
            var some = parts
            some[place].finish(false)
            #expect(!merged(some).isFinished && merged(some).canaryPassed)
            some = parts
            some[place].canaryPassed = false
            #expect(!merged(some).canaryPassed && merged(some).isFinished)
            some = parts
            some[place].rowCount = nil
            #expect(merged(some).rowCount == nil)
            some = parts
            some[place].rowsLimit = 99
            #expect(merged(some).rowCount == nil)
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
