import Testing

@testable import BroadsideLedgerFormat

@Suite struct PartSetTests {
    private func part(
        _ index: UInt16, of count: UInt16, id: UInt64 = 0xAB, topic: String = "a",
        hash: String? = nil
    ) -> Manifest {
        let identity = CampaignIdentity(
            listByteCount: UInt64(index) * 100, listFormat: "lines", columns: ["token"],
            payloadSHA256: "00", topic: topic, pushType: "alert", priority: 10, expiration: nil,
            collapseID: nil, environment: "production", shard: nil,
            part: CampaignPart(index: index, count: count), campaignID: "\(id)",
            suppressSHA256: nil)
        var manifest = Manifest(
            campaign: id, identity: identity, firstStartedAtMilliseconds: UInt64(100 - index),
            listPath: "list-\(index)")
        manifest.listHash = hash
        manifest.rowCount = UInt64(index)
        return manifest
    }

    private func problem(_ manifests: [Manifest]) -> PartSet.Problem? {
        do throws(PartSet.Problem) {
            _ = try PartSet(manifests)
            return nil
        } catch {
            return error
        }
    }

    @Test func `A part is K of N, and N has a limit`() {
        #expect(CampaignPart("2/3") == CampaignPart(index: 2, count: 3))
        #expect(CampaignPart("1023/1023")?.text == "1023/1023")
        for text in ["", "1", "0/2", "3/2", "1/1024", "+1/2", "1/2/3", "1/ 2", "65537/65538"] {
            #expect(CampaignPart(text) == nil, "\(text)")
        }
    }

    @Test func `All parts of a campaign in any order are a set`() throws {
        let parts = [part(3, of: 3), part(1, of: 3), part(2, of: 3)]
        #expect(try PartSet(parts).order == [1, 2, 0])
    }

    @Test func `A part that does not fit is refused with its difference`() {
        let (one, two) = (part(1, of: 2, hash: "1"), part(2, of: 2, hash: "2"))
        #expect(problem([one]) == .missing(index: 2, count: 2))
        #expect(problem([two]) == .missing(index: 1, count: 2))
        #expect(problem([one, two, one]) == .samePart(0, 2))
        #expect(problem([one, part(2, of: 2, hash: "1")]) == .sameList(0, 1))
        // Empty lists are alike.
        var empty = [one, part(2, of: 2, hash: "1")]
        for index in empty.indices { empty[index].rowCount = 0 }
        #expect(problem(empty) == nil)
        var whole = two
        whole.identity.part = nil
        #expect(problem([one, whole]) == .noPart(1))
        #expect(problem([one, part(2, of: 3)]) == .otherDivision(1, "parts 2/3 and 1/2"))
        for (other, word) in [
            (part(2, of: 2, topic: "b"), "topic"), (part(2, of: 2, id: 1), "campaign id"),
            (part(2, of: 3, id: 1), "campaign id"),
        ] {
            guard case .otherCampaign(1, let words) = problem([one, other]) else {
                Issue.record("\(other.identity)")
                continue
            }
            #expect(words.contains(word))
        }
    }

    @Test func `The merged manifest has the sums of the parts`() throws {
        var parts = [part(1, of: 2), part(2, of: 2)]
        for index in parts.indices {
            parts[index].counters.retries = UInt64(index + 1)
            parts[index].finish(true)
        }
        let whole = Manifest(mergingParts: parts, names: ["part-0001", "part-0002"])
        #expect(whole.holdsParts && whole.isFinished && whole.counters.retries == 3)
        #expect(whole.campaignNumber == 0xAB && whole.firstStartedAtMilliseconds == 98)
        #expect(whole.listPath == nil && whole.rowCount == nil)
        #expect(whole.identity.part == nil && whole.identity.listByteCount == nil)
        let read = try Manifest(decoding: whole.encoded())
        #expect(read == whole && !parts[0].holdsParts)
    }

    @Test func `A segment of one part does not replace another's`() throws {
        let numbers = Set(
            (0...CampaignPart.countMax).map { Manifest.segmentNumber(campaign: 9, part: $0) })
        #expect(numbers.count == 1024 && Manifest.segmentNumber(campaign: 9, part: 0) == 9)
        var (one, two) = (part(1, of: 2), part(2, of: 2))
        let epoch = one.beginEpoch(atMilliseconds: 1)
        _ = two.beginEpoch(atMilliseconds: 1)
        let draft = SegmentDraft(campaign: one.segmentNumber, epoch: epoch, reactor: 0)
        draft.writer.reserve(testChunk(0, 1), nowMilliseconds: testTime)
        draft.sync()
        #expect(try LedgerIndex(segments: [draft.segment], manifest: one).chunkCount == 1)
        let code = errorCode {
            _ = try LedgerIndex(segments: [draft.segment], manifest: two).chunkCount
        }
        #expect(code == .badSegmentHeader)
    }
}
